"""Exact classes: documents of equal words and of equal texts, by 128-bit digests.

A class is named by its member of least rank: of the earliest documents output, and there the least
id. So results for a document depend only on its own and earlier outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.dedup.document_bits import (
    BLOCK_DOCUMENTS,
    BlockTask,
    DocumentBits,
    TaskFiles,
    block_tasks,
    write_bits,
)
from stages.dedup.index_files import NAMES, TEXTS, WORDS, Table
from stages.dedup.pairs import PairFiles
from stages.dedup.sorted_runs import (
    Members,
    Piece,
    distinct_values,
    even_ranges,
    repeated_values,
)
from stages.engine.kernels import kernel

if TYPE_CHECKING:
    from stages.dedup.index import Corpus
    from stages.dedup.sorted_runs import SortedRun
    from stages.engine import Context, ShardOutput, ShardResult


Equal = Literal["words", "texts", "names"]
TABLES: dict[Equal, Table] = {"words": WORDS, "texts": TEXTS, "names": NAMES}
_NAMES_CHECKED = 1_000
"""Beginnings of ids that are compared if some occur twice: so many are not equal by chance."""
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

    Of words every copy, since only the first of a class is compared; of texts those that are new.
    Of names none may occur twice: raises InputError. At most about `rows` documents are held.
    """
    runs = list(corpus.runs(TABLES[task.equal]))
    files = _CopyFiles(out, corpus.first_new)
    for piece in Piece.in_range(runs, task.low, task.high).fitting(rows):
        if task.equal == "names":
            _check_names(piece, corpus)
        elif piece.rows <= rows:
            again = _ClassRows.repeated(piece, corpus, new_only=task.equal == "texts")
            files.add(again.copies(), again.classes())
        else:
            _find_copies_of_value(piece, corpus, files, rows)
    return {"files": files.files, "new_copies": files.new_copies, "classes": files.classes}


class _CopyFiles:
    """Files of copies that a task leaves."""

    def __init__(self, out: ShardOutput, first_new: int) -> None:
        self._out, self._first_new, self.files = out, first_new, list[str]()
        self.new_copies = self.classes = 0

    def add(self, copies: NDArray[np.void], classes: int) -> None:
        """Add one more file, and the number of classes with a new document in it."""
        self.classes += classes
        if len(copies):
            name = f"copies-{len(self.files):04d}"
            with self._out.open_scratch(name) as file:
                file.write(copies[np.argsort(copies["right"])].tobytes())
            self.files.append(name)
            self.new_copies += int((copies["right"] >= self._first_new).sum())


@dataclass(frozen=True, eq=False)
class _ClassRows:
    """Documents by class, in the order of their numbers' runs: so generations never fall."""

    group: NDArray[np.int64]
    number: NDArray[np.int64]
    first: NDArray[np.int64]
    """The first document of each group."""
    first_new: int

    @classmethod
    def repeated(cls, piece: Piece, corpus: Corpus, *, new_only: bool) -> _ClassRows:
        """The documents whose digest occurs more than once; `new_only`: once at least in a new
        one."""
        values = _repeated_digests(piece, corpus, new_only=new_only)
        members = Members(values, piece.low, piece.high)
        columns: list[tuple[NDArray[Any], ...]] = []
        for run, begin, end in piece.spans():
            run_values = run.values(begin, end)
            hits = members.places(run_values)
            if len(hits):
                group = np.searchsorted(values, run_values[hits])
                columns.append((group, *_digest_rows(run, begin, hits)))
        if not columns:
            nothing = np.empty(0, np.int64)
            return cls(nothing, nothing, nothing, corpus.first_new)
        group, lower, rank, number = (
            np.concatenate(column) for column in zip(*columns, strict=True)
        )
        group, groups = _split_by_digest(group, lower, len(values))
        first = np.full(groups, -1, np.int64)
        least_rank(group, corpus.generations(number), rank, first)
        return cls(group, number, number[first], corpus.first_new)

    def copies(self) -> NDArray[np.void]:
        """Those that are not the first."""
        first = self.first[self.group]
        is_copy = self.number != first
        return copy_records(self.number[is_copy], first[is_copy])

    def classes(self) -> int:
        """Groups of several documents, a new one among them."""
        several = np.bincount(self.group, minlength=len(self.first)) > 1
        newest = np.zeros(len(self.first), dtype=np.bool_)
        newest[self.group[self.number >= self.first_new]] = True
        return int((several & newest).sum())


