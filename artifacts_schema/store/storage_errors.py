"""Errors of file systems and object stores as StoreErrors that say what a person can do.

Not only permission errors: also full disks, read-only mounts, expired credentials, lost
connections. No message repeats a secret.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from artifacts_schema.errors import IngotError, StoreError

KEPT = "finished parts are kept"


class Unreachable(StoreError):
    """The store could not be reached, or was too busy, through all tries; later may be well."""


class Conflict(StoreError):
    """Another writer was at the same object at the same moment; try again."""


_FULL = f"free space and run again; {KEPT}"
_MOUNT = f"check the disk, the mount and the file server, and run again; {KEPT}"
_LOCAL = {
    errno.ENOSPC: ("no space left on the device", _FULL),
    errno.EDQUOT: ("disk quota exceeded", _FULL),
    errno.EROFS: ("the file system is read-only", "choose another --store"),
    errno.EIO: ("input or output error", _MOUNT),
    errno.ESTALE: ("the network file system lost the file", f"mount it again; {KEPT}"),
    errno.ENOTCONN: ("the mount has lost its server", f"mount it again; {KEPT}"),
    errno.EMFILE: ("too many open files", f"raise `ulimit -n` and run again; {KEPT}"),
    errno.ENFILE: ("too many open files on this machine", f"run again later; {KEPT}"),
}
_NO_PATH = (errno.ELOOP, errno.ENAMETOOLONG)
_ANSWERS_HERE = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)
_DENIED_HERE = (
    "permission denied",
    "give this user the right to read and write there, or choose another --store",
)
_DENIED = (
    "permission denied",
    "these credentials need the right to list, read, write and delete there",
)
_CREDENTIALS = (
    "the credentials were refused",
    "check the key and secret, profile or role in the environment; docs: remote stores",
)
_EXPIRED = ("the credentials have expired", f"log in again and run the same command; {KEPT}")
_CLOCK = (
    "this machine's clock is too far from the store's, which refuses its signatures",
    f"set the clock (NTP) and run the same command; {KEPT}",
)
_REGION = ("the bucket is in another region", "set AWS_DEFAULT_REGION to the bucket's")
_NO_BUCKET = ("the bucket does not exist", "make it, or check --store")
_BUSY = ("the store was too busy through all tries", f"run the same command later; {KEPT}")
_LOST = (
    "the store cannot be reached, or the connection broke through all tries",
    f"check the network and the endpoint, and run the same command; {KEPT}",
)
_NO_CREDENTIALS = (
    "no credentials",
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE for s3://, "
    "GOOGLE_APPLICATION_CREDENTIALS for gs://, or run where the machine has a role",
)
_BY_CODE = {
    code: refusal
    for refusal, codes in {
        _DENIED: "AccessDenied AccountProblem AllAccessDisabled Forbidden 403",
        _CREDENTIALS: "InvalidAccessKeyId SignatureDoesNotMatch InvalidSecurity 401 "
        "AuthorizationHeaderMalformed",
        _EXPIRED: "ExpiredToken InvalidToken TokenRefreshRequired",
        _CLOCK: "RequestTimeTooSkewed RequestExpired",
        _REGION: "PermanentRedirect IllegalLocationConstraintException 301",
        _NO_BUCKET: "NoSuchBucket",
        _BUSY: "SlowDown ServiceUnavailable InternalError RequestTimeout Throttling "
        "RequestLimitExceeded TooManyRequests 408 429 500 502 503 504",
    }.items()
    for code in codes.split()
}
_BY_CLASS = {
    "NoCredentialsError": _NO_CREDENTIALS,
    "PartialCredentialsError": _NO_CREDENTIALS,
    "DefaultCredentialsError": _NO_CREDENTIALS,
    "ProfileNotFound": _NO_CREDENTIALS,
    "CredentialRetrievalError": _CREDENTIALS,
    "RefreshError": _EXPIRED,
}
_REMOTE = ("aiobotocore", "aiohttp", "botocore", "fsspec", "gcsfs", "google", "requests", "urllib3")
_ANSWERS = ("HttpError", "ClientResponseError")
_CONFLICTS = ("ConditionalRequestConflict", "OperationAborted")
_TAKEN = ("PreconditionFailed", "412")


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Turn refusals into a StoreError at `path`.

    FileNotFoundError, FileExistsError, NotADirectoryError and IsADirectoryError are answers, not
    refusals: they pass, and a create that the server turned down because the object exists becomes
    FileExistsError. Every other error of a file system says nothing about what is there.
    """
    try:
        yield
    except IngotError:
        raise
    except Exception as error:
        if "://" in path and _code(error) in _TAKEN:
            raise FileExistsError(path) from error
        problem = to_storage_error(error, path)
        if problem is None:
            raise
        raise problem from error


