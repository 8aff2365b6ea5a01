"""Documents that say the same: classes of equal words, and of equal texts, by 128-bit digests.

A class is named by its member of least rank: of the earliest documents output, and there the least
id. So what is said of a document depends on its own and earlier outputs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.dedup.index_files import NAMES, TEXTS, WORDS, Table
from stages.dedup.ranges import Members, Piece, different, even_ranges, repeated
from stages.text.native import compiled

if TYPE_CHECKING:
    from stages.dedup.index import Corpus
    from stages.dedup.index_reading import SortedRun
    from stages.engine import ShardOutput

Equal = Literal["words", "texts", "names"]
TABLES: dict[Equal, Table] = {"words": WORDS, "texts": TEXTS, "names": NAMES}
_NAMES_TOLD = 1_000
"""Beginnings of ids that are looked at when some occur twice: so many do not meet by chance."""
COPY = np.dtype([("right", "<i8"), ("left", "<i8")])
"""A document that is not the first of its class, and the first one. The names of the columns are
those by which `pairs.PairFiles` finds its way."""


@dataclass(frozen=True)
class ClassTask:
    """Digests of one table in [low, high)."""

    equal: Equal
    low: int
    high: int

    @property
    def id(self) -> str:
        """Table and range."""
        return f"{self.equal}-{self.low:016x}-{self.high:017x}"


def class_tasks(corpus: Corpus, rows: int) -> list[ClassTask]:
    """Tasks of about `rows` documents each."""
    parts = max(-(-corpus.documents // rows), 1)
    return [ClassTask(equal, *span) for equal in TABLES for span in even_ranges(parts)]


def find_classes(task: ClassTask, out: ShardOutput, *, corpus: Corpus, rows: int) -> dict[str, Any]:
    """Write the copies (COPY, sorted) among the documents with a digest in the task's range.

    Of words every copy, since only firsts are compared; of texts those that are new. Of names none
    may occur twice: raises InputError. At most about `rows` documents are held.
    """
    runs = list(corpus.runs(TABLES[task.equal]))
    found = _Found(out, corpus.first_new)
    for piece in Piece.of(runs, task.low, task.high).fitting(rows):
        if task.equal == "names":
            _check_names(piece, corpus)
        elif piece.rows <= rows:
            again = _Rows.repeated(piece, corpus, new_only=task.equal == "texts")
            found.add(again.copies(), again.classes())
        else:
            _of_one_value(piece, corpus, found, rows)
    return {"files": found.files, "new_copies": found.new_copies, "classes": found.classes}


class _Found:
    """Files of copies that a task leaves."""

    def __init__(self, out: ShardOutput, first_new: int) -> None:
        self._out, self._first_new, self.files = out, first_new, list[str]()
        self.new_copies = self.classes = 0

    def add(self, copies: NDArray[np.void], classes: int) -> None:
        """One more file, and how many classes with a new document it speaks of."""
        self.classes += classes
        if len(copies):
            name = f"copies-{len(self.files):04d}"
            with self._out.open_scratch(name) as file:
                file.write(copies[np.argsort(copies["right"])].tobytes())
            self.files.append(name)
            self.new_copies += int((copies["right"] >= self._first_new).sum())


@dataclass(frozen=True, eq=False)
class _Rows:
    """Documents by class, in the order of their numbers' runs: so generations never fall."""

    group: NDArray[np.int64]
    number: NDArray[np.int64]
    first: NDArray[np.int64]
    """The first document of each group."""
    first_new: int

    @classmethod
    def repeated(cls, piece: Piece, corpus: Corpus, *, new_only: bool) -> _Rows:
        """The documents whose digest occurs more than once; `new_only`: once at least in a new
        one."""
        values = _worth_a_look(piece, corpus, new_only=new_only)
        members = Members(values, piece.low, piece.high)
        columns: list[tuple[NDArray[Any], ...]] = []
        for run, begin, end in piece.spans():
            mine = run.values(begin, end)
            hits = members.found(mine)
            if len(hits):
                group = np.searchsorted(values, mine[hits])
                columns.append((group, *_digest_rows(run, begin, hits)))
        if not columns:
            nothing = np.empty(0, np.int64)
            return cls(nothing, nothing, nothing, corpus.first_new)
        group, lower, rank, number = (
            np.concatenate(column) for column in zip(*columns, strict=True)
        )
        group, groups = _told_apart(group, lower, len(values))
        first = np.full(groups, -1, np.int64)
        least_rank(group, corpus.generations(number), rank, first)
        return cls(group, number, number[first], corpus.first_new)

    def copies(self) -> NDArray[np.void]:
        """Those that are not the first."""
        first = self.first[self.group]
        is_copy = self.number != first
        return copies_of(self.number[is_copy], first[is_copy])

    def classes(self) -> int:
        """Groups of several documents, a new one among them."""
        several = np.bincount(self.group, minlength=len(self.first)) > 1
        newest = np.zeros(len(self.first), dtype=np.bool_)
        newest[self.group[self.number >= self.first_new]] = True
        return int((several & newest).sum())


def copies_of(numbers: NDArray[np.int64], firsts: NDArray[np.int64]) -> NDArray[np.void]:
    """Records of COPY."""
    found = np.empty(len(numbers), COPY)
    found["right"], found["left"] = numbers, firsts
    return found