def copy_records(numbers: NDArray[np.int64], first_numbers: NDArray[np.int64]) -> NDArray[np.void]:
    """Records of COPY."""
    records = np.empty(len(numbers), COPY)
    records["right"], records["left"] = numbers, first_numbers
    return records


def _repeated_digests(piece: Piece, corpus: Corpus, *, new_only: bool) -> NDArray[np.uint64]:
    if not new_only or not corpus.first_new:
        return repeated_values(piece.values())
    new = np.concatenate(
        [np.empty(0, np.uint64)]
        + [r.values(b, e) for r, b, e in piece.spans() if r.shard.start >= corpus.first_new]
    )
    twice, once = repeated_values(new), distinct_values(new)
    members = Members(once, piece.low, piece.high)
    met = [twice]
    for run, begin, end in piece.spans():
        if run.shard.start < corpus.first_new:
            values = run.values(begin, end)
            met.append(values[members.places(values)])
    return distinct_values(np.concatenate(met))


def _digest_rows(
    run: SortedRun, begin: int, hits: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    """Lower half of the digest, rank within the generation, and number of some rows."""
    low, high = begin + int(hits[0]), begin + int(hits[-1]) + 1
    at = hits - hits[0]
    lower, rank = run.extra(1, low, high)[at], run.extra(2, low, high)[at]
    return lower, rank, run.numbers(low, high)[at]


def _split_by_digest(
    group: NDArray[np.int64], lower: NDArray[np.uint64], groups: int
) -> tuple[NDArray[np.int64], int]:
    """Split groups whose 64-bit prefixes collide."""
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


@kernel
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


def _find_copies_of_value(piece: Piece, corpus: Corpus, files: _CopyFiles, rows: int) -> None:
    """Copies among more documents of one value than are to be held: read twice."""
    best: dict[int, tuple[int, int, int]] = {}
    members: dict[int, int] = {}
    for lower, rank, number in _read_in_parts(piece, rows):
        generation = corpus.generations(number)
        for value in np.unique(lower).tolist():
            equal = np.flatnonzero(lower == np.uint64(value))
            order = np.lexsort((number[equal], rank[equal], generation[equal]))
            least = equal[order[0]]
            one = (int(generation[least]), int(rank[least]), int(number[least]))
            best[value] = min(best.get(value, one), one)
            members[value] = members.get(value, 0) + len(equal)
    newest = set[int]()
    for lower, _, number in _read_in_parts(piece, rows):
        values, inverse = np.unique(lower, return_inverse=True)
        first = np.array([best[value][2] for value in values.tolist()], np.int64)[inverse]
        newest.update(np.unique(lower[number >= corpus.first_new]).tolist())
        is_copy = number != first
        files.add(copy_records(number[is_copy], first[is_copy]), 0)
    files.classes += sum(members[value] > 1 for value in newest)


def _read_in_parts(
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
    twice = repeated_values(piece.values())[:_NAMES_CHECKED]
    if not len(twice):
        return
    members = Members(twice, piece.low, piece.high)
    numbers = [np.empty(0, np.int64)]
    for run, begin, end in piece.spans():
        hits = members.places(run.values(begin, end))[:_NAMES_CHECKED].tolist()
        numbers.extend(run.numbers(begin + hit, begin + hit + 1) for hit in hits)
    together = np.concatenate(numbers)
    seen: dict[str, int] = {}
    for number, name in zip(together.tolist(), corpus.ids(together).to_pylist(), strict=True):
        if name in seen:
            raise _repeated_id(name, seen[name], number, corpus)
        seen[name] = number


def _repeated_id(name: str, one: int, two: int, corpus: Corpus) -> InputError:
    places = corpus.generations(np.array([one, two])).tolist()
    sources = [corpus.sources[place] for place in places]
    where = [f"documents {s.folder} (snapshot {', '.join(s.snapshots)})" for s in sources]
    both = f"twice in {where[0]}" if where[0] == where[1] else f"in {where[0]} and in {where[1]}"
    return InputError(
        f"doc_id {name} occurs {both}",
        where="dedup",
        hint="the same snapshot, or overlapping ones under one name, came in twice: leave one out, "
        "or give the snapshots different names",
    )


def order_copies(
    task: BlockTask,
    out: ShardOutput,
    *,
    words: Sequence[ShardResult],
    texts: Sequence[ShardResult],
    first_new: int,
) -> None:
    """Write the copies of a block: a bit for each document that is a copy, and the new copies
    with the first of their class, by words and by texts, in the order of documents.

    `words` and `texts` are what `find_classes` gave.
    """
    copies = _read_copies(words, task)
    is_copy = np.zeros(task.high - task.low, dtype=np.bool_)
    is_copy[copies["right"] - task.low] = True
    write_bits(out, is_copy)
    for name, table in (("words", copies), ("texts", _read_copies(texts, task))):
        new = table[table["right"] >= first_new]
        with out.open_scratch(name) as file:
            file.write(new[np.argsort(new["right"])].tobytes())


def _read_copies(results: Sequence[ShardResult], task: BlockTask) -> NDArray[np.void]:
    paths = [result.scratch_path(name) for result in results for name in result.value["files"]]
    files = PairFiles.open(paths, COPY)
    return np.concatenate([np.empty(0, COPY), *files.slices(task.low, task.high, BLOCK_DOCUMENTS)])


@dataclass(frozen=True, eq=False)
class Classes:
    """Exact classes of all documents. Picklable; holds nothing, reads from files when called."""

    copies: DocumentBits
    """Documents that are not the first of their class, by words."""
    counts: dict[str, int]
    """`exact_classes`: of several documents, a new one among them; `exact_copies`: new documents
    that are not the first of theirs; `text_classes` and `text_copies`: the same of raw texts."""

    def is_first(self, low: int, high: int) -> NDArray[np.bool_]:
        """Whether each of the documents [low, high) is the first of its class, by words."""
        return ~self.copies.between(low, high)

    def first(self, low: int, high: int) -> NDArray[np.int64]:
        """The first of the class by words, for each of the new documents [low, high)."""
        return self._first("words", low, high)

    def text_first(self, low: int, high: int) -> NDArray[np.int64]:
        """The first of the class by texts, for each of the new documents [low, high)."""
        return self._first("texts", low, high)

    def _first(self, name: str, low: int, high: int) -> NDArray[np.int64]:
        first_numbers = np.arange(low, high)
        for block, _, _ in self.copies.spans(low, high):
            for copies in PairFiles.open([block.path(name)], COPY).slices(
                low, high, BLOCK_DOCUMENTS
            ):
                first_numbers[copies["right"] - low] = copies["left"]
        return first_numbers


def find_exact_classes(context: Context, corpus: Corpus, rows: int) -> Classes:
    """Find the classes, in maps of the stage: first by ranges of digests, then by documents."""
    results = context.map(find_classes, class_tasks(corpus, rows), corpus=corpus, rows=rows)
    of_words = [result for result in results if result.id.startswith("words")]
    of_texts = [result for result in results if result.id.startswith("texts")]
    ordered = context.map(
        order_copies,
        block_tasks(corpus.documents),
        words=of_words,
        texts=of_texts,
        first_new=corpus.first_new,
    )
    return Classes(
        copies=DocumentBits(tuple(map(TaskFiles, ordered)), corpus.documents),
        counts={
            "exact_classes": _sum(of_words, "classes"),
            "exact_copies": _sum(of_words, "new_copies"),
            "text_classes": _sum(of_texts, "classes"),
            "text_copies": _sum(of_texts, "new_copies"),
        },
    )


def _sum(results: Sequence[ShardResult], name: str) -> int:
    return sum(result.value[name] for result in results)
