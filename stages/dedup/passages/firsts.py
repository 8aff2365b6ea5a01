"""Which document holds each passage first: the runs of all shards merged, a range of hashes a task.

Generation, then id, is the rank of a document. A task reads its range of every run, finds the
distinct passages that occur more than once and the document of least rank that has each, and tells
the runs of it that hold them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.dedup.passages.occurrences import FIRST, Firsts, firsts_of, read_records
from stages.text.native import compiled

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

Repeated = NDArray[np.void]

REPEATED = np.dtype(
    [("hash", "<u8"), ("high", "<u8"), ("low", "<u8"), ("count", "<u8"), ("here", "?")]
)
"""A passage that occurs more than once: the id of the document that holds it first (two halves),
how often it occurs in all documents, and whether the run that is told holds that first place."""

_OFFSET = np.dtype("<i8")
_ALL = 1 << 64
_BLOCK = 512
"""Records read at once at the end of a search."""


class Run(NamedTuple):
    """A run as it was written: its number among all runs, where it lies, and what it holds."""

    number: int
    file: int
    documents: int
    place: int
    """Occurrences of the shard before it."""
    occurrences: int
    first: int
    """Distinct passages of the shard before it."""
    firsts: int


@dataclass(frozen=True, eq=False)
class Runs:
    """All runs of one measure. Picklable; opens a file only while it reads.

    `files` are the shards' results, with their scratch files, `generations` of their documents.
    """

    measure: str
    files: tuple[ShardResult, ...]
    generations: tuple[int, ...]
    by_file: tuple[tuple[Run, ...], ...]

    @property
    def number(self) -> int:
        """How many runs there are."""
        return sum(map(len, self.by_file))

    @classmethod
    def of(cls, measure: str, noted: Sequence[ShardResult], generations: Sequence[int]) -> Runs:
        """What a map over shards left, whose value has the runs of each measure."""
        number = count()
        by_file = []
        for file, result in enumerate(noted):
            sizes = result.value["runs"][measure]
            places = accumulate((size[1] for size in sizes), initial=0)
            firsts = accumulate((size[2] for size in sizes), initial=0)
            begins = zip(sizes, places, firsts, strict=False)
            by_file.append(
                tuple(
                    Run(next(number), file, documents, place, passages, first, distinct)
                    for (documents, passages, distinct), place, first in begins
                )
            )
        files = tuple(replace(result, value={}) for result in noted)
        return cls(measure, files, tuple(generations), tuple(by_file))

    def within(self, low: int, high: int) -> tuple[Firsts, NDArray[np.int32]]:
        """The records with low <= hash < high of all runs, and the number of the run of each."""
        found, numbers = [np.empty(0, dtype=FIRST)], [np.empty(0, dtype=np.int32)]
        for runs, result in zip(self.by_file, self.files, strict=True):
            with open(result.scratch_path(firsts_of(self.measure)), "rb") as file:
                for run in runs:
                    start, end = (_place(file.fileno(), run, hash) for hash in (low, high))
                    records = read_records(file, FIRST, start, end)
                    found.append(records)
                    numbers.append(np.full(len(records), run.number, dtype=np.int32))
        return np.concatenate(found), np.concatenate(numbers)

    def tasks(self, rows_per_task: int) -> list[HashRange]:
        """Ranges of hashes, each with about `rows_per_task` records at most.

        Their ids change with the runs, so that what was found in other runs is never taken up.
        """
        records = sum(run.firsts for runs in self.by_file for run in runs)
        number = -(-records // rows_per_task)
        digest = hashlib.sha256(json.dumps([number, self.by_file]).encode()).hexdigest()[:12]
        return [
            HashRange(
                f"{self.measure}-{digest}-{task:06d}",
                self.measure,
                task * _ALL // number,
                (task + 1) * _ALL // number,
            )
            for task in range(number)
        ]


@dataclass(frozen=True)
class HashRange:
    """A task of the merge: low <= hash < high."""

    id: str
    measure: str
    low: int
    high: int


def _place(file: int, run: Run, hash: int) -> int:
    """How many records of the file lie before the first of the run with at least this hash."""
    if hash >= _ALL:
        return run.first + run.firsts
    low, high = run.first, run.first + run.firsts
    while high - low > _BLOCK:
        middle = (low + high) // 2
        if int.from_bytes(os.pread(file, 8, middle * FIRST.itemsize), "little") < hash:
            low = middle + 1
        else:
            high = middle
    data = os.pread(file, (high - low) * FIRST.itemsize, low * FIRST.itemsize)
    records = np.frombuffer(data, dtype=FIRST)
    return low + int(np.searchsorted(records["hash"], np.uint64(hash)))


def first_passages(task: HashRange, out: ShardOutput, *, runs: dict[str, Runs]) -> dict[str, Any]:
    """Leave `repeated`: where the records of each run begin, then the records by run and hash."""
    given = runs[task.measure]
    runs_of_files = [len(runs_of) for runs_of in given.by_file]
    generations = np.repeat(np.array(given.generations, dtype=np.int64), runs_of_files)
    found, numbers = given.within(task.low, task.high)
    order = np.argsort(found["hash"])
    found, numbers = found[order], numbers[order]
    first, counts = _first_of_each(
        found["hash"].copy(), generations[numbers], found["high"].copy(), found["low"].copy(),
        found["count"].copy(),
    )  # fmt: skip
    several = np.flatnonzero(counts[first] > 1)
    told = np.empty(len(several), dtype=REPEATED)
    told["hash"] = found["hash"][several]
    told["high"], told["low"] = found["high"][first[several]], found["low"][first[several]]
    told["count"], told["here"] = counts[first[several]], first[several] == several
    by_run = np.argsort(numbers[several], kind="stable")
    offsets = np.zeros(given.number + 1, dtype=_OFFSET)
    np.cumsum(np.bincount(numbers[several], minlength=given.number), out=offsets[1:])
    with out.open_scratch("repeated") as file:
        file.write(offsets.view(np.uint8))
        file.write(told[by_run].view(np.uint8))
    return {"records": len(found), "distinct": int(np.count_nonzero(counts))}


@compiled
def _first_of_each(
    hashes: NDArray[np.uint64],
    generations: NDArray[np.int64],
    high: NDArray[np.uint64],
    low: NDArray[np.uint64],
    counts: NDArray[np.uint32],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each record that of least rank with its hash; there, and only there, the sum of counts.

    Equal hashes lie together.
    """
    first = np.empty(len(hashes), dtype=np.int64)
    totals = np.zeros(len(hashes), dtype=np.int64)
    start = 0
    while start < len(hashes):
        least, end, total = start, start, np.int64(0)
        while end < len(hashes) and hashes[end] == hashes[start]:
            rank = (generations[end], high[end], low[end])
            if rank < (generations[least], high[least], low[least]):
                least = end
            total += np.int64(counts[end])
            end += 1
        first[start:end] = least
        totals[least] = total
        start = end
    return first, totals


@dataclass(frozen=True, eq=False)
class Found:
    """What the merge of one measure found, for every run. Picklable."""

    runs: int
    files: tuple[ShardResult, ...]

    def of(self, run: Run) -> Repeated:
        """The repeated passages of a run, by hash."""
        told = [np.empty(0, dtype=REPEATED)]
        head = (self.runs + 1) * _OFFSET.itemsize
        for result in self.files:
            with open(result.scratch_path("repeated"), "rb") as file:
                start, end = read_records(file, _OFFSET, run.number, run.number + 2).tolist()
                told.append(read_records(file, REPEATED, start, end, head))
        return np.concatenate(told)
