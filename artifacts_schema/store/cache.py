"""The cache of this machine: verified copies of remote files, and of a folder's where a stage asks.

It is safe to remove while idle.

A copy is named by its sha256 and was hashed when it was made, so it never goes stale; it comes into
view whole, by a rename. The least recently used ones go when the cache is full.

A file that one process hashed need not be hashed by its neighbours: `is_hashed` keeps a record of
what was hashed, which counts while the file is unchanged, until the machine is started again (a
copy may not have reached the disk before a power cut), and for a day (disks rot).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from artifacts_schema.errors import CorruptArtifact, StoreError, UsageError
from artifacts_schema.file_table import File
from artifacts_schema.store.backend import Backend

IN_USE_SECONDS = 600.0
"""A copy that was used so recently is not removed: its reader may not have opened it yet."""
ABANDONED_SECONDS = 86_400.0
RECORD_SECONDS = 86_400.0
"""How long a file that was hashed counts as hashed."""
SETTLED_SECONDS = 1.0
"""A file that was written so recently may be written again in the same tick of the clock that dates
files, which would show in nothing but its bytes."""
LOCK_POLL_SECONDS = 0.5
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}

on_wait: Callable[[], None] = lambda: None  # noqa: E731
"""Called regularly while this process waits for another one to make a copy."""


def cache_folder() -> Path:
    """`$INGOT_CACHE`, else `ingot` in the user's cache folder; made, for this user alone, if it is
    not there: copies of a store are not for people who may not read the store."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(os.environ.get("INGOT_CACHE") or f"{base}/ingot").expanduser()
    return folder if folder.is_dir() else make_folder(folder, mode=0o700)


def cached_copy(backend: Backend, path: str, file: File, *, full: bool) -> Path:
    """The copy of a committed file on this machine; made now if there is none.

    Its size is checked every time, its sha256 when it is made and where `full`, by one process of
    this machine for all; a copy that is not `file` is made again. Raises FileNotFoundError if the
    store has none, CorruptArtifact if the store's bytes are not those of `file`, StoreError if it
    cannot be read or finds no room.
    """
    folder = files_folder()
    copy = folder / file.sha256[:2] / file.sha256
    if _is_whole(copy, file, full=full):
        return copy
    make_folder(copy.parent)
    with _lock_copy(copy):
        if not _is_whole(copy, file, full=full):
            CacheQuota(folder).make(file.bytes)
            try:
                download(backend, path, file, copy)
            except CacheFull:
                CacheQuota(folder).clear()
                download(backend, path, file, copy)
            _write_record(_record_of(copy, file), copy, _state(copy))
    return copy


def is_hashed(path: Path, file: File, sha256: Callable[[], str]) -> bool:
    """Whether the bytes at `path` are those of `file`, as one process of this machine found out.

    `sha256` hashes them, unless a process did so before and nothing was written since; processes
    that ask meanwhile wait for it. Without a cache folder each hashes for itself.
    """
    try:
        record = _record_of(path, file)
        make_folder(record.parent)
    except StoreError:
        return sha256() == file.sha256
    if _is_current(record, path):
        return True
    with _lock_copy(record):
        if _is_current(record, path):
            return True
        state = _state(path)
        if sha256() != file.sha256:
            return False
        if _state(path) == state and time.time() - path.stat().st_mtime > SETTLED_SECONDS:
            _write_record(record, path, state)
    return True


def _record_of(path: Path, file: File) -> Path:
    place = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return files_folder() / file.sha256[:2] / f"{file.sha256}.{place}.hashed"


def _is_current(record: Path, path: Path) -> bool:
    """Whether the file was hashed, in this boot and lately, and is the same since."""
    try:
        age = time.time() - record.stat().st_mtime
        state = json.loads(record.read_bytes())
    except (OSError, ValueError):
        return False
    return 0 <= age < RECORD_SECONDS and state == _state(path)


def _state(path: Path) -> list[Any]:
    """What changes with the content of a file, and with each start of the machine.

    The time of change is left out of a copy's: it is that of its last use.
    """
    status = path.stat()
    changed = 0 if path.is_relative_to(files_folder()) else status.st_ctime_ns
    return [boot_id(), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, changed]


def _write_record(record: Path, path: Path, state: list[Any]) -> None:
    """Whole or not at all; without room for it the file is hashed again."""
    temporary = record.with_name(f"{record.name}.{secrets.token_hex(4)}.partial")
    with suppress(OSError):
        try:
            temporary.write_text(json.dumps(state))
            os.replace(temporary, record)
        finally:
            temporary.unlink(missing_ok=True)


