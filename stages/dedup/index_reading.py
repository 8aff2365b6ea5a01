"""Reading index files by position: `pread` into buffers of known size, never a mapping.

What a process holds is what was asked for; mapped pages would count as its memory as well.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact
from stages.dedup.index_files import Table
from stages.dedup.positioned import read_pieces

if TYPE_CHECKING:
    from stages.dedup.index import IndexShard

OPEN_FILES = 128
"""Descriptors of index files that a process keeps."""
NEAR_BYTES = 4 << 10
"""Two pieces nearer than this are read at once: skipping would take as long as reading."""
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
        found = np.empty(size, np.uint8)
        view = memoryview(found.data)
        while len(view):
            got = os.preadv(file, [view], start)
            if not got:
                raise CorruptArtifact(
                    f"the file ends before byte {start + len(view):,}",
                    where=str(path),
                    hint="it was cut short: run the step that made it again",
                )
            view, start = view[got:], start + got
        return found

    def gathered(
        self, shard: Located, part: str, places: NDArray[np.int64], width: int
    ) -> NDArray[np.uint8]:
        """Records of `width` bytes at `places` (ascending, repeated or not): [places, width]."""
        found = np.empty((len(places), width), np.uint8)
        to = np.arange(len(places)) * width
        self.scattered(shard, part, places * width, np.full(len(places), width), to, found.ravel())
        return found

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
            if begin < len(starts):  # Interrupted, or the file ends: told apart by reading again.
                start, size, place = (int(of[begin]) for of in (starts, sizes, to))
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
        found = self.files.read(
            self.shard, self.table.part, start + 4 * begin, 4 * max(end - begin, 0)
        )
        return found.view("<u4").astype(np.int64) + self.shard.start

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
        """Bounds of `below`. Digests and keys spread evenly, so one look tells where it lies."""
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
        found = self.files.read(self.shard, self.table.part, start, size)
        return found.view("<u8").astype(np.uint64, copy=False)
