"""Files behind `s3://` and `gs://`, through fsspec. Credentials come from the environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from artifacts_schema.errors import InputError, UsageError
from stages.engine.remote import Identity, Interrupted, SourceChanged, no_such_file

RANGE = 16 << 20
"""Bytes asked for at once."""
_SERVICES = ("botocore", "aiobotocore", "aiohttp", "google", "gcsfs")


def identity(url: str) -> Identity:
    """Size and ETag of an object, asked anew."""
    with _explained(url):
        fs, path = _open(url)
        fs.invalidate_cache(path)
        return _identity(fs.info(path), url)


def matches(pattern: str, *, glob: bool) -> dict[str, Identity]:
    """Objects that a pattern matches, or that lie at or below a URL, with what the listing says."""
    scheme = pattern.split("://", 1)[0]
    with _explained(pattern):
        fs, path = _open(pattern)
        fs.invalidate_cache()
        found = (fs.glob if glob else fs.find)(path, detail=True)
        return {
            f"{scheme}://{name}": _identity(info, f"{scheme}://{name}")
            for name, info in found.items()
            if info["type"] == "file" and not name.endswith("/")
        }


def blocks(url: str, pinned: Identity, start: int) -> Iterator[bytes]:
    """The bytes from `start` on; see `remote.blocks`.

    The identity is asked before and after: an object that is replaced in between is noticed, also
    where the service has no conditional reads.
    """
    with _explained(url):
        fs, path = _open(url)
        _check(url, pinned)
        with fs.open(path, "rb", cache_type="none") as file:
            file.seek(start)
            while block := file.read(RANGE):
                yield block
    _check(url, pinned)


def _check(url: str, pinned: Identity) -> None:
    if identity(url) != pinned:
        raise SourceChanged(where=url)


def _open(url: str) -> tuple[Any, str]:
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


def _identity(info: dict[str, Any], url: str) -> Identity:
    etag = str(info.get("ETag") or info.get("etag") or "")
    if info["type"] != "file":
        raise no_such_file(url)
    if not etag:
        raise InputError("the bucket gives no ETag", where=url, hint="copy the file here")
    return Identity(int(info["size"]), etag)


@contextmanager
def _explained(url: str) -> Iterator[None]:
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
        raise Interrupted(f"the connection failed: {error}") from None
    except Exception as error:
        if type(error).__module__.split(".")[0] not in _SERVICES:
            raise
        if "Credentials" in type(error).__name__:
            raise InputError(
                "no credentials", where=url, hint="put them into the environment"
            ) from None
        raise Interrupted(f"the connection failed: {error}") from None
