"""Copies of remote files on this machine: fetched once, resumed after a kill, bounded in size.

A copy is in the cache under `sources/`, named by its checksum where that is known, else by URL,
size and ETag:

    NAME.part      what has arrived; locked by the process that fetches, others wait for it
    NAME-SHA256    the whole file with its checksum, taken while it arrived

The least recently opened ones are removed for new ones (`INGOT_CACHE`, `INGOT_CACHE_SIZE`).
No library that we tried resumes a fetch of exactly the pinned file; `web` says what each does.

Few files come from one web server to this machine at a time. A node has many workers, and a public
archive serves everybody: Common Crawl answers 503 to all while a few ask too much
(https://status.commoncrawl.org).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from artifacts_schema.errors import StoreError
from artifacts_schema.identity import canonical_sha256
from artifacts_schema.store.cache import CacheQuota, cache_folder
from stages.engine.remote import (
    BLOCK,
    OBJECTS,
    WEB,
    Identity,
    RetryPolicy,
    SourceChanged,
    TransientError,
    object_blocks,
    object_identity,
    without_secrets,
)
from stages.engine.transfers import TICK, check_stop, pause, report_fetch, stoppable
from stages.engine.web import web_blocks, web_identity

if TYPE_CHECKING:
    from hashlib import _Hash


def query_identity(url: str, policy: RetryPolicy) -> Identity:
    """What the server reports about the file at `url`.

    Raises InputError if there is none, if it may not be read, or if the server gives no identity.
    """
    failures = 0
    while True:
        try:
            return object_identity(url) if url.startswith(OBJECTS) else web_identity(url)
        except TransientError as error:
            failures += 1
            policy.pause(failures, error, url)


def read_blocks(url: str, pinned: Identity, start: int) -> Iterator[bytes]:
    """The bytes of `url` from `start` on, as far as they come.

    Raises TransientError, SourceChanged, or InputError for what another try will not fix.
    """
    if url.startswith(OBJECTS):
        return object_blocks(url, pinned, start)
    return web_blocks(url, pinned, start)


AT_ONCE = 4
"""Files that come from one host at a time, whatever the number of workers."""


@contextmanager
def rate_limit(folder: Path, url: str) -> Iterator[None]:
    """Wait until fewer than AT_ONCE other processes fetch from the host of `url`.

    Buckets serve as many as ask. Turns are locks on files below `folder`, so a killed process
    gives its own back.
    """
    parts = urlsplit(url)
    if parts.scheme not in WEB:
        yield
        return
    lock = _take_lock(folder / "turns" / canonical_sha256(parts.netloc)[:16])
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _take_lock(place: Path) -> int | None:
    """The descriptor of a lock, or None on a file system without locks."""
    place.mkdir(parents=True, exist_ok=True)
    while True:
        for number in range(AT_ONCE):
            lock = os.open(place / f"{number}.lock", os.O_RDONLY | os.O_CREAT, 0o644)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            except OSError:
                os.close(lock)
                return None
            return lock
        pause(TICK)


PROGRESS = 1 << 20
"""Bytes that must arrive for a fault not to count as one more in a row."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


def open_copy(
    url: str,
    pinned: Identity,
    *,
    name: str | None = None,
    check: bool = True,
    policy: RetryPolicy | None = None,
) -> BinaryIO:
    """The file at `url`, fetched if there is no copy yet, open for reading and seekable.

    `name` names it in progress reports; `check` hashes a copy that was there already. Raises
    SourceChanged if the file is not the pinned one any more, InputError if it cannot be had,
    StoreError if there is no room for it, Stopped if the stage is asked to stop.
    """
    copy = _Copy(cache_folder() / "sources", url, pinned, name or url.partition("?")[0])
    for _ in range(3):  # Whoever fetched it, or removed it, may have been another process.
        file = copy.open_whole(check=check)
        if file is not None:
            return file
        copy.fetch(policy or RetryPolicy())
        check = False
    raise StoreError(
        f"the copy of {without_secrets(url)} is removed before it can be read",
        where=str(copy.folder),
        hint="leave the cache alone while something runs, and run again",
    )


