"""Addresses taken apart: host, and the domain that was registered to have it.

The registered domain is the name below the longest public suffix of ICANN's part of Mozilla's list
(publicsuffix.org), as `tld` carries it: `news.bbc.co.uk` → `bbc.co.uk`. A path within a code tree
has neither.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import SplitResult

_ADDRESS = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]*)://(?:[^/?#\\]*@)?(\[[0-9A-Fa-f:.]+\]|[^/?#\\:\[\]]*)"
)
_LONGEST_HOST = 253
_NUMERIC = re.compile(r"[0-9.]+\Z|\[")
_FORBIDDEN = re.compile(r"[\s\x00-\x20\x7f\ud800-\udfff<>\"%^`{|}]")


def host(url: str | None) -> str | None:
    """The host of an address, lower case, in ASCII (IDNA) where it can be; None without one."""
    match = _ADDRESS.match(url) if url else None
    name = match[2].lower().rstrip(".") if match else ""
    if not name or len(name) > _LONGEST_HOST or _FORBIDDEN.search(name):
        return None
    return name if name.isascii() else _ascii(name)


@lru_cache(maxsize=1 << 16)
def registered_domain(host: str) -> str | None:
    """The name below the public suffix of a host; None for an address, a suffix, an unknown one."""
    from tld.utils import MozillaPublicOnlyTLDSourceParser, process_url

    if _NUMERIC.match(host):
        return None
    labels, suffix, _ = process_url(
        SplitResult("https", host, "", "", ""),
        fail_silently=True,
        search_private=False,
        parser_class=MozillaPublicOnlyTLDSourceParser,
    )
    if not labels or suffix is None or suffix < 1 or not labels[suffix - 1]:
        return None
    return ".".join(labels[suffix - 1 :])


def url_signals(urls: Sequence[str | None]) -> dict[str, list[str | None]]:
    """`host` and `registered_domain` of each address."""
    hosts = [host(url) for url in urls]
    domains = [name if name is None else registered_domain(name) for name in hosts]
    return {"host": hosts, "registered_domain": domains}


def _ascii(name: str) -> str:
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name
