"""Bytes at a URL: the few operations that the store needs of a file system.

Every write of a small record is whole or absent, and `put_if_absent` lets exactly one of several
writers win: locally by a hard link of a finished temporary file, remotely by a conditional put
(`remote.py`).
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from artifacts_schema.blocks import BlockHasher, Blocks
from artifacts_schema.errors import StoreError
from artifacts_schema.store.removal import (
    REMOVALS,
    remove_below,
    remove_empty_below,
    trusted_users,
)
from artifacts_schema.store.storage_errors import translate_errors

T = TypeVar("T")

_BLOCK = 1 << 20


class Entry(NamedTuple):
    """A file in a listing: its size in bytes, and when it was written by the store's own clock.

    `etag` changes with the content; a folder's files have none.
    """

    bytes: int
    modified: float
    etag: str = ""


class Range(NamedTuple):
    """Bytes `start` to `end` of a file that has `size` of them."""

    path: str
    size: int
    start: int
    end: int


class Backend(ABC):
    """One place for files, addressed by paths relative to `url`. Picklable."""

    local: bool
    """Whether the files are files of this machine's file system."""

    def __init__(self, url: str) -> None:
        self.url = url

    def full(self, path: str) -> str:
        """The whole name of `path`: a file's path, or a URL."""
        return f"{self.url}/{path}" if path else self.url

    @abstractmethod
    def local_path(self, path: str) -> Path:
        """`path` as a file on this machine; StoreError on a remote store."""

    @abstractmethod
    def read(self, path: str, start: int = 0) -> bytes:
        """The bytes of a file from `start` on; FileNotFoundError if there is none."""

    @abstractmethod
    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Several small files, without those that do not exist."""

    @abstractmethod
    def blocks(self, path: str, size: int) -> Iterator[bytes]:
        """The `size` bytes of a file, a block at a time; a lost connection is taken up again."""

    @abstractmethod
    def read_ranges(self, ranges: Sequence[Range]) -> list[bytes]:
        """Parts of files, many at once, in the order of `ranges`; lost ones are requested again.

        FileNotFoundError for a file that is not there.
        """

    @abstractmethod
    def size(self, path: str) -> int | None:
        """Bytes of a file, or None if there is none."""

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create a file whole, unless it exists; True for the one writer that created it.

        Writers that may meet write different bytes: a remote answer can be lost, and a writer that
        tries again knows its own by them.
        """

    @abstractmethod
    def replace(self, path: str, data: bytes) -> None:
        """Write a file whole, over any earlier one."""

    @abstractmethod
    def create(self, path: str, *, block: int = 0) -> AbstractContextManager[HashingWriter]:
        """Write a payload file; size and sha256 are the writer's when the block ends.

        With `block` it also hashes blocks of so many bytes.
        """

    @abstractmethod
    def link(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Give the bytes at each first path a second name; nothing is copied where links exist."""

    @abstractmethod
    def sync(self, folder: str) -> None:
        """Make the names of all files below `folder` survive a power cut, and its own name too."""

    @abstractmethod
    def listing(self, folder: str) -> dict[str, Entry]:
        """All files below `folder`, by their path relative to it.

        A folder that does not exist is empty. Raises StoreError for one that cannot be read: no
        answer is not an absence.
        """

    def files(self, folder: str) -> list[str]:
        """The paths in `listing`, sorted."""
        return sorted(self.listing(folder))

    @abstractmethod
    def folders(self, folder: str) -> list[str]:
        """Names of the folders directly inside `folder`, sorted."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no file at all."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file or a folder with all it holds; no-op if there is none."""

    @abstractmethod
    def remove_empty(self, folder: str) -> None:
        """Remove a folder if nothing is in it; anything else is fine."""

    @abstractmethod
    def now(self) -> float:
        """The time by the clock that dates the files, in seconds since 1970."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.url,)


class HashingWriter(io.RawIOBase):
    """A file that knows its size and sha256 while it is written, and those of its blocks."""

    def __init__(self, raw: IO[bytes], block: int = 0) -> None:
        super().__init__()
        self.raw, self.bytes, self._hash = raw, 0, hashlib.sha256()
        self._blocks = BlockHasher(block)

    def writable(self) -> bool:
        """Always: this file is for writing."""
        return True

    def write(self, data: Any) -> int:
        """Write and hash; returns the number of bytes."""
        view = memoryview(data).cast("B")
        self.raw.write(view)
        self._hash.update(view)
        self._blocks.update(view)
        self.bytes += len(view)
        return len(view)

    def tell(self) -> int:
        """Bytes written so far."""
        return self.bytes

    @property
    def sha256(self) -> str:
        """sha256 of what was written so far, 64 hex digits."""
        return self._hash.hexdigest()

    @property
    def blocks(self) -> Blocks | None:
        """Of the table of blocks; None where the file is one block, or has none."""
        return self._blocks.blocks

    @property
    def block_table(self) -> bytes | None:
        """The table of blocks of what was written."""
        return self._blocks.table


class LocalBackend(Backend):
    """A folder of this machine, or of a network file system that it mounts."""

    local = True

    def local_path(self, path: str) -> Path:
        """`path` as a file."""
        return Path(self.full(path))

    def read(self, path: str, start: int = 0) -> bytes:
        """The bytes of a file from `start` on."""
        with translate_errors(self.full(path)), open(self.full(path), "rb") as file:
            file.seek(start)
            return file.read()

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Several small files."""
        contents = {}
        for path in paths:
            with suppress(FileNotFoundError):
                contents[path] = self.read(path)
        return contents

    def blocks(self, path: str, size: int) -> Iterator[bytes]:
        """The bytes of a file; `size` is not needed here."""
        with translate_errors(self.full(path)), open(self.full(path), "rb") as file:
            while block := file.read(_BLOCK):
                yield block

    def read_ranges(self, ranges: Sequence[Range]) -> list[bytes]:
        """Parts of files, one by one."""
        parts = []
        for one in ranges:
            with translate_errors(self.full(one.path)), open(self.full(one.path), "rb") as file:
                file.seek(one.start)
                parts.append(file.read(one.end - one.start))
        return parts

    def size(self, path: str) -> int | None:
        """Bytes of a file."""
        with translate_errors(self.full(path)):
            try:
                return self.local_path(path).stat().st_size
            except (FileNotFoundError, NotADirectoryError):
                return None

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create by a hard link of a temporary file that is on the disk already."""
        target = self.local_path(path)

        def create() -> bool:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = _write_temporary(target, data)
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            finally:
                temporary.unlink(missing_ok=True)
            self._sync_up(target.parent)
            return True

        with translate_errors(self.full(path)):
            return _retry_after_removal(create)

    def replace(self, path: str, data: bytes) -> None:
        """Write by renaming a temporary file that is on the disk already."""
        target = self.local_path(path)

        def write() -> None:
            is_new = not target.parent.is_dir()
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(_write_temporary(target, data), target)
            if is_new:
                self._sync_up(target.parent)
            else:
                fsync_folder(target.parent)

        with translate_errors(self.full(path)):
            _retry_after_removal(write)

    @contextmanager
    def create(self, path: str, *, block: int = 0) -> Iterator[HashingWriter]:
        """Write a payload file; it is on the disk when the block ends."""
        target = self.local_path(path)
        with (
            translate_errors(self.full(path)),
            _retry_after_removal(partial(_open_new, target)) as raw,
        ):
            yield HashingWriter(raw, block)
            raw.flush()
            os.fsync(raw.fileno())

    def link(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Hard links."""
        for source, target in pairs:
            with translate_errors(self.full(target)):
                _retry_after_removal(
                    partial(_link, self.local_path(source), self.local_path(target))
                )

    def sync(self, folder: str) -> None:
        """Flush every folder below `folder`, then those above it up to the store's own."""
        with translate_errors(self.full(folder)):
            for place, _ in _walk(self.full(folder)):
                fsync_folder(Path(place))
            self._sync_up(self.local_path(folder))

    def _sync_up(self, folder: Path) -> None:
        """Flush a folder and those above it, so that all names on the way to it are durable."""
        root = Path(self.url)
        for place in (folder, *folder.parents):
            fsync_folder(place)
            if place == root:
                return

    def listing(self, folder: str) -> dict[str, Entry]:
        """All files below `folder`; what vanishes meanwhile is left out."""
        start, files = self.full(folder), {}
        with translate_errors(start):
            for _, entries in _walk(start):
                for entry in entries:
                    if not entry.is_dir():
                        with suppress(FileNotFoundError):
                            status = entry.stat()
                            name = entry.path[len(start) + 1 :]
                            files[name] = Entry(status.st_size, status.st_mtime)
        return files

    def folders(self, folder: str) -> list[str]:
        """Names of the folders directly inside `folder`, sorted; not of links that another user
        made."""
        with translate_errors(self.full(folder)):
            entries = [e for e in _entries(self.full(folder)) if e.is_dir()]
            links = [e for e in entries if e.is_symlink()]
            trusted = trusted_users(self.url) if links else ()
            excluded = {
                e.name for e in links if e.stat(follow_symlinks=False).st_uid not in trusted
            }
            return sorted({e.name for e in entries} - excluded)

    def is_empty(self) -> bool:
        """Whether there is no file at all."""
        with translate_errors(self.url):
            everything = (entry for _, entries in _walk(self.url) for entry in entries)
            return all(entry.is_dir() for entry in everything)

    def remove(self, path: str) -> None:
        """Remove a file or a folder with all it holds, and what others put there meanwhile.

        StoreError where a symbolic link that another user made leads there.
        """
        root, path = (self.url, path) if path else os.path.split(os.path.abspath(self.url))
        with translate_errors(f"{root}/{path}"), suppress(FileNotFoundError):
            remove_below(root, path)

    def remove_empty(self, folder: str) -> None:
        """Remove a folder unless something is in it."""
        # Only tidiness: what is not removed now is empty or in use.
        with suppress(OSError, StoreError):
            remove_empty_below(self.url, folder)

    def now(self) -> float:
        """This machine's time, which dates its files."""
        return time.time()


def fsync_folder(folder: Path) -> None:
    """Make a new name in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What is directly inside a folder; nothing if there is no such folder. OSError otherwise."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _walk(folder: str) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Every folder below `folder`, deepest first, with its entries; links to folders not entered.

    `os.walk` and `Path.rglob` leave out a folder that they cannot read. Here that is an OSError.
    """
    entries = _entries(folder)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
    yield folder, entries


def _retry_after_removal(write: Callable[[], T]) -> T:
    """Write once more where a folder went while it was written into: the last one to work there
    removes it empty, and a run that is over removes it with all it holds."""
    for _ in range(REMOVALS - 1):
        with suppress(FileNotFoundError, FileExistsError):
            return write()
    return write()


def _open_new(target: Path) -> IO[bytes]:
    """A new file in a folder that may have to be made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return open(target, "wb")


def _link(source: Path, target: Path) -> None:
    """A second name in a folder that may have to be made, over whatever had it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileExistsError:
        target.unlink()
        os.link(source, target)


def _write_temporary(target: Path, data: bytes) -> Path:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary
