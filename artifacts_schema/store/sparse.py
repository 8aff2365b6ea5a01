"""Parts of remote files on this machine: the blocks that were asked for, each checked.

A copy is a sparse file of the cache with holes where nothing was asked for. Behind the bytes lie
the table of blocks (`artifacts_schema.blocks`) and a mark of 8 bytes for each block. A block is
written once it has the sha256 of the table, and marked after that, so a kill leaves none that is
marked and not there. The mark says in which boot and on which day the block was hashed: before a
power cut it may have reached the disk sooner than the block, and disks rot. A block with an older
mark is hashed where it lies, and fetched if it is another.

Processes share a copy. Who fetches into it has its lock; others wait, and find the blocks there.
Bytes, table and marks are one file: what makes room in the cache removes all of them.
"""

from __future__ import annotations

import errno
import hashlib
import io
import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from artifacts_schema.blocks import CHECKSUM, Blocks, merge
from artifacts_schema.errors import CorruptArtifact, StoreError
from artifacts_schema.file_table import File
from artifacts_schema.identity import short
from artifacts_schema.store.backend import Backend, Range
from artifacts_schema.store.cache import (
    CacheFull,
    CacheQuota,
    boot_id,
    files_folder,
    lock_file,
    make_folder,
    size_limit,
)
from artifacts_schema.store.storage_errors import translate_errors

GAP_BYTES = 256 << 10
"""Blocks that lie so near to each other are one request: it takes as long as so many bytes."""
FILL_SHARE = 0.25
"""Of a file of which so much is here or asked for, all is fetched, in a few large requests."""
RANGE_BYTES, AT_ONCE_BYTES = 16 << 20, 64 << 20
"""Most bytes of a request, and of those that are made together."""
ROOM_BYTES = 256 << 20
"""A process looks at the whole cache each time it has fetched so much."""
TOUCH_SECONDS = 60.0
_MARK, _PAGE = 8, 4096
log = logging.getLogger(__name__)