def _worth_a_look(piece: Piece, corpus: Corpus, *, new_only: bool) -> NDArray[np.uint64]:
    if not new_only or not corpus.first_new:
        return repeated(piece.values())
    new = np.concatenate(
        [np.empty(0, np.uint64)]
        + [r.values(b, e) for r, b, e in piece.spans() if r.shard.start >= corpus.first_new]
    )
    twice, once = repeated(new), different(new)
    members = Members(once, piece.low, piece.high)
    met = [twice]
    for run, begin, end in piece.spans():
        if run.shard.start < corpus.first_new:
            values = run.values(begin, end)
            met.append(values[members.found(values)])
    return different(np.concatenate(met))


def _digest_rows(
    run: SortedRun, begin: int, hits: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    """Lower half of the digest, rank within the generation, and number of some rows."""
    low, high = begin + int(hits[0]), begin + int(hits[-1]) + 1
    at = hits - hits[0]
    lower, rank = run.extra(1, low, high)[at], run.extra(2, low, high)[at]
    return lower, rank, run.numbers(low, high)[at]


def _told_apart(
    group: NDArray[np.int64], lower: NDArray[np.uint64], groups: int
) -> tuple[NDArray[np.int64], int]:
    """Groups by the whole digest, given those by its upper half (which are nearly always it)."""
    example = np.empty(groups, np.uint64)
    example[group] = lower
    if (example[group] == lower).all():
        return group, groups
    order = np.lexsort((lower, group))
    new = np.ones(len(order), dtype=np.bool_)
    ordered_group, ordered_lower = group[order], lower[order]
    new[1:] = (ordered_group[1:] != ordered_group[:-1]) | (ordered_lower[1:] != ordered_lower[:-1])
    apart = np.empty_like(group)
    apart[order] = np.cumsum(new) - 1
    return apart, int(new.sum())


@compiled
def least_rank(
    group: NDArray[np.int64],
    generation: NDArray[np.int64],
    rank: NDArray[np.uint64],
    first: NDArray[np.int64],
) -> None:
    """The place of the row of least (generation, rank) in each group; of equal ones the first.

    `first` holds -1 for each group. Generations never fall from row to row of a group.
    """
    for row in range(len(group)):
        best = first[group[row]]
        if best < 0 or (generation[row] == generation[best] and rank[row] < rank[best]):
            first[group[row]] = row


def _of_one_value(piece: Piece, corpus: Corpus, found: _Found, rows: int) -> None:
    """Copies among more documents of one value than are to be held: read twice."""
    best: dict[int, tuple[int, int, int]] = {}
    members: dict[int, int] = {}
    for lower, rank, number in _in_parts(piece, rows):
        generation = corpus.generations(number)
        for value in np.unique(lower).tolist():
            mine = np.flatnonzero(lower == np.uint64(value))
            least = mine[np.lexsort((number[mine], rank[mine], generation[mine]))[0]]
            one = (int(generation[least]), int(rank[least]), int(number[least]))
            best[value] = min(best.get(value, one), one)
            members[value] = members.get(value, 0) + len(mine)
    newest = set[int]()
    for lower, _, number in _in_parts(piece, rows):
        values, inverse = np.unique(lower, return_inverse=True)
        first = np.array([best[value][2] for value in values.tolist()], np.int64)[inverse]
        newest.update(np.unique(lower[number >= corpus.first_new]).tolist())
        is_copy = number != first
        found.add(copies_of(number[is_copy], first[is_copy]), 0)
    found.classes += sum(members[value] > 1 for value in newest)


def _in_parts(
    piece: Piece, rows: int
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]]:
    """Lower halves, ranks and numbers of the rows, about `rows` at a time."""
    held: list[tuple[NDArray[Any], ...]] = []
    for run, begin, end in piece.spans():
        held.append(_digest_rows(run, begin, np.arange(end - begin)))
        if sum(len(columns[0]) for columns in held) >= rows:
            yield tuple(np.concatenate(column) for column in zip(*held, strict=True))  # type: ignore[misc]
            held = []
    if held:
        yield tuple(np.concatenate(column) for column in zip(*held, strict=True))  # type: ignore[misc]


def _check_names(piece: Piece, corpus: Corpus) -> None:
    twice = repeated(piece.values())[:_NAMES_TOLD]
    if not len(twice):
        return
    members = Members(twice, piece.low, piece.high)
    numbers = [np.empty(0, np.int64)]
    for run, begin, end in piece.spans():
        hits = members.found(run.values(begin, end))[:_NAMES_TOLD].tolist()
        numbers.extend(run.numbers(begin + hit, begin + hit + 1) for hit in hits)
    together = np.concatenate(numbers)
    seen: dict[str, int] = {}
    for number, name in zip(together.tolist(), corpus.ids(together).to_pylist(), strict=True):
        if name in seen:
            raise _one_name(name, seen[name], number, corpus)
        seen[name] = number


def _one_name(name: str, one: int, two: int, corpus: Corpus) -> InputError:
    places = corpus.generations(np.array([one, two])).tolist()
    told = [corpus.sources[place] for place in places]
    where = [f"documents {s.folder} (snapshot {', '.join(s.snapshots)})" for s in told]
    both = f"twice in {where[0]}" if where[0] == where[1] else f"in {where[0]} and in {where[1]}"
    return InputError(
        f"doc_id {name} occurs {both}",
        where="dedup",
        hint="the same snapshot, or overlapping ones under one name, came in twice: leave one out, "
        "or give the snapshots different names",
    )
