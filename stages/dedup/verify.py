"""Exact Jaccard similarity of candidate pairs, from the shingles themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.dedup.candidates import Candidates

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

PAIRS_PER_TASK = 1 << 16
_FILES_OPEN = 200
"""Each mapped file holds a descriptor, of which a process has few."""
_SHINGLES_AT_ONCE = 1 << 20
"""Bound on what one step of `jaccard` reads beside its left document: 8 MiB."""


class ShingleStore:
    """Sorted shingles of all documents, in one file a shard, addressed by one running position.

    `sizes` counts the shingles of each file. Picklable; a file is mapped when it is first read.
    """

    def __init__(self, paths: list[Path], sizes: list[int]) -> None:
        self._paths = paths
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self._mapped: dict[int, NDArray[np.uint64]] = {}

    def read(self, start: int, size: int) -> NDArray[np.uint64]:
        """Shingles [start, start + size) of the running numbering; they must lie in one file."""
        index = int(np.searchsorted(self._starts, start, side="right")) - 1
        if index not in self._mapped:
            if len(self._mapped) == _FILES_OPEN:
                self._mapped.pop(next(iter(self._mapped)))
            self._mapped[index] = np.memmap(self._paths[index], dtype="<u8", mode="r")
        begin = start - int(self._starts[index])
        return self._mapped[index][begin : begin + size]


@dataclass(frozen=True, eq=False)
class PairTask:
    """Pairs to verify, sorted by left document: where the shingles of both sides lie."""

    id: str
    left_start: NDArray[np.int64]
    left_size: NDArray[np.int64]
    right_start: NDArray[np.int64]
    right_size: NDArray[np.int64]


def intersections(
    one: NDArray[np.uint64], others: NDArray[np.uint64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many elements `one` shares with each of several sets: int64 [sets].

    All sets are sorted, distinct and not empty; `others` holds them end to end, `sizes` their
    lengths.
    """
    positions = np.minimum(np.searchsorted(one, others), len(one) - 1)
    shared = (one[positions] == others).astype(np.int64)
    return np.add.reduceat(shared, np.cumsum(sizes) - sizes)


def jaccard(task: PairTask, store: ShingleStore, floor: float) -> NDArray[np.float32]:
    """Similarity of each pair; 0 where the sizes alone keep it below `floor`. float32 [pairs]."""
    similarity = np.zeros(len(task.left_start), dtype=np.float32)
    smaller = np.minimum(task.left_size, task.right_size)
    larger = np.maximum(task.left_size, task.right_size)
    pairs = np.flatnonzero(at_least(smaller / larger, floor))
    for group in _groups(task, pairs):
        left = store.read(int(task.left_start[group[0]]), int(task.left_size[group[0]]))
        sizes = task.right_size[group]
        rights = [
            store.read(int(s), int(n)) for s, n in zip(task.right_start[group], sizes, strict=True)
        ]
        shared = intersections(left, np.concatenate(rights), sizes)
        similarity[group] = shared / (len(left) + sizes - shared)
    return similarity


def at_least(similarity: NDArray[np.floating], threshold: float) -> NDArray[np.bool_]:
    """Whether each similarity reaches `threshold`, compared in float32, in which pairs are stored.

    Compared in float64 a stored 7/10 would lie below 0.7.
    """
    return similarity.astype(np.float32) >= np.float32(threshold)


def _groups(task: PairTask, pairs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """`pairs` cut where the left document changes and where the right side grows too large."""
    if not len(pairs):
        return []
    total = np.cumsum(task.right_size[pairs])
    cut = np.zeros(len(pairs), dtype=bool)
    cut[1:] = task.left_start[pairs][1:] != task.left_start[pairs][:-1]
    cut[1:] |= total[1:] // _SHINGLES_AT_ONCE != total[:-1] // _SHINGLES_AT_ONCE
    return np.split(pairs, np.flatnonzero(cut))


def pair_tasks(candidates: Candidates, sizes: NDArray[np.int64]) -> list[PairTask]:
    """The candidates cut into tasks; `sizes` counts the shingles of every document, in order."""
    starts = np.cumsum(sizes) - sizes
    tasks = []
    for number, begin in enumerate(range(0, len(candidates), PAIRS_PER_TASK)):
        left = candidates.left[begin : begin + PAIRS_PER_TASK]
        right = candidates.right[begin : begin + PAIRS_PER_TASK]
        tasks.append(
            PairTask(f"{number:06d}", starts[left], sizes[left], starts[right], sizes[right])
        )
    return tasks


def verify_pairs(task: PairTask, out: ShardOutput, *, store: ShingleStore, floor: float) -> None:
    """Leave the similarity of each pair of the task in the scratch table `similarity`."""
    out.write_scratch("similarity", pa.table({"similarity": jaccard(task, store, floor)}))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Verified pairs left < right, sorted; `band` is the first that proposed the pair."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    similarity: NDArray[np.float32]
    band: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.left)


def verified_pairs(candidates: Candidates, results: list[ShardResult], floor: float) -> Pairs:
    """The candidates whose exact similarity, as `verify_pairs` left it, reaches `floor`."""
    found = [result.read_scratch("similarity")["similarity"].to_numpy() for result in results]
    similarity = np.concatenate([np.empty(0, np.float32), *found])
    near = at_least(similarity, floor)
    return Pairs(
        candidates.left[near], candidates.right[near], similarity[near], candidates.band[near]
    )
