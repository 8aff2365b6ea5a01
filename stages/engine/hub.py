"""The Hugging Face Hub as a server of files: where it is, and who one is to it."""

from __future__ import annotations

import os
from urllib.parse import quote


def endpoint() -> str:
    """The Hub's address: `$HF_ENDPOINT`, else the public one."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def is_hub(url: str) -> bool:
    """Whether `url` is one of the Hub."""
    return url.startswith(f"{endpoint()}/")


def login(url: str) -> dict[str, str]:
    """The header that says who asks, for a URL of the Hub where somebody is logged in.

    The token is read from the environment or from where `hf auth login` keeps it, for each request:
    it is held nowhere, and no other host is sent it.
    """
    if not is_hub(url):
        return {}
    from huggingface_hub import constants, get_token

    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    return {"Authorization": f"Bearer {token}"} if token else {}


def page_url(kind: str, name: str) -> str:
    """The page of a `dataset` or a `model`."""
    return f"{endpoint()}/{'datasets/' if kind == 'dataset' else ''}{name}"


def file_url(kind: str, name: str, commit: str, path: str) -> str:
    """Where a file of a `dataset` or a `model` lies, as it was at a commit."""
    return f"{page_url(kind, name)}/resolve/{commit}/{quote(path)}"