class _Copy:
    """The copy of one state of one file."""

    def __init__(self, sources: Path, url: str, pinned: Identity, label: str) -> None:
        self.sources, self.url, self.pinned, self.label = sources, url, pinned, label
        known = ["sha256", pinned.sha256] if pinned.sha256 else [url, pinned.bytes, pinned.etag]
        self.name = canonical_sha256(known)
        self.folder = sources / self.name[:2]
        self.part = self.folder / f"{self.name}.part"

    def open_whole(self, *, check: bool) -> BinaryIO | None:
        """The whole copy, or None if there is none; a damaged one is removed."""
        for path in self.folder.glob(f"{self.name}-*"):
            with suppress(FileNotFoundError):
                file = path.open("rb")
                if os.fstat(file.fileno()).st_size == self.pinned.bytes and (
                    not check or _sha256(file) == path.name.partition("-")[2]
                ):
                    os.utime(path)
                    return file
                file.close()
                path.unlink()
        return None

    def fetch(self, policy: RetryPolicy) -> None:
        """Make the copy whole, or wait for the process that does."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            quota = CacheQuota(self.sources)
            quota.make(self.pinned.bytes)
            with (
                open(self.part, "a+b", buffering=0) as file,
                report_fetch(self.label, self.pinned.bytes) as report,
            ):
                _lock(file, report)
                if not _is_at(file, self.part):
                    return  # It was made, or taken away, while this process waited.
                try:
                    sha256 = self._fill(file, policy, quota, report)
                except SourceChanged:
                    self.part.unlink()
                    raise
                os.replace(self.part, self.folder / f"{self.name}-{sha256}")
        except OSError as error:
            hint = "set INGOT_CACHE to a folder that can be written and has room"
            if error.errno in _FULL:
                hint = (
                    "what has arrived is kept: free space and run again, "
                    "or set INGOT_CACHE to a folder on a larger disk"
                )
            raise StoreError(
                f"no copy of {without_secrets(self.url)} can be made: {error.strerror}",
                where=str(self.folder),
                hint=hint,
            ) from error

    def _fill(
        self, file: FileIO, policy: RetryPolicy, quota: CacheQuota, report: Callable[[int], None]
    ) -> str:
        """Append what is missing, and once more from the start if that is not what was pinned."""
        for _ in range(2):
            sha256 = self._append_rest(file, policy, quota, report)
            if self.pinned.sha256 in (None, sha256):
                return sha256
            file.truncate(0)
        raise SourceChanged("the bytes are not those of the pinned checksum", where=self.url)

    def _append_rest(
        self, file: FileIO, policy: RetryPolicy, quota: CacheQuota, report: Callable[[int], None]
    ) -> str:
        """Append what is missing, and again after faults; the sha256 of all of it."""
        total = self.pinned.bytes
        file.seek(0)
        digest = checksum(file, hashlib.sha256())
        have, failures = file.tell(), 0
        with rate_limit(self.sources.parent, self.url):
            while have < total:
                before = have
                try:
                    for block in stoppable(partial(read_blocks, self.url, self.pinned, have)):
                        have += len(block)
                        if have > total:
                            raise SourceChanged(
                                f"more came than the {total:,} bytes that were pinned",
                                where=self.url,
                            )
                        _append(file, block, quota)
                        digest.update(block)
                        report(have)
                    if have < total:
                        raise TransientError(
                            f"the connection ended after {have:,} of {total:,} bytes"
                        )
                except TransientError as error:
                    failures = 1 if have - before >= PROGRESS else failures + 1
                    policy.pause(failures, error, self.url)
        return digest.hexdigest()


def checksum(file: IO[bytes], digest: _Hash) -> _Hash:
    """`digest` with the rest of `file`; Stopped if the stage is asked to stop meanwhile."""
    while block := file.read(BLOCK):
        digest.update(block)
        check_stop()
    return digest


def _lock(file: FileIO, report: Callable[[int], None]) -> None:
    """Wait for the process that fetches the same file, and report its progress."""
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            report(os.fstat(file.fileno()).st_size)
            pause(TICK)


def _append(file: FileIO, block: bytes, quota: CacheQuota) -> None:
    """Write unbuffered, so that what has arrived outlives this process; a full cache is cleared."""
    left, cleared = memoryview(block), False
    while left:
        try:
            left = left[file.write(left) :]
        except OSError as error:
            if cleared or error.errno not in _FULL:
                raise
            quota.clear()
            cleared = True


def _sha256(file: BinaryIO) -> str:
    digest = checksum(file, hashlib.sha256()).hexdigest()
    file.seek(0)
    return digest


def _is_at(file: FileIO, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