@cache
def boot_id() -> str:
    """Another value after each start of this machine; of this process alone where it is unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"unknown-{secrets.token_hex(8)}"


def files_folder() -> Path:
    """Where copies lie, by sha256."""
    return cache_folder() / "files"


def download(backend: Backend, path: str, file: File, target: Path) -> None:
    """Copy a file of the store to `target`, which appears whole and verified, or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}.partial")
    try:
        for _ in range(2):  # Damaged in transit, they are so once; in the store, twice in a row.
            if _fill(backend, path, file, partial) == file.sha256:
                written = time.time() - 2 * SETTLED_SECONDS  # Any later write has another time.
                os.utime(partial, (time.time(), written))
                os.replace(partial, target)
                return
        raise CorruptArtifact("the file's bytes changed", where=backend.full(path))
    finally:
        partial.unlink(missing_ok=True)


def size_limit(folder: Path, used: int) -> int:
    """Bytes that the cache may take: `$INGOT_CACHE_SIZE`, else half of what it could have."""
    text = os.environ.get("INGOT_CACHE_SIZE", "").strip()
    if not text:
        return (shutil.disk_usage(folder).free + used) // 2
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", text.lower())
    if match is None:
        raise UsageError(f"'{text}' is no size", where="INGOT_CACHE_SIZE", hint="say 200GB")
    return int(float(match[1]) * _UNITS[match[2]])


@dataclass(frozen=True)
class _Copy:
    path: Path
    bytes: int
    used: float


_AIDS = (".lock", ".hashed")
"""Endings of small files beside copies."""


class CacheQuota:
    """The copies in the cache, and removal of the least recently used ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.copies = sorted(self._list_copies(), key=lambda copy: copy.used)

    @property
    def used(self) -> int:
        """Bytes of all copies."""
        return sum(copy.bytes for copy in self.copies)

    def make(self, size: int) -> None:
        """Remove the least recently used copies until `size` more bytes keep within the limit."""
        limit = size_limit(self.folder, self.used)
        if size > limit:
            raise StoreError(
                f"a file of {size:,} bytes does not go into a cache of {limit:,}",
                where=str(self.folder),
                hint="raise INGOT_CACHE_SIZE, or set INGOT_CACHE to a folder on a larger disk",
            )
        self._remove_until(limit - size)

    def clear(self) -> None:
        """Remove every copy that was not used recently."""
        self._remove_until(0)

    def _remove_until(self, most: int) -> None:
        left, now = self.used, time.time()
        for copy in self.copies:
            if left <= most:
                return
            if now - copy.used > IN_USE_SECONDS:
                copy.path.unlink(missing_ok=True)
                left -= copy.bytes

    def _list_copies(self) -> Iterator[_Copy]:
        for path in self.folder.glob("??/*"):
            with suppress(FileNotFoundError):
                status = path.stat()
                used = max(status.st_atime, status.st_mtime)
                is_old = time.time() - used > ABANDONED_SECONDS
                if path.suffix in (*_AIDS, ".partial") and is_old:
                    path.unlink()
                elif path.suffix not in _AIDS:
                    size = min(status.st_size, 512 * status.st_blocks)  # Some copies have holes.
                    yield _Copy(path, size, used)


class CacheFull(StoreError):
    """The disk of the cache is full."""


def _is_whole(copy: Path, file: File, *, full: bool) -> bool:
    """Whether the copy is `file`; it counts as used now."""
    try:
        status = copy.stat()
        if status.st_size != file.bytes:
            return False
        os.utime(copy, ns=(time.time_ns(), status.st_mtime_ns))
        return not full or is_hashed(copy, file, lambda: _sha256(copy))
    except FileNotFoundError:
        return False


def _sha256(path: Path) -> str:
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _fill(backend: Backend, path: str, file: File, partial: Path) -> str:
    """Write the store's bytes to `partial`; their sha256."""
    digest = hashlib.sha256()
    try:
        with open(partial, "wb") as target:
            for block in backend.blocks(path, file.bytes):
                digest.update(block)
                target.write(block)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CacheFull(
                f"no space left for a copy of {file.bytes:,} bytes",
                where=str(partial.parent),
                hint="free space, or set INGOT_CACHE to a folder on a larger disk; "
                "finished parts are kept",
            ) from None
        raise
    return digest.hexdigest()


def make_folder(folder: Path, mode: int = 0o777) -> Path:
    """Make a folder of the cache; StoreError if that fails."""
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the cache folder: {error.strerror}",
            where=str(folder),
            hint="set INGOT_CACHE to a folder that can be written",
        ) from None
    return folder


@contextmanager
def _lock_copy(copy: Path) -> Iterator[None]:
    """One process of this machine at a time makes this copy; a dead one leaves no lock."""
    with open(copy.with_name(f"{copy.name}.lock"), "wb") as lock, lock_file(lock.fileno()):
        yield


@contextmanager
def lock_file(descriptor: int) -> Iterator[None]:
    """One process of this machine at a time; who waits says so."""
    wait = LOCK_POLL_SECONDS / 256
    while _is_locked_elsewhere(descriptor):
        on_wait()
        time.sleep(wait)
        wait = min(2 * wait, LOCK_POLL_SECONDS)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _is_locked_elsewhere(lock: int) -> bool:
    """Whether another process has the lock; if not, this one takes it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # A file system without locks: both make it, and one rename wins.
        return False
    return False
