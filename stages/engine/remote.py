"""Files at URLs: which are read, their identity, faults, retries, and URLs without secrets.

`https://` is `web`; `s3://` and `gs://` are read here through fsspec, with credentials from the
environment. Both give an `Identity` and blocks of bytes, and raise `TransientError` for what may
pass and `SourceChanged` for a file that changed.
"""

from __future__ import annotations

import ipaddress
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from artifacts_schema.errors import InputError, UsageError
from stages.engine.transfers import pause

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
    safe_url = without_secrets(url)
    if len(url) > MAX_LENGTH or any(c.isspace() or not c.isprintable() for c in url):
        raise UsageError(
            f"not a URL: {safe_url[:80]!r}",
            hint="white space and control characters are written %20",
        )
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"not a URL: {safe_url!r}: {error}") from None
    if parts.scheme not in (*WEB, *OBJECTS):
        raise UsageError(
            f"files behind {parts.scheme}:// cannot be read: {safe_url}",
            hint="https://, s3:// and gs:// can; or copy the files to this machine",
        )
    if not host:
        raise UsageError(
            f"the URL names no {'host' if parts.scheme in WEB else 'bucket'}: {safe_url}"
        )
    if "@" in parts.netloc:
        raise UsageError(
            f"the URL holds a user or password, which the store would keep: {safe_url}",
            hint="for s3:// and gs://, put credentials into the environment; else download it",
        )
    if parts.scheme in OBJECTS:
        return
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if any(_SECRET.search(name) for name in names):
        raise UsageError(
            f"the URL looks signed, and the store would keep the signature: {safe_url}",
            hint="use s3:// or gs:// with credentials in the environment, or download it",
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise UsageError(
            f"plain http is read from this machine only: {safe_url}",
            hint="use https, or download it",
        )


BLOCK = 1 << 20


@dataclass(frozen=True)
class Identity:
    """What a server reports about a file.

    `etag` is its strong ETag as sent, quotes included, or else its Last-Modified: as weak as a time
    in seconds beside a length is. A server that knows the bytes' `sha256` needs none ("").
    """

    bytes: int
    etag: str
    sha256: str | None = None


class TransientError(Exception):
    """A fault that may pass: a lost connection, a busy server."""

    def __init__(self, what: str, wait: float | None = None) -> None:
        super().__init__(what)
        self.what, self.wait = what, wait


class NoSuchFile(InputError):
    """There is no file at a URL."""


class AccessDenied(InputError):
    """The server denies access to a file, which may or may not exist."""


class SourceChanged(InputError):
    """The file at a URL is not the one that the snapshot pinned."""

    def __init__(
        self,
        what: str = "the file changed since the snapshot pinned it",
        *,
        where: str | None = None,
        hint: str | None = "plan again to take the changed file as a new snapshot",
    ) -> None:
        super().__init__(what, where=where and without_secrets(where), hint=hint)


@dataclass(frozen=True)
class RetryPolicy:
    """How often, and how long apart, a server is asked again.

    The wait doubles from `first` seconds to `longest`, times a random half to one, so that many
    workers do not retry together; a server's own Retry-After counts up to `longest_asked`.
    """

    attempts: int = 10
    first: float = 1.0
    longest: float = 60.0
    longest_asked: float = 300.0
    sleep: Callable[[float], None] = pause
    jitter: Callable[[], float] = random.random

    def pause(self, failures: int, error: TransientError, url: str) -> None:
        """Wait after the `failures`-th fault in a row; InputError once there were `attempts`."""
        if failures >= self.attempts:
            raise InputError(
                f"{error.what} ({failures} tries)",
                where=without_secrets(url),
                hint="try again later: what has arrived is kept",
            )
        if error.wait is not None:
            self.sleep(min(error.wait, self.longest_asked))
        else:
            doubled = min(self.longest, self.first * 2.0 ** (failures - 1))
            self.sleep(doubled * (0.5 + 0.5 * self.jitter()))


def no_such_file(url: str) -> NoSuchFile:
    """The error for a file that is not there."""
    return NoSuchFile(
        "no such file", where=without_secrets(url), hint="check the URL; files move and expire"
    )


RANGE = 16 << 20
"""Bytes of one request."""
_SERVICES = ("botocore", "aiobotocore", "aiohttp", "google", "gcsfs")


def object_identity(url: str) -> Identity:
    """Size and ETag of an object, without any cache."""
    with _translate_errors(url):
        fs, path = _open_bucket(url)
        fs.invalidate_cache(path)
        return _identity_from(fs.info(path), url)


def list_objects(pattern: str, *, glob: bool) -> dict[str, Identity]:
    """Objects that a pattern matches, or at or below a URL, with identities from the listing."""
    scheme = pattern.split("://", 1)[0]
    with _translate_errors(pattern):
        fs, path = _open_bucket(pattern)
        fs.invalidate_cache()
        entries = (fs.glob if glob else fs.find)(path, detail=True)
        return {
            f"{scheme}://{name}": _identity_from(info, f"{scheme}://{name}")
            for name, info in entries.items()
            if info["type"] == "file" and not name.endswith("/")
        }


def object_blocks(url: str, pinned: Identity, start: int) -> Iterator[bytes]:
    """The bytes from `start` on; see `remote.blocks`.

    The identity is asked before and after: an object that is replaced in between is noticed, also
    where the service has no conditional reads.
    """
    with _translate_errors(url):
        fs, path = _open_bucket(url)
        _check_object(url, pinned)
        with fs.open(path, "rb", cache_type="none") as file:
            file.seek(start)
            while block := file.read(RANGE):
                yield block
    _check_object(url, pinned)


def _check_object(url: str, pinned: Identity) -> None:
    if object_identity(url) != pinned:
        raise SourceChanged(where=url)


def _open_bucket(url: str) -> tuple[Any, str]:
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(url)
    except ImportError:
        scheme = url.split("://", 1)[0]
        raise UsageError(
            f"{scheme}:// needs a library that is not installed",
            where=url,
            hint=f"pip install 'ingot[{scheme}]'",
        ) from None
    return fs, str(path)


def _identity_from(info: dict[str, Any], url: str) -> Identity:
    etag = str(info.get("ETag") or info.get("etag") or "")
    if info["type"] != "file":
        raise no_such_file(url)
    if not etag:
        raise InputError("the bucket gives no ETag", where=url, hint="copy the file here")
    return Identity(int(info["size"]), etag)


@contextmanager
def _translate_errors(url: str) -> Iterator[None]:
    """Sort the faults of fsspec and of the services' own libraries."""
    try:
        yield
    except FileNotFoundError:
        raise no_such_file(url) from None
    except PermissionError:
        raise InputError(
            "permission denied",
            where=url,
            hint="the credentials in the environment must be allowed to list and read there",
        ) from None
    except OSError as error:
        raise TransientError(f"the connection failed: {error}") from None
    except Exception as error:
        if type(error).__module__.split(".")[0] not in _SERVICES:
            raise
        if "Credentials" in type(error).__name__:
            raise InputError(
                "no credentials", where=url, hint="put them into the environment"
            ) from None
        raise TransientError(f"the connection failed: {error}") from None
