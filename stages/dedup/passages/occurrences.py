"""Occurrences of passages and the runs they are written in.

A run holds whole documents of one shard, so many that their passages fill what a task may hold. For
each run two scratch files get a piece: every occurrence in the order of the text, and, sorted by
hash, one record for each distinct passage. Only the latter travel: a line in a million documents is
one record a run.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stages.text.native import compiled

if TYPE_CHECKING:
    from stages.engine import ShardOutput

Occurrences = NDArray[np.void]
Firsts = NDArray[np.void]

OCCURRENCE = np.dtype(
    [
        ("hash", "<u8"),
        *((name, "<i4") for name in ("row", "start", "end", "behind")),
        ("first", "?"),
    ]
)
"""A passage at characters [start, end) of the document in that row of the shard; what follows it
begins at `behind`. `first`: no document of lesser rank in the run has it, nor an earlier place."""

FIRST = np.dtype([("hash", "<u8"), ("high", "<u8"), ("low", "<u8"), ("count", "<u4")])
"""A passage of a run: the id of the document of least rank that has it (two halves), and how often
it occurs in the run."""


def occurrences(
    hashes: ArrayLike, rows: ArrayLike, starts: ArrayLike, ends: ArrayLike, behind: ArrayLike
) -> Occurrences:
    """Occurrences from their columns; `first` is for the writer to say."""
    found = np.zeros(len(np.asarray(hashes)), dtype=OCCURRENCE)
    found["hash"], found["row"] = hashes, rows
    found["start"], found["end"], found["behind"] = starts, ends, behind
    return found


class RunWriter:
    """Writes the occurrences of one measure in one shard, a run at a time.

    Used as a context manager. `limit` is the number of occurrences that makes a run full; without
    `places` only the distinct passages are kept. Afterwards `runs` tells of each run its documents,
    its occurrences, and its distinct passages.
    """

    def __init__(self, out: ShardOutput, measure: str, limit: int, *, places: bool = True) -> None:
        self._out, self._measure, self._limit, self._with_places = out, measure, limit, places
        self._held: list[Occurrences] = []
        self._ids: list[NDArray[np.uint64]] = []
        self._size, self._row = 0, 0
        self.runs: list[list[int]] = []

    def __enter__(self) -> RunWriter:
        self._files = ExitStack()
        self._firsts = self._files.enter_context(self._out.open_scratch(firsts_of(self._measure)))
        if self._with_places:
            name = places_of(self._measure)
            self._places = self._files.enter_context(self._out.open_scratch(name))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        if kind is None:
            self._flush()
        self._files.__exit__(kind, error, trace)

    def add(self, found: Occurrences, ids: NDArray[np.uint64]) -> None:
        """The occurrences of the next documents, by row and start; their ids, [documents, 2]."""
        self._held.append(found)
        self._ids.append(ids)
        self._size += len(found)
        if self._size >= self._limit:
            self._flush()

    def _flush(self) -> None:
        if not self._ids:
            return
        found, ids = np.concatenate(self._held), np.concatenate(self._ids)
        firsts = first_in_run(found, ids, self._row)
        self._firsts.write(firsts.view(np.uint8))
        if self._with_places:
            self._places.write(found.view(np.uint8))
        self.runs.append([len(ids), len(found), len(firsts)])
        self._row += len(ids)
        self._size = 0
        self._held.clear()
        self._ids.clear()


def firsts_of(measure: str) -> str:
    """Name of the file of distinct passages."""
    return f"{measure}.firsts"


def places_of(measure: str) -> str:
    """Name of the file of occurrences."""
    return f"{measure}.places"


def first_in_run(found: Occurrences, ids: NDArray[np.uint64], row: int) -> Firsts:
    """The distinct passages of a run, by hash; sets `first` of the occurrence that stays.

    `ids` [documents, 2] are those of the run's documents, which begin at `row`.
    """
    hashes = found["hash"].copy()
    order = np.argsort(hashes)
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[np.lexsort((ids[:, 1], ids[:, 0]))] = np.arange(len(ids))
    rows = found["row"] - row
    chosen, counts = _least_of_each(hashes[order], order, ranks[rows])
    firsts = np.empty(len(chosen), dtype=FIRST)
    firsts["hash"], firsts["count"] = hashes[chosen], counts
    firsts["high"], firsts["low"] = ids[rows[chosen]].T
    found["first"][chosen] = True
    return firsts


@compiled
def _least_of_each(
    hashes: NDArray[np.uint64], order: NDArray[np.int64], ranks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each run of equal `hashes`: which of `order` has the least rank, then comes first."""
    chosen = np.empty(len(hashes), dtype=np.int64)
    counts = np.empty(len(hashes), dtype=np.int64)
    groups = 0
    for i in range(len(hashes)):
        place = order[i]
        if i == 0 or hashes[i] != hashes[i - 1]:
            chosen[groups], counts[groups] = place, 1
            groups += 1
            continue
        held = chosen[groups - 1]
        counts[groups - 1] += 1
        if (ranks[place], place) < (ranks[held], held):
            chosen[groups - 1] = place
    return chosen[:groups].copy(), counts[:groups].copy()


def read_records(
    file: IO[bytes], dtype: np.dtype[Any], start: int, end: int, head: int = 0
) -> NDArray[Any]:
    """Records [start, end) of an open file, in which `head` bytes come first."""
    file.seek(head + start * dtype.itemsize)
    return np.fromfile(file, dtype=dtype, count=end - start)
