"""Index files read by position, and ranges of 64-bit values cut until they fit into memory.

`pread` fills buffers of known size, never a mapping: a process holds what was asked for, while
mapped pages would count as its memory as well. Many reads are made in one compiled call: tens of
thousands of documents are looked up for one task, and in Python the calls around `pread` take ten
times as long as `pread` itself.

Keys and digests are uniformly distributed, so equal ranges hold about equally much. Where they are
not (many equal keys, or constructed ones), a task cuts its range again; a range of one value cannot
be cut, and what does not fit there is read twice instead of being held.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact
from stages.dedup.index_files import Table
from stages.engine.kernels import kernel, pread

if TYPE_CHECKING:
    from stages.dedup.index_files import IndexShard


RECORDS_AT_ONCE = 256
"""Records read at once at the end of a search."""
KEY_BYTES = 8


@kernel
def _read_whole(file: int, address: Any, size: int, start: int) -> bool:
    """Read `size` bytes from `start` on to `address`; false if the file ends before, or fails.

    A read may be short although the file goes on: network file systems do that.
    """
    done = 0
    while done < size:
        count = pread(file, address + np.uintp(done), np.uintp(size - done), start + done)
        if count <= 0:
            return False
        done += count
    return True


@kernel
def read_pieces(
    file: int,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    to: NDArray[np.int64],
    into: NDArray[np.uint8],
) -> int:
    """Read pieces of `sizes` bytes from `starts` on to their places `to` in `into`.

    Returns how many were read before one that was not read whole.
    """
    address = into.ctypes.data
    piece = 0
    while piece < len(starts):
        start, size, place = starts[piece], sizes[piece], to[piece]
        last = piece + 1
        # Neighbours in the file that are neighbours here are one piece.
        while last < len(starts) and starts[last] == start + size and to[last] == place + size:
            size += sizes[last]
            last += 1
        if not _read_whole(file, address + np.uintp(place), size, start):
            return piece
        piece = last
    return piece


@kernel
def records_below(
    file: int, width: int, count: int, numbers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many of `count` records have a key below each of `numbers`, which ascend.

    A record is `width` bytes and begins with its key, int64 little-endian; keys ascend. The result
    is shorter than `numbers` where a read failed.
    """
    counts = np.empty(len(numbers), dtype=np.int64)
    bytes_ = np.empty(RECORDS_AT_ONCE * width, dtype=np.uint8)
    address = bytes_.ctypes.data
    held, end = 0, 0  # Records [held, end) are in `bytes_`.
    low = 0
    for place in range(len(numbers)):
        number = numbers[place]
        if not (held <= low < end and _record_key(bytes_, (end - 1 - held) * width) >= number):
            high = count
            step = RECORDS_AT_ONCE
            # From where the last one was found on, in growing steps.
            while low + step < high:
                if not _read_whole(file, address, KEY_BYTES, (low + step) * width):
                    return counts[:place]
                held, end = 0, 0
                if _record_key(bytes_, 0) < number:
                    low += step + 1
                    step *= 2
                else:
                    high = low + step
            while high - low > RECORDS_AT_ONCE:
                middle = (low + high) // 2
                if not _read_whole(file, address, KEY_BYTES, middle * width):
                    return counts[:place]
                held, end = 0, 0
                if _record_key(bytes_, 0) < number:
                    low = middle + 1
                else:
                    high = middle
            held, end = low, min(low + RECORDS_AT_ONCE, count)
            size = (end - held) * width
            if not _read_whole(file, address, size, held * width):
                return counts[:place]
        while low < end and _record_key(bytes_, (low - held) * width) < number:
            low += 1
        counts[place] = low
    return counts


@kernel
def _record_key(bytes_: NDArray[np.uint8], place: int) -> np.int64:
    value = np.uint64(0)
    for at in range(KEY_BYTES):
        value |= np.uint64(bytes_[place + at]) << np.uint64(8 * at)
    return np.int64(value)


OPEN_FILES = 128
"""Descriptors of index files that a process keeps."""
NEAR_BYTES = 4 << 10
"""Two pieces nearer than this are read together: skipping would take as long as reading."""
AT_ONCE_BYTES = 1 << 20
END = 1 << 64
"""Above every value."""
_WINDOW = 1_024
"""Values read at once at the end of a search."""


class Located(Protocol):
    """Files that belong together, each with a name of its own."""

    @property
    def id(self) -> str:
        """Unique among those that are read together."""

    def path(self, part: Any) -> Path:
        """One of the files on this machine."""