class SparseCopy:
    """The blocks of one file that are on this machine, open for reading.

    `descriptor` has the file's bytes at their own places; only those of blocks that `fetch` was
    asked for may be read.
    """

    def __init__(self, backend: Backend, path: str, file: File, blocks: Blocks, owner: str) -> None:
        self.backend, self.path, self.file, self.owner = backend, path, file, owner
        self.block = blocks.bytes
        self.count = blocks.count(file.bytes)
        self._table_at = -(-file.bytes // _PAGE) * _PAGE
        self._marks_at = self._table_at + CHECKSUM * self.count
        day = int(time.time() // 86_400)
        self._today = hashlib.sha256(f"{boot_id()}/{day}".encode()).digest()[:_MARK]
        self._here = bytearray(self.count)
        self._touched = 0.0
        self.place = files_folder() / file.sha256[:2] / f"{file.sha256}.blocks"
        make_folder(self.place.parent)
        with translate_errors(str(self.place)):
            self.descriptor = os.open(self.place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            os.ftruncate(self.descriptor, self._marks_at + _MARK * self.count)
        self._table = b""

    def load_table(self, where: str, expected: str) -> bool:
        """Have the table of blocks, from the copy or else from `where` in the store; False if the
        store has none that is the `expected` one."""
        if self._read_table(expected):
            return True
        with lock_file(self.descriptor):
            if self._read_table(expected):
                return True
            try:
                table = self.backend.read(where)
            except FileNotFoundError:
                return False
            if hashlib.sha256(table).hexdigest() != expected:
                return False
            with suppress(OSError):  # No space: it is asked for again.
                self._write(table, self._table_at)
            self._table = table
        return True

    def _read_table(self, expected: str) -> bool:
        table = self._read(self._table_at, CHECKSUM * self.count)
        if hashlib.sha256(table).hexdigest() != expected:
            return False
        self._table = table
        return True

    def covering(self, start: int, end: int) -> range:
        """The blocks that hold these bytes."""
        return range(start // self.block, -(-end // self.block))

    def missing(self, blocks: Iterable[int]) -> list[int]:
        """Those of `blocks` that nobody fetched and checked today, ascending."""
        unknown = sorted({block for block in blocks if not self._here[block]})
        if unknown:
            marks = self._marks()
            for block in unknown:
                self._here[block] = self._mark_of(marks, block) == self._today
        return [block for block in unknown if not self._here[block]]

    def ranges_to_fetch(self, blocks: Iterable[int]) -> Iterator[range]:
        """What to ask the store for: blocks that are missing, with what is better fetched along.

        The caller has the lock of the copy.
        """
        marks = self._marks()
        lacking = [block for block in self.missing(blocks) if not self._still_holds(marks, block)]
        if lacking and marks.count(self._today) + len(lacking) > FILL_SHARE * self.count:
            lacking = [
                block for block in range(self.count) if self._mark_of(marks, block) != self._today
            ]
        most = max(1, RANGE_BYTES // self.block)
        for run in merge(lacking, GAP_BYTES // self.block):
            for begin in range(run.start, run.stop, most):
                yield range(begin, min(begin + most, run.stop))

    def range_of(self, blocks: range) -> Range:
        """Their bytes."""
        end = min(blocks.stop * self.block, self.file.bytes)
        return Range(self.path, self.file.bytes, blocks.start * self.block, end)

    def keep(self, blocks: range, data: bytes) -> list[int]:
        """Write and mark the blocks of `data`; returns those that are not what the table says."""
        wrong, view = [], memoryview(data)
        for number in blocks:
            at = (number - blocks.start) * self.block
            part = view[at : at + self.block]
            if not self._is_right(number, part):
                wrong.append(number)
            elif not self._here[number]:
                self._write(part, number * self.block)
                self._mark(number)
        return wrong

    def touch(self) -> None:
        """Count as used now."""
        if time.monotonic() - self._touched > TOUCH_SECONDS:
            os.utime(self.descriptor)
            self._touched = time.monotonic()

    def read_into(self, start: int, view: memoryview) -> None:
        """Bytes from `start` on, of blocks that are here."""
        done = 0
        while done < len(view):
            with translate_errors(str(self.place)):
                size = os.preadv(self.descriptor, [view[done:]], start + done)
            if not size:
                raise StoreError("the copy was cut while it was read", where=str(self.place))
            done += size

    def close(self) -> None:
        """Close it; what is there stays."""
        os.close(self.descriptor)

    def damaged(self, what: str) -> CorruptArtifact:
        """The error for a stored file that is not the one that was committed."""
        return CorruptArtifact(
            f"{what} since it was committed by {self.owner}",
            where=self.backend.full(self.path),
            hint="restore it, or make the artifact again: "
            f"ingot verify --repair {short(self.owner.split()[-1])}",
        )

    def _still_holds(self, marks: bytes, block: int) -> bool:
        """Whether a block that was marked on another day, or in another boot, is right."""
        if not any(self._mark_of(marks, block)):
            return False
        one = self.range_of(range(block, block + 1))
        if not self._is_right(block, self._read(one.start, one.end - one.start)):
            return False
        with suppress(OSError):
            self._mark(block)
        self._here[block] = True
        return True

    def _is_right(self, block: int, data: bytes | memoryview) -> bool:
        expected = self._table[CHECKSUM * block : CHECKSUM * (block + 1)]
        return hashlib.sha256(data).digest() == expected

    def _marks(self) -> bytes:
        return self._read(self._marks_at, _MARK * self.count)

    def _mark_of(self, marks: bytes, block: int) -> bytes:
        return marks[_MARK * block : _MARK * (block + 1)]

    def _mark(self, block: int) -> None:
        self._write(self._today, self._marks_at + _MARK * block)
        self._here[block] = True

    def _read(self, start: int, size: int) -> bytes:
        with translate_errors(str(self.place)):
            return os.pread(self.descriptor, size, start)

    def _write(self, data: bytes | memoryview, at: int) -> None:
        view = memoryview(data)
        while view:
            done = os.pwrite(self.descriptor, view, at)
            view, at = view[done:], at + done


def open_sparse(
    backend: Backend, path: str, file: File, *, table: str, owner: str
) -> SparseCopy | None:
    """The blocks of a remote file that are on this machine; `table` is where its table lies.

    None where it is read as a whole file: it has no table, or a whole copy is here.
    """
    if backend.local or file.blocks is None or _has_whole_copy(file):
        return None
    copy = SparseCopy(backend, path, file, file.blocks, owner)
    try:
        if copy.load_table(table, file.blocks.sha256):
            return copy
    except BaseException:
        copy.close()
        raise
    copy.close()
    log.warning(
        "%s: gone or changed, so the whole file is copied; `ingot verify` writes it again",
        backend.full(table),
    )
    return None


def _has_whole_copy(file: File) -> bool:
    try:
        return (files_folder() / file.sha256[:2] / file.sha256).stat().st_size == file.bytes
    except FileNotFoundError:
        return False


def fetch(requests: Sequence[tuple[SparseCopy, Iterable[int]]]) -> None:
    """Have these blocks of several copies on this machine, by few requests.

    Raises CorruptArtifact for a block that is not the one that was committed, StoreError if the
    store cannot be read or there is no room.
    """
    waiting: list[tuple[SparseCopy, list[int]]] = []
    for copy, blocks in requests:
        copy.touch()
        if missing := copy.missing(blocks):
            waiting.append((copy, missing))
    while waiting:
        # Of files with equal bytes one comes first: they have one copy, and one lock.
        by_content = {copy.file.sha256: (copy, blocks) for copy, blocks in reversed(waiting)}
        _fetch_locked([by_content[sha256] for sha256 in sorted(by_content)])
        waiting = [(copy, left) for copy, blocks in waiting if (left := copy.missing(blocks))]


def _fetch_locked(missing: Sequence[tuple[SparseCopy, list[int]]]) -> None:
    with ExitStack() as locks:
        for copy, _ in missing:  # In the order of their sha256, as everybody does.
            locks.enter_context(lock_file(copy.descriptor))
        parts = [
            (copy, blocks) for copy, numbers in missing for blocks in copy.ranges_to_fetch(numbers)
        ]
        for group in _groups(parts):
            _make_room(sum(_size(copy, blocks) for copy, blocks in group))
            wrong = _fetch_group(group)
            if wrong and (wrong := _fetch_group(wrong)):  # Not damaged on its way: in the store.
                copy, blocks = wrong[0]
                one = copy.range_of(blocks)
                raise copy.damaged(
                    f"block {blocks.start} (bytes {one.start:,} to {one.end:,}) changed"
                )


def _fetch_group(parts: Sequence[tuple[SparseCopy, range]]) -> list[tuple[SparseCopy, range]]:
    """Fetch these blocks; returns those that came with another sha256, one by one."""
    by_store: dict[str, list[tuple[SparseCopy, range]]] = {}
    for copy, blocks in parts:
        by_store.setdefault(copy.backend.url, []).append((copy, blocks))
    wrong = []
    for group in by_store.values():
        answers = _read(group)
        for (copy, blocks), data in zip(group, answers, strict=True):
            numbers = _keep(copy, blocks, data)
            wrong += [(copy, range(number, number + 1)) for number in numbers]
    return wrong


def _read(parts: Sequence[tuple[SparseCopy, range]]) -> list[bytes]:
    try:
        return parts[0][0].backend.read_ranges([copy.range_of(blocks) for copy, blocks in parts])
    except FileNotFoundError:
        for copy, _ in parts:
            if copy.backend.size(copy.path) is None:
                raise copy.damaged("the file is gone") from None
        raise
    except CorruptArtifact as error:
        for copy, _ in parts:
            if error.where == copy.backend.full(copy.path):
                raise copy.damaged(error.what) from None
        raise


def _keep(copy: SparseCopy, blocks: range, data: bytes) -> list[int]:
    """Write what was fetched; where the disk is full, idle copies go first."""
    for attempt in range(2):
        try:
            return copy.keep(blocks, data)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                with translate_errors(str(copy.place)):
                    raise
            if attempt == 0:
                CacheQuota(files_folder()).clear()
    raise CacheFull(
        f"no space left for {len(data):,} bytes of a file",
        where=str(copy.place.parent),
        hint="free space, or set INGOT_CACHE to a folder on a larger disk; finished parts are kept",
    )


def _groups(parts: Sequence[tuple[SparseCopy, range]]) -> Iterator[list[tuple[SparseCopy, range]]]:
    """Parts that are requested together: what is held in memory has a bound."""
    group: list[tuple[SparseCopy, range]] = []
    size = 0
    for copy, blocks in parts:
        if group and size + _size(copy, blocks) > AT_ONCE_BYTES:
            yield group
            group, size = [], 0
        group.append((copy, blocks))
        size += _size(copy, blocks)
    if group:
        yield group


def _size(copy: SparseCopy, blocks: range) -> int:
    return len(blocks) * copy.block


_allowed: dict[Path, int] = {}
"""Bytes that this process may still write into a cache before it looks at the quota again."""


def _make_room(size: int) -> None:
    folder = files_folder()
    if _allowed.get(folder, 0) < size:
        quota = CacheQuota(folder)
        room = max(size, min(ROOM_BYTES, size_limit(folder, quota.used) // 8))
        quota.make(room)
        _allowed[folder] = room
    _allowed[folder] -= size


class SparseFile(io.RawIOBase):
    """A remote file that is read by parts, each fetched when it is first read."""

    def __init__(self, copy: SparseCopy) -> None:
        super().__init__()
        self._copy, self._at = copy, 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The next byte's place."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._copy.file.bytes}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as go into `buffer`, less only at the end of the file."""
        view = memoryview(buffer).cast("B")
        end = min(self._at + len(view), self._copy.file.bytes)
        size = max(0, end - self._at)
        if size:
            fetch([(self._copy, self._copy.covering(self._at, end))])
            self._copy.read_into(self._at, view[:size])
            self._at = end
        return size

    def close(self) -> None:
        """Close the copy; its blocks stay."""
        if not self.closed:
            self._copy.close()
        super().close()