def to_storage_error(error: BaseException, path: str) -> StoreError | None:
    """What `error` means for a person; None if it is an answer, or a bug."""
    return _remote(error, path) if "://" in path else _refused_here(error, path)


def _local(error: BaseException, path: str | None) -> StoreError | None:
    number = _number(error)
    problem = _DENIED_HERE if number in (errno.EACCES, errno.EPERM) else _LOCAL.get(number or 0)
    return StoreError(problem[0], where=path, hint=problem[1]) if problem else None


def _refused_here(error: BaseException, path: str) -> StoreError | None:
    """Of a call on `path`: every error of the file system that says nothing about what is there."""
    if not isinstance(error, OSError) or isinstance(error, _ANSWERS_HERE):
        return _local(error, path)
    named = error.filename if isinstance(error.filename, str) else ""
    where = path if named.rpartition("/")[2].startswith(".") else named or path
    if error.errno in _NO_PATH:  # The path itself is wrong: the command line says so.
        return None
    if error.errno is None:
        return _local(error, where)
    return _local(error, where) or StoreError(
        error.strerror or os.strerror(error.errno), where=where, hint=_MOUNT
    )


def system_error(error: BaseException) -> StoreError | None:
    """What an error of this machine's file system means, wherever it arose; None if it is none."""
    name = getattr(error, "filename", None)
    return _local(error, os.fsdecode(name) if isinstance(name, str | bytes) else None)


_NATIVE = re.compile(r"\(os error (\d+)\)")  # How Rust's libraries end such a message.


def _number(error: BaseException) -> int | None:
    """The errno of an error, also if a library gives it in its text alone."""
    if isinstance(error, OSError):
        return error.errno
    text = str(error)
    if match := _NATIVE.search(text):
        return int(match[1])
    return next((n for n in (errno.EACCES, *_LOCAL) if os.strerror(n) in text), None)


def _remote(error: BaseException, path: str) -> StoreError | None:
    code = _code(error)
    if code in _CONFLICTS:
        return Conflict("two writers met", where=path, hint="run again")
    if code in _BY_CODE:
        what, hint = _BY_CODE[code]
        return (Unreachable if _BY_CODE[code] is _BUSY else StoreError)(what, where=path, hint=hint)
    for one in _chain(error):
        if type(one).__name__ in _BY_CLASS:
            what, hint = _BY_CLASS[type(one).__name__]
            return StoreError(what, where=path, hint=hint)
    if isinstance(error, FileNotFoundError | FileExistsError):
        return None
    if isinstance(error, PermissionError) or str(error).startswith("Forbidden"):
        return StoreError(_DENIED[0], where=path, hint=_DENIED[1])
    if code is not None:
        return StoreError(f"the store refused: {code}", where=path, hint="check --store")
    if _is_connection(error):
        return Unreachable(_LOST[0], where=path, hint=_LOST[1])
    return None


def _is_connection(error: BaseException) -> bool:
    remote = any(type(one).__module__.split(".")[0] in _REMOTE for one in _chain(error))
    return remote or isinstance(error, ConnectionError | TimeoutError)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, a few deep."""

    def links() -> Iterator[BaseException]:
        one: BaseException | None = error
        while one is not None:
            yield one
            one = one.__cause__

    return islice(links(), 8)


def _code(error: BaseException) -> str | None:
    """The server's own word for it: an S3 error code, or an HTTP status."""
    for one in _chain(error):
        response = getattr(one, "response", None)
        if isinstance(response, dict) and response.get("Error", {}).get("Code"):
            return str(response["Error"]["Code"])
        if type(one).__name__ in _ANSWERS:  # A cut answer has a code too, which means nothing.
            return str(getattr(one, "code", None) or getattr(one, "status", None))
    return None