class OpenFiles:
    """Index files of this process, opened when first read, the least recently used closed."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, str], tuple[int, Path]] = OrderedDict()

    def read(self, shard: Located, part: str, start: int, size: int) -> NDArray[np.uint8]:
        """`size` bytes from `start` on. Raises CorruptArtifact if the file ends before."""
        file, path = self._file(shard, part)
        data = np.empty(size, np.uint8)
        view = memoryview(data.data)
        while len(view):
            got = os.preadv(file, [view], start)
            if not got:
                raise CorruptArtifact(
                    f"the file ends before byte {start + len(view):,}",
                    where=str(path),
                    hint="it was cut short: run the step that made it again",
                )
            view, start = view[got:], start + got
        return data

    def gathered(
        self, shard: Located, part: str, places: NDArray[np.int64], width: int
    ) -> NDArray[np.uint8]:
        """Records of `width` bytes at `places` (ascending, repeated or not): [places, width]."""
        records = np.empty((len(places), width), np.uint8)
        to = np.arange(len(places)) * width
        self.scattered(
            shard, part, places * width, np.full(len(places), width), to, records.ravel()
        )
        return records

    def scattered(
        self,
        shard: Located,
        part: str,
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        to: NDArray[np.int64],
        into: NDArray[np.uint8],
    ) -> None:
        """Read pieces of `sizes` bytes from `starts` on to their places `to` in `into`.

        Raises CorruptArtifact if the file ends before one of them does.
        """
        if len(starts) and (to + sizes).max() > len(into):
            raise ValueError("a piece lies beyond the buffer")
        file, _ = self._file(shard, part)
        begin = 0
        while begin < len(starts):
            begin += int(read_pieces(file, starts[begin:], sizes[begin:], to[begin:], into))
            if begin < len(
                starts
            ):  # Interrupted, or the file ends: reading again distinguishes the two.
                start, size, place = (int(column[begin]) for column in (starts, sizes, to))
                into[place : place + size] = self.read(shard, part, start, size)
                begin += 1

    def close(self) -> None:
        """Close all."""
        while self._open:
            os.close(self._open.popitem()[1][0])

    def _file(self, shard: Located, part: str) -> tuple[int, Path]:
        key = (shard.id, part)
        if key not in self._open:
            path = shard.path(part)
            if len(self._open) >= OPEN_FILES:
                os.close(self._open.popitem(last=False)[1][0])
            self._open[key] = os.open(path, os.O_RDONLY), path
        self._open.move_to_end(key)
        return self._open[key]

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens its own."""
        return OpenFiles, ()


def nearby(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Consecutive pieces [begin, end) to be read at once: near each other and not too much.

    `starts` and `ends` are the bytes of each piece; both ascend.
    """
    if not len(starts):
        return
    far = np.flatnonzero(starts[1:] - ends[:-1] > NEAR_BYTES) + 1
    edges = [0, *far.tolist(), len(starts)]
    for begin, stop in pairwise(edges):
        while begin < stop:
            most = int(starts[begin]) + AT_ONCE_BYTES
            end = begin + max(int(np.searchsorted(ends[begin:stop], most, side="right")), 1)
            yield begin, end
            begin = end


@dataclass(frozen=True, eq=False)
class SortedRun:
    """One run's piece of a sorted table: `count` rows, from byte `start` of the part."""

    files: OpenFiles
    shard: IndexShard
    table: Table
    start: int
    count: int

    def values(self, begin: int, end: int) -> NDArray[np.uint64]:
        """The sorted column, rows [begin, end) of the piece."""
        return self._column(0, begin, end)

    def extra(self, column: int, begin: int, end: int) -> NDArray[np.uint64]:
        """A column that follows the sorted one, from 1."""
        return self._column(column, begin, end)

    def numbers(self, begin: int, end: int) -> NDArray[np.int64]:
        """The documents."""
        start = self.start + 8 * (1 + self.table.extras) * self.count
        data = self.files.read(
            self.shard, self.table.part, start + 4 * begin, 4 * max(end - begin, 0)
        )
        return data.view("<u4").astype(np.int64) + self.shard.start

    def below(self, value: int) -> int:
        """How many values are less than `value`, which may be 2^64."""
        if value >= END:
            return self.count
        if value <= 0:
            return 0
        low, high = self._guess(value)
        while high - low > _WINDOW:
            middle = (low + high) // 2
            if int(self.values(middle, middle + 1)[0]) < value:
                low = middle + 1
            else:
                high = middle
        if low == high:
            return low
        return low + int(np.searchsorted(self.values(low, high), np.uint64(value)))

    def _guess(self, value: int) -> tuple[int, int]:
        """Bounds of `below`. Digests and keys are uniform, so one read locates it."""
        if self.count <= _WINDOW:
            return 0, self.count
        middle, spread = self.count * value >> 64, 2 * int(self.count**0.5)
        low, high = max(middle - spread, 0), min(middle + spread, self.count)
        if low and int(self.values(low - 1, low)[0]) >= value:
            return 0, low
        if high < self.count and int(self.values(high, high + 1)[0]) < value:
            return high, self.count
        return low, high

    def _column(self, column: int, begin: int, end: int) -> NDArray[np.uint64]:
        start = self.start + 8 * (column * self.count + begin)
        size = 8 * max(end - begin, 0)
        data = self.files.read(self.shard, self.table.part, start, size)
        return data.view("<u8").astype(np.uint64, copy=False)


def even_ranges(parts: int) -> list[tuple[int, int]]:
    """All 64-bit values in `parts` ranges [low, high)."""
    edges = [END * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))


