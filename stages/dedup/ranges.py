"""Ranges of 64-bit values: what a task takes, and cuts until what lies in it fits into memory.

Keys and digests spread evenly, so equal ranges hold about equally much. Where they do not (many
equal keys, or made ones), a task cuts its range again; a range of one value cannot be cut, and what
does not fit there is read twice instead of being held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stages.dedup.index_reading import END, SortedRun
from stages.text.native import compiled


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
    def of(cls, runs: Sequence[SortedRun], low: int, high: int) -> Piece:
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
        return self if (low, high) == (self.low, self.high) else Piece.of(self.runs, low, high)

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
        found = np.empty(self.rows, np.uint64)
        filled = 0
        for run, begin, end in self.spans():
            found[filled : filled + end - begin] = run.values(begin, end)
            filled += end - begin
        return found


class Members:
    """Which values are among some given ones; most that are not are told by one bit.

    The bits stand for equal parts of [low, high), sixteen and more for each given value.
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

    def found(self, others: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Places in `others`, all in [low, high), that hold one of the values."""
        likely = self.likely(others)
        if not len(likely) or not len(self.values):
            return likely[:0]
        near = np.minimum(np.searchsorted(self.values, others[likely]), len(self.values) - 1)
        return likely[self.values[near] == others[likely]]


@compiled
def _mark(
    values: NDArray[np.uint64], low: np.uint64, shift: np.uint64, bits: NDArray[np.uint8]
) -> None:
    for value in values:
        part = (value - low) >> shift
        bits[part >> np.uint64(3)] |= np.uint8(1) << np.uint8(part & np.uint64(7))


@compiled
def _likely(
    others: NDArray[np.uint64], low: np.uint64, shift: np.uint64, bits: NDArray[np.uint8]
) -> NDArray[np.int64]:
    places = np.empty(len(others), np.int64)
    found = np.int64(0)
    for place in range(len(others)):
        part = (others[place] - low) >> shift
        places[found] = place
        found += np.int64(bits[part >> np.uint64(3)] >> np.uint8(part & np.uint64(7)) & np.uint8(1))
    return places[:found].copy()


def repeated(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The values that occur more than once, ascending. Sorts `values` in place."""
    values.sort()
    return _once(values[1:][values[1:] == values[:-1]])


def different(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The different values, ascending. Sorts `values` in place.

    `np.unique` hashes since NumPy 2.3, which is many times slower than its sort.
    """
    values.sort()
    return _once(values)


def _once(ordered: NDArray[np.uint64]) -> NDArray[np.uint64]:
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
