"""Pairs of documents in files: sorted records, read by ranges of documents and never whole.

A pair is (right, left), left < right as document numbers. A file holds records of one dtype,
little-endian, end to end, sorted by (right, left), without a header. Several files together are
one set of pairs, whoever wrote which of them. In files of mirrored pairs the two columns have
changed places, so that the same search finds a document's pairs with later ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact
from stages.dedup.sorted_runs import read_pieces, records_below

if TYPE_CHECKING:
    from stages.engine import LeftFile, ShardOutput, ShardResult

Pairs = NDArray[np.void]

CANDIDATE = np.dtype([("right", "<i8"), ("left", "<i8"), ("band", "<i2")])
"""A pair and the least band that proposed it; -1: found through a third document."""
VERIFIED = np.dtype([*CANDIDATE.descr, ("jaccard", "<f4"), ("containment", "<f4")])
"""A pair with its two measures, NaN where it was not verified."""
NUMBER = np.dtype([("right", "<i8")])
"""A document, of files that list some by number."""

BYTES_AT_WORK = 200
"""A record in memory, with what sorting and ranking it takes."""
TWO_HOP = -1
"""Band of a pair that no band proposed."""
_KEY_SIZE = 8
"""Bytes of the first column, by which files are searched."""


def distinct_pairs(pairs: Pairs) -> Pairs:
    """Each pair once, sorted by (right, left), with the least of its bands."""
    if _ascend(pairs["right"], pairs["left"]):
        return pairs
    order = _sorting(pairs["right"], pairs["left"])
    right, left = pairs["right"][order], pairs["left"][order]
    new = np.ones(len(pairs), dtype=bool)
    new[1:] = (right[1:] != right[:-1]) | (left[1:] != left[:-1])
    if new.all():
        return pairs[order]
    starts = np.flatnonzero(new)
    distinct = pairs[order[starts]]
    distinct["band"] = np.minimum.reduceat(pairs["band"][order], starts)
    return distinct


def mirror_pairs(pairs: Pairs) -> Pairs:
    """The same pairs with left and right in each other's place, sorted by the new first column."""
    turned = pairs.copy()
    turned["right"], turned["left"] = pairs["left"], pairs["right"]
    return turned[_sorting(turned["right"], turned["left"])]


def renumber_pairs(pairs: Pairs, starts: NDArray[np.int64], later: NDArray[np.int64]) -> Pairs:
    """Pairs of an earlier run in the numbers of this one, sorted by (right, left).

    `starts` are the first numbers of the earlier run's generations and the end of the last one,
    int64 [generations + 1]; `later` are this run's first numbers of the same generations, -1 where
    this run does not have one: its pairs are skipped. Left and right change places where this run
    takes the generations in another order.
    """
    if np.array_equal(starts[:-1], later) and _ascend(pairs["right"], pairs["left"]):
        return pairs
    right, right_there = _renumber(pairs["right"], starts, later)
    left, left_there = _renumber(pairs["left"], starts, later)
    renumbered = pairs.copy()
    renumbered["right"], renumbered["left"] = np.maximum(right, left), np.minimum(right, left)
    there = right_there & left_there
    if not there.all():
        renumbered = renumbered[there]
    if _ascend(renumbered["right"], renumbered["left"]):
        return renumbered
    return renumbered[_sorting(renumbered["right"], renumbered["left"])]


def write_pairs(out: ShardOutput, name: str, pairs: Pairs) -> int:
    """Leave `pairs`, in any order and repeated or not, as a scratch file; returns how many differ.

    The dtype is kept: CANDIDATE or VERIFIED.
    """
    distinct = distinct_pairs(pairs)
    with out.open_scratch(name) as file:
        file.write(distinct.tobytes())
    return len(distinct)


def write_numbers(out: ShardOutput, name: str, numbers: NDArray[np.int64]) -> None:
    """Leave documents, in any order and repeated or not, as a scratch file of NUMBER."""
    with out.open_scratch(name) as file:
        file.write(distinct_numbers(numbers).astype(NUMBER["right"]).tobytes())


