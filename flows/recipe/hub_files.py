"""Data sets and models of the Hugging Face Hub: the files of one at a revision, what each is.

The Hub tells size and sha256 of files kept in LFS, which are the large ones; of the others the git
blob id, which is also their ETag. Names lead to the files as they were at one commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from artifacts_schema.errors import InputError
from flows.recipe.snapshot_entry import HUB, MAGIC, SnapshotFiles
from stages.engine.hub import endpoint, file_url, page_url
from stages.engine.remote import Identity

SECONDS = 30.0
"""How long the Hub may take to say what a revision is."""
MAX_FILES = 1_000_000
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class _Repository:
    """A data set or a model, and how the Hub is asked about it."""

    api: Any
    kind: str
    name: str

    @property
    def told(self) -> str:
        return f"{HUB[self.kind]} {self.name}"


def hub_files(source: SnapshotFiles) -> list[tuple[str, str, Identity]]:
    """(name, URL, identity) of every file on the Hub that `source.files` mean, by name.

    Hidden files are left out. Raises InputError if there is no such data set or model, revision or
    file, or if it may not be read.
    """
    from huggingface_hub import HfApi

    assert source.on_hub is not None
    hub = _Repository(HfApi(endpoint=endpoint()), *source.on_hub)
    found: dict[str, Identity] = {}
    with _explained(source, hub):
        commit = _commit(hub, source.revision)
        for pattern in source.files or ("",):
            matched = _matched(hub, commit, pattern, source.where)
            if not matched:
                raise InputError(
                    f"no file of {hub.told} matches '{pattern or '*'}'",
                    where=source.where,
                    hint=f"its files: {page_url(hub.kind, hub.name)}/tree/{commit}",
                )
            found |= matched
    return [
        (name, file_url(hub.kind, hub.name, commit, name), found[name]) for name in sorted(found)
    ]


def _commit(hub: _Repository, revision: str | None) -> str:
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    told = hub.api.repo_info(hub.name, repo_type=hub.kind, revision=revision, timeout=SECONDS)
    commit = told.sha
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        raise InputError(f"the Hub names no commit of {hub.name}", where=endpoint())
    return commit


def _matched(hub: _Repository, commit: str, pattern: str, where: str) -> dict[str, Identity]:
    """Identities by name. A pattern without magic is a file, or a folder and all below it."""
    from fsspec.utils import glob_translate

    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    fixed = next((i for i, part in enumerate(parts) if MAGIC & set(part)), max(len(parts) - 1, 0))
    below = "/".join(parts)
    like = re.compile(glob_translate(below)) if MAGIC & set(below) else None
    deep = like is None or len(parts) > fixed + 1 or "**" in parts[-1]
    found = {}
    for file in _tree(hub, commit, "/".join(parts[:fixed]), deep):
        name = _checked(file.path, where)
        if like is not None:
            taken = like.match(name) is not None
        else:
            taken = not below or name == below or name.startswith(f"{below}/")
        if taken and (name == below or not any(part[0] == "." for part in name.split("/"))):
            found[name] = _identity(file, hub, where)
    return found


def _tree(hub: _Repository, commit: str, folder: str, deep: bool) -> Iterator[Any]:
    """The files in or below a folder, none where it is not there."""
    from huggingface_hub.errors import EntryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    try:
        tree = hub.api.list_repo_tree(
            hub.name, folder or None, recursive=deep, revision=commit, repo_type=hub.kind
        )
        for number, entry in enumerate(tree):
            if number >= MAX_FILES:
                raise InputError(
                    f"{hub.told} has more than {MAX_FILES:,} files",
                    where=endpoint(),
                    hint="name a folder: files: [data/*.parquet]",
                )
            if isinstance(entry, RepoFile):
                yield entry
    except EntryNotFoundError:
        return


def _checked(name: str, where: str) -> str:
    """A name as the Hub tells it, unless it leads elsewhere."""
    if not name.isprintable() or "\\" in name or {"..", ".", ""} & set(name.split("/")):
        raise InputError(f"the Hub names a file {name[:80]!a}", where=where)
    return name


def _identity(file: Any, hub: _Repository, where: str) -> Identity:
    size = file.lfs.size if file.lfs is not None else file.size
    sha256 = file.lfs.sha256 if file.lfs is not None else None
    good = isinstance(size, int) and size >= 0
    if sha256 is not None:
        good = good and re.fullmatch(r"[0-9a-f]{64}", str(sha256)) is not None
    else:
        good = good and _COMMIT.fullmatch(str(file.blob_id)) is not None
    if not good:
        raise InputError(
            f"the Hub tells no size or checksum of {file.path} in {hub.name}", where=where
        )
    return Identity(size, "" if sha256 else f'"{file.blob_id}"', sha256)


@contextmanager
def _explained(source: SnapshotFiles, hub: _Repository) -> Iterator[None]:
    """Sort what the Hub's library raises; its texts name the request, and no token."""
    from huggingface_hub import errors

    def problem(what: str, hint: str) -> InputError:
        return InputError(what, where=source.where, hint=hint)

    name = hub.told
    try:
        yield
    except errors.GatedRepoError:
        raise problem(
            f"{name} asks for consent",
            f"agree on {page_url(hub.kind, hub.name)}, then `hf auth login` or set HF_TOKEN",
        ) from None
    except errors.RevisionNotFoundError:
        raise problem(
            f"{name} has no revision '{source.revision}'", "a branch, a tag or a whole commit"
        ) from None
    except errors.RepositoryNotFoundError:
        raise problem(
            f"the Hub shows no {name}",
            "check the name; a private one needs `hf auth login` or HF_TOKEN",
        ) from None
    except errors.OfflineModeIsEnabled:
        raise problem(f"the Hub is not asked about {name}", "HF_HUB_OFFLINE is set") from None
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "an error")
        raise problem(f"the Hub answered {status} about {name}", "try again later") from None
    except (KeyError, TypeError, ValueError) as error:
        raise problem(
            f"the Hub's answer about {name} cannot be read: {type(error).__name__}",
            f"is {endpoint()} a Hub?",
        ) from None
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("httpx", "httpx2", "httpcore"):
            raise
        raise problem(
            f"the Hub cannot be asked about {name}: {str(error)[:200]}",
            f"is {endpoint()} to be reached from here?",
        ) from None
