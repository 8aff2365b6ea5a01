"""Candidate pairs: who shares a band key with whom (Leskovec, Rajaraman, Ullman, ch. 3.4).

In a bucket of more than `max_bucket` documents each is compared with the first `max_bucket` alone,
by rank (generation, then id): the pairs grow with the bucket, not with its square, and what a
document is compared with depends on its own and earlier generations alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stages.dedup.index_files import band_table
from stages.dedup.pairs import CANDIDATE, PairFiles, write_pairs
from stages.dedup.sorted_runs import Members, Piece, distinct_values, even_ranges, repeated_values

if TYPE_CHECKING:
    from stages.dedup.exact import Classes
    from stages.dedup.index import Corpus
    from stages.engine import ShardOutput, ShardResult

_OLD_FOR_ONE = 16
"""Old keys that are looked through in the time that one new key takes."""
_ROOM = 0.8
"""Share of what fits into memory that a task should have, since ranges are not quite even."""


@dataclass(frozen=True)
class BucketTask:
    """The buckets of a band whose key is in [low, high)."""

    band: int
    low: int
    high: int

    @property
    def id(self) -> str:
        """Band and range."""
        return f"{self.band:03d}-{self.low:016x}-{self.high:017x}"


def bucket_tasks(corpus: Corpus, rows: int) -> list[BucketTask]:
    """Tasks that hold at most about `rows` documents each."""
    new = corpus.compared(new=True)
    if not new:
        return []
    work = new + corpus.compared(new=False) / _OLD_FOR_ONE
    parts = int(work / (_ROOM * rows)) + 1
    return [BucketTask(band, *span) for band in range(corpus.bands) for span in even_ranges(parts)]


def propose(
    task: BucketTask,
    out: ShardOutput,
    *,
    corpus: Corpus,
    classes: Classes,
    max_bucket: int,
    rows: int,
    pairs_at_once: int,
) -> dict[str, Any]:
    """Write the pairs of the task's buckets, right a new document, as scratch files of CANDIDATE.

    Only firsts of exact classes are compared. At most about `rows` documents and `pairs_at_once`
    pairs are held, whatever the keys are.
    """
    table = band_table(task.band)
    buckets = _Buckets(corpus, classes, max_bucket, rows)
    new = Piece.in_range(list(corpus.runs(table, new=True)), task.low, task.high)
    old = Piece.in_range(list(corpus.runs(table, new=False)), task.low, task.high)
    files: list[str] = []
    pairs = 0
    for right, left in buckets.pairs(new, old, pairs_at_once):
        records = np.empty(len(right), CANDIDATE)
        records["right"], records["left"] = np.maximum(right, left), np.minimum(right, left)
        records["band"] = task.band
        files.append(f"pairs-{len(files):04d}")
        pairs += write_pairs(out, files[-1], records)
    return {"files": files, "pairs": pairs, "capped": buckets.capped}


def proposed_pairs(results: Sequence[ShardResult]) -> PairFiles:
    """All pairs that `propose` wrote."""
    files = [result.left(None, name) for result in results for name in result.value["files"]]
    return PairFiles.open(files, CANDIDATE)


Numbers = NDArray[np.int64]


@dataclass(eq=False)
class _Buckets:
    """The buckets of a range of keys."""

    corpus: Corpus
    classes: Classes
    max_bucket: int
    rows: int
    capped: int = 0
    """Buckets of more than `max_bucket` documents, a new one among them."""

    def pairs(self, new: Piece, old: Piece, at_once: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Pairs in parts of about `at_once`: one side each; either may be the greater number."""
        for piece in new.fitting(self.rows):
            waiting = [(piece, old.between(piece.low, piece.high))]
            while waiting:
                new_piece, old_piece = waiting.pop()
                held = None if new_piece.rows > self.rows else self._held(new_piece, old_piece)
                if held is not None:
                    yield from self._pairs(new_piece, *held, at_once)
                elif new_piece.is_one_value:
                    yield from self._pairs_of_one_value(new_piece, old_piece, at_once)
                else:
                    waiting.extend(zip(new_piece.halves(), old_piece.halves(), strict=True))

    def _held(self, new: Piece, old: Piece) -> tuple[NDArray[np.uint64], Numbers] | None:
        """Keys and numbers of new documents, and of old ones that share a key with a new one;
        None if they are too many."""
        keys, numbers = list[NDArray[np.uint64]](), list[Numbers]()
        for run, begin, end in new.spans():
            documents = run.numbers(begin, end)
            is_first = self._are_first(documents)
            keys.append(run.values(begin, end)[is_first])
            numbers.append(documents[is_first])
        held = sum(map(len, keys))
        if held and old.rows:
            members = Members(distinct_values(np.concatenate(keys)), new.low, new.high)
            for run, begin, end in old.spans():
                values = run.values(begin, end)
                hits = members.places(values)
                if not len(hits):
                    continue
                held += len(hits)
                if held > self.rows:
                    return None
                low, high = begin + int(hits[0]), begin + int(hits[-1]) + 1
                documents = run.numbers(low, high)[hits - hits[0]]
                is_first = self._are_first(documents)
                keys.append(values[hits][is_first])
                numbers.append(documents[is_first])
        return (
            np.concatenate([np.empty(0, np.uint64), *keys]),
            np.concatenate([np.empty(0, np.int64), *numbers]),
        )

    def _are_first(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Whether each of some documents of one run is the first of its class."""
        if not len(numbers):
            return np.empty(0, dtype=np.bool_)
        low, high = int(numbers.min()), int(numbers.max()) + 1
        return self.classes.is_first(low, high)[numbers - low]

    def _pairs(
        self, span: Piece, keys: NDArray[np.uint64], numbers: Numbers, at_once: int
    ) -> Iterator[tuple[Numbers, Numbers]]:
        bucket, members = _shared_keys(keys, numbers, span.low, span.high)
        if not len(members):
            return
        sizes = np.bincount(bucket)
        self.capped += int((sizes > self.max_bucket).sum())
        members = members[self._order(bucket, members, sizes)]
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        earlier = np.minimum(np.arange(len(members)) - starts, self.max_bucket)
        earlier[members < self.corpus.first_new] = 0
        for begin, end in _parts(earlier, at_once):
            yield _pairs_with_earlier(members, starts, earlier, begin, end)

    def _order(self, bucket: Numbers, members: Numbers, sizes: Numbers) -> Numbers:
        """By bucket, then by number; in buckets above the cap by rank."""
        order = _by_two(bucket, members)
        capped = sizes[bucket[order]] > self.max_bucket
        if capped.any():
            some = order[capped]
            rank = self.corpus.rank_ids(members[some])
            generation = self.corpus.generations(members[some])
            order[capped] = some[np.lexsort((members[some], rank, generation, bucket[some]))]
        return order

    def _pairs_of_one_value(
        self, new: Piece, old: Piece, at_once: int
    ) -> Iterator[tuple[Numbers, Numbers]]:
        """A bucket of more documents than are to be held, read twice: for its first ones, then for
        all the new ones that are compared with them."""
        least = np.empty(0, np.int64)
        members = newest = 0
        for numbers in chain(self._numbers(old), self._numbers(new)):
            members += len(numbers)
            newest = max(newest, int(numbers.max(initial=0)))
            least = self._by_rank(np.concatenate([least, numbers]))[: self.max_bucket]
        self.capped += members > self.max_bucket and newest >= self.corpus.first_new
        place = {number: position for position, number in enumerate(least.tolist())}
        step = max(at_once // self.max_bucket, 1)
        for numbers in self._numbers(new):
            for begin in range(0, len(numbers), step):
                part = numbers[begin : begin + step]
                earlier = np.array([place.get(n, len(least)) for n in part.tolist()], np.int64)
                left = np.arange(int(earlier.sum())) - np.repeat(
                    np.cumsum(earlier) - earlier, earlier
                )
                if len(left):
                    yield np.repeat(part, earlier), least[left]

    def _numbers(self, piece: Piece) -> Iterator[Numbers]:
        for run, begin, end in piece.spans():
            numbers = run.numbers(begin, end)
            yield numbers[self._are_first(numbers)]

    def _by_rank(self, numbers: Numbers) -> Numbers:
        rank, generation = self.corpus.rank_ids(numbers), self.corpus.generations(numbers)
        return numbers[np.lexsort((numbers, rank, generation))]


def _shared_keys(
    keys: NDArray[np.uint64], numbers: Numbers, low: int, high: int
) -> tuple[Numbers, Numbers]:
    """The documents whose key another one has, by bucket, and the buckets: 0, 0, …, 1, 1, …

    All keys are in [low, high).
    """
    places = Members(repeated_values(keys.copy()), low, high).likely(keys)
    order = places[np.argsort(keys[places])]
    ordered = keys[order]
    is_start = np.ones(len(order) + 1, dtype=np.bool_)
    is_start[1:-1] = ordered[1:] != ordered[:-1]
    is_member = ~(is_start[:-1] & is_start[1:])
    return np.cumsum(is_start[:-1][is_member]) - 1, numbers[order[is_member]]


def _by_two(one: Numbers, two: Numbers) -> Numbers:
    """The order by `one`, then by `two`; neither is negative."""
    width = int(two.max()) + 1
    if (int(one.max()) + 1) * width < 1 << 63:
        return np.argsort(one * width + two)
    return np.lexsort((two, one))


def _parts(counts: Numbers, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive places whose counts sum up to at most `most`, or one; none where all are 0."""
    sums = np.cumsum(counts)
    begin = before = 0
    while before < sums[-1]:
        end = max(int(np.searchsorted(sums, before + most, side="right")), begin + 1)
        yield begin, end
        begin, before = end, int(sums[end - 1])


def _pairs_with_earlier(
    members: Numbers, starts: Numbers, earlier: Numbers, begin: int, end: int
) -> tuple[Numbers, Numbers]:
    """Members [begin, end), each paired with the first `earlier` members of its bucket."""
    counts = earlier[begin:end]
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(members[begin:end], counts), members[
        np.repeat(starts[begin:end], counts) + within
    ]