def distinct_numbers(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number once, sorted. (`np.unique` hashes integers, which takes longer.)"""
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


def read_pairs(path: Path, dtype: np.dtype[Any], begin: int, end: int) -> Pairs:
    """Records [begin, end) of one file, as they are. CorruptArtifact if it is cut short."""
    with _Records(path, dtype) as records:
        return records.read(begin, end)


@dataclass(frozen=True, eq=False)
class PairFiles:
    """Files of pairs of one dtype, as one set. Picklable; a file is open only while it is read."""

    files: tuple[Path | LeftFile, ...]
    counts: NDArray[np.int64]
    """Records of each file."""
    spans: NDArray[np.int64]
    """[files, 2]: the first column of each file's first and last record."""
    dtype: np.dtype[Any]

    @classmethod
    def open(cls, files: Sequence[Path | LeftFile], dtype: np.dtype[Any]) -> PairFiles:
        """These files; empty ones are left out. CorruptArtifact if one is cut short."""
        rows: list[tuple[Path | LeftFile, int, int, int]] = []
        for file in files:
            path = _local_path(file)
            count, rest = divmod(os.stat(path).st_size, dtype.itemsize)
            if rest:
                raise _cut_short(path)
            if count:
                with _Records(path, dtype) as records:
                    rows.append((file, count, records.key(0), records.key(count - 1)))
        numbers = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 3)
        return cls(tuple(row[0] for row in rows), numbers[:, 0], numbers[:, 1:], dtype)

    @classmethod
    def from_results(
        cls, results: Sequence[ShardResult], name: str, dtype: np.dtype[Any]
    ) -> PairFiles:
        """The scratch files called `name` that a finished map left."""
        return cls.open([result.left(None, name) for result in results], dtype)

    def joined(self, other: PairFiles) -> PairFiles:
        """The files of both, of one dtype."""
        return PairFiles(
            (*self.files, *other.files),
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.spans, other.spans]),
            self.dtype,
        )

    def __len__(self) -> int:
        """Records of all files; a pair counts once for each file that holds it."""
        return int(self.counts.sum())

    def between(self, low: int, high: int) -> Pairs:
        """The pairs whose first column is in [low, high): distinct, with the least band, sorted."""
        whole = max(len(self), 1)
        pieces = list(self.slices(low, high, whole))
        return distinct_pairs(np.concatenate([np.empty(0, self.dtype), *pieces]))

    def slices(self, low: int, high: int, most: int) -> Iterator[Pairs]:
        """The records whose first column is in [low, high), file by file, at most `most` at a time.

        For what needs no order and must hold no more than that.
        """
        near = (self.spans[:, 0] < high) & (self.spans[:, 1] >= low)
        for file in np.flatnonzero(near).tolist():
            with _Records(_local_path(self.files[file]), self.dtype) as records:
                edges = np.array([low, high], dtype=np.int64)
                begin, end = records.below(edges, int(self.counts[file])).tolist()
                for start in range(begin, end, most):
                    yield records.read(start, min(start + most, end))

    def records_for(self, numbers: NDArray[np.int64], most: int | None) -> Pairs | None:
        """All records whose first column is one of `numbers`, which ascend; file by file.

        None where there are more than `most` of them.
        """
        pieces = [np.empty(0, dtype=self.dtype)]
        held = 0
        for piece in self.pieces(numbers, most or max(len(self), 1)):
            pieces.append(piece)
            held += len(piece)
            if most is not None and held > most:
                return None
        return np.concatenate(pieces)

    def pieces(self, numbers: NDArray[np.int64], most: int) -> Iterator[Pairs]:
        """The same records, file by file, at most `most` at a time."""
        for file in np.argsort(self.spans[:, 0], kind="stable").tolist():
            first, last = self.spans[file].tolist()
            own = numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, last, "right")]
            if not len(own):
                continue
            with _Records(_local_path(self.files[file]), self.dtype) as records:
                edges = np.stack([own, own + 1], axis=1).ravel()
                spans = records.below(edges, int(self.counts[file])).reshape(-1, 2)
                for part in _portions(spans[spans[:, 1] > spans[:, 0]], most):
                    yield records.gathered(part)

    def counts_at(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Records with a first column in [bounds[i], bounds[i + 1]): int64 [len(bounds) - 1].

        `bounds` ascend. A pair that several files hold counts several times.
        """
        before = np.zeros(len(bounds), dtype=np.int64)
        for file, (first, last) in enumerate(self.spans.tolist()):
            count = int(self.counts[file])
            beyond = bounds > last
            before[beyond] += count
            within = np.flatnonzero((bounds > first) & ~beyond)
            if len(within):
                with _Records(_local_path(self.files[file]), self.dtype) as records:
                    before[within] += records.below(bounds[within], count)
        return np.diff(before)


def _local_path(file: Path | LeftFile) -> Path:
    return file if isinstance(file, Path) else file.path()


class _Records:
    """One open file, read by position."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._path, self._dtype = path, dtype
        self._file = os.open(path, os.O_RDONLY)

    def __enter__(self) -> _Records:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def key(self, index: int) -> int:
        """The first column of one record."""
        data = bytearray(_KEY_SIZE)
        self._fill(memoryview(data), index * self._dtype.itemsize)
        return int.from_bytes(data, "little", signed=True)

    def read(self, begin: int, end: int) -> Pairs:
        """Records [begin, end)."""
        records = np.empty(end - begin, dtype=self._dtype)
        self._fill(records.view(np.uint8).data, begin * self._dtype.itemsize)
        return records

    def _fill(self, view: memoryview, place: int) -> None:
        """Read from `place` on until `view` is full; a read may be short."""
        while len(view):
            count = os.preadv(self._file, [view], place)
            if not count:
                raise _cut_short(self._path)
            view, place = view[count:], place + count

    def gathered(self, spans: NDArray[np.int64]) -> Pairs:
        """The records [begin, end) of each of `spans` [spans, 2], one after the other."""
        width = self._dtype.itemsize
        starts, sizes = spans[:, 0] * width, (spans[:, 1] - spans[:, 0]) * width
        to = np.cumsum(sizes) - sizes
        records = np.empty(int(sizes.sum()) // width, dtype=self._dtype)
        if read_pieces(self._file, starts, sizes, to, records.view(np.uint8)) < len(spans):
            return np.concatenate([self.read(begin, end) for begin, end in spans.tolist()])
        return records

    def below(self, numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """How many of `count` records have a first column below each of `numbers`, which ascend."""
        counts = records_below(self._file, self._dtype.itemsize, count, numbers)
        if len(counts) < len(numbers):
            raise _cut_short(self._path)
        return counts


def _portions(spans: NDArray[np.int64], most: int) -> Iterator[NDArray[np.int64]]:
    """`spans` [spans, 2] of records in parts of at most `most`; longer spans are cut."""
    long = spans[:, 1] - spans[:, 0] > most
    if long.any():
        spans = np.array(
            [
                (start, min(start + most, end))
                for begin, end in spans.tolist()
                for start in range(begin, end, most)
            ]
        )
    ends = np.cumsum(spans[:, 1] - spans[:, 0])
    first, before = 0, 0
    while first < len(spans):
        last = int(np.searchsorted(ends, before + most, side="right"))
        yield spans[first:last]
        first, before = last, int(ends[last - 1])


def _ascend(first: NDArray[np.int64], second: NDArray[np.int64]) -> bool:
    """Whether each (first, second) is greater than the one before it: no sorting is needed."""
    less = (first[:-1] < first[1:]) | ((first[:-1] == first[1:]) & (second[:-1] < second[1:]))
    return bool(less.all())


def _sorting(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order by (first, second); of equal ones any. Neither is negative."""
    if not len(first):
        return np.empty(0, dtype=np.int64)
    least, width = int(first.min()), int(second.max()) + 1
    if (int(first.max()) - least + 1) * width < 1 << 63:
        # One number sorts several times faster than two.
        return np.argsort((first - least) * width + second)
    return np.lexsort((second, first))


def _renumber(
    numbers: NDArray[np.int64], starts: NDArray[np.int64], later: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """This run's numbers, and whether there are such."""
    generation = np.searchsorted(starts, numbers, side="right") - 1
    start = later[generation]
    return numbers - starts[generation] + start, start >= 0


def _cut_short(path: Path) -> CorruptArtifact:
    return CorruptArtifact(
        "a file of pairs is cut short", where=str(path), hint="run the step that wrote it again"
    )
