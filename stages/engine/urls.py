"""URLs of files from outside: which are read, and how one is shown without what it may hide."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import parse_qsl, urlsplit

from artifacts_schema.errors import UsageError

WEB = ("https", "http")
OBJECTS = ("s3", "gs")
MAX_LENGTH = 4096
_SECRET = re.compile(
    r"sig|token|key|cred|secret|passw|pwd|auth|expires|policy|^x-(amz|goog)-|^s[ekptv]$", re.I
)
"""Names of query parameters that sign a URL or carry a password (S3, GCS, Azure, CloudFront)."""
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY = re.compile(r"(://[^\s?'\"]*)\?[^\s'\"\],}]*")


def is_url(text: str) -> bool:
    """Whether `text` is meant as a URL and not as a path of this machine."""
    return "://" in text


def is_loopback(host: str | None) -> bool:
    """Whether `host` is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def without_secrets(text: str) -> str:
    """`text` with the user, password and query of every URL in it replaced by `…`."""
    return _QUERY.sub(r"\1?…", _USER.sub("…@", text))


def check_url(url: str) -> None:
    """Raise UsageError unless `url` can be written down in a store and read from there.

    https, s3 and gs can; plain http only on loopback, since anybody on the way can change it.
    A password or a signature would land in the store's records, so neither is taken.
    """
    shown = without_secrets(url)
    if len(url) > MAX_LENGTH or any(c.isspace() or not c.isprintable() for c in url):
        raise UsageError(
            f"not a URL: {shown[:80]!r}", hint="white space and control characters are written %20"
        )
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"not a URL: {shown!r}: {error}") from None
    if parts.scheme not in (*WEB, *OBJECTS):
        raise UsageError(
            f"files behind {parts.scheme}:// cannot be read: {shown}",
            hint="https://, s3:// and gs:// can; or copy the files to this machine",
        )
    if not host:
        raise UsageError(f"the URL names no {'host' if parts.scheme in WEB else 'bucket'}: {shown}")
    if "@" in parts.netloc:
        raise UsageError(
            f"the URL holds a user or password, which the store would keep: {shown}",
            hint="for s3:// and gs://, put credentials into the environment; else download it",
        )
    if parts.scheme in OBJECTS:
        return
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if any(_SECRET.search(name) for name in names):
        raise UsageError(
            f"the URL looks signed, and the store would keep the signature: {shown}",
            hint="use s3:// or gs:// with credentials in the environment, or download it",
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise UsageError(
            f"plain http is read from this machine only: {shown}",
            hint="use https, or download it",
        )