@dataclass(frozen=True, eq=False)
class Piece:
    """The rows of the runs whose value is in [low, high)."""

    low: int
    high: int
    runs: Sequence[SortedRun]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def in_range(cls, runs: Sequence[SortedRun], low: int, high: int) -> Piece:
        """The rows in [low, high) of whole runs."""
        begins = np.array([run.below(low) for run in runs], dtype=np.int64)
        ends = np.array([run.below(high) for run in runs], dtype=np.int64)
        return cls(low, high, runs, begins, ends)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int((self.ends - self.begins).sum())

    @property
    def is_one_value(self) -> bool:
        """Whether it cannot be cut."""
        return self.high - self.low == 1

    def halves(self) -> tuple[Piece, Piece]:
        """The piece cut in the middle of its values."""
        middle = (self.low + self.high) // 2
        cuts = np.array([run.below(middle) for run in self.runs], dtype=np.int64)
        return (
            Piece(self.low, middle, self.runs, self.begins, cuts),
            Piece(middle, self.high, self.runs, cuts, self.ends),
        )

    def between(self, low: int, high: int) -> Piece:
        """The rows in [low, high), which lies within the piece."""
        return (
            self if (low, high) == (self.low, self.high) else Piece.in_range(self.runs, low, high)
        )

    def fitting(self, rows: int) -> Iterator[Piece]:
        """Pieces of at most `rows` rows or one value, ascending; empty ones are left out."""
        waiting = [self]
        while waiting:
            piece = waiting.pop()
            if piece.rows <= rows or piece.is_one_value:
                if piece.rows:
                    yield piece
            else:
                waiting.extend(reversed(piece.halves()))

    def spans(self) -> Iterator[tuple[SortedRun, int, int]]:
        """Each run that has rows, and which."""
        for place in np.flatnonzero(self.ends > self.begins).tolist():
            yield self.runs[place], int(self.begins[place]), int(self.ends[place])

    def values(self) -> NDArray[np.uint64]:
        """The values of all rows, run after run."""
        values = np.empty(self.rows, np.uint64)
        filled = 0
        for run, begin, end in self.spans():
            values[filled : filled + end - begin] = run.values(begin, end)
            filled += end - begin
        return values


class Members:
    """A set of values; most other values are rejected by one bit.

    The bits represent equal parts of [low, high), sixteen or more for each value.
    """

    def __init__(self, values: NDArray[np.uint64], low: int, high: int) -> None:
        """`values` are ascending and distinct, all in [low, high)."""
        self.values = values
        bits = max(16 * len(values), 64)
        parts = min(1 << (bits - 1).bit_length(), 1 << 31)
        self._shift = np.uint64(max(((high - low - 1) // parts).bit_length(), 0))
        self._low = np.uint64(low)
        self._bits = np.zeros(((high - low - 1) >> int(self._shift)) // 8 + 1, np.uint8)
        _mark(values, self._low, self._shift, self._bits)

    def likely(self, others: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Places in `others`, all in [low, high), that hold one of the values, and a few more."""
        return _likely(others, self._low, self._shift, self._bits)

    def places(self, others: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Places in `others`, all in [low, high), that hold one of the values."""
        likely = self.likely(others)
        if not len(likely) or not len(self.values):
            return likely[:0]
        near = np.minimum(np.searchsorted(self.values, others[likely]), len(self.values) - 1)
        return likely[self.values[near] == others[likely]]


@kernel
def _mark(
    values: NDArray[np.uint64], low: np.uint64, shift: np.uint64, bits: NDArray[np.uint8]
) -> None:
    for value in values:
        part = (value - low) >> shift
        bits[part >> np.uint64(3)] |= np.uint8(1) << np.uint8(part & np.uint64(7))


@kernel
def _likely(
    others: NDArray[np.uint64], low: np.uint64, shift: np.uint64, bits: NDArray[np.uint8]
) -> NDArray[np.int64]:
    places = np.empty(len(others), np.int64)
    number = np.int64(0)
    for place in range(len(others)):
        part = (others[place] - low) >> shift
        places[number] = place
        number += np.int64(
            bits[part >> np.uint64(3)] >> np.uint8(part & np.uint64(7)) & np.uint8(1)
        )
    return places[:number].copy()


def repeated_values(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The values that occur more than once, ascending. Sorts `values` in place."""
    values.sort()
    return _first_of_each(values[1:][values[1:] == values[:-1]])


def distinct_values(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The different values, ascending. Sorts `values` in place.

    `np.unique` hashes since NumPy 2.3, which is many times slower than its sort.
    """
    values.sort()
    return _first_of_each(values)


def _first_of_each(ordered: NDArray[np.uint64]) -> NDArray[np.uint64]:
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
