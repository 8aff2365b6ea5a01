"""Lists of documents that must not be used: sorted once, then looked through for each shard.

A list may be long (opt-outs of a whole crawl), and every shard looks for its ids in all of it. By
`pyarrow.compute.is_in` each would read all names and make a table of them: for 100 shards 1.9, 4.6
and 13.9 times the CPU seconds of this module at 10,000, 100,000 and 1,000,000 names (python -m
tests.benchmarks.exclusions). Sorted, a shard reads 8 bytes a name, and names where a number is
equal. No more than a row group is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stages.filter.document_ids import id_numbers
from stages.filter.ordered import write_ordered

if TYPE_CHECKING:
    from stages.engine import Context, Input, ShardOutput
    from stages.engine.outputs import LeftFile

_ROWS_TOGETHER = 1 << 20
"""Tables are sorted together up to so many rows: a list of one name is no file of its own."""
_SORTED = "sorted"

_Part = tuple[NDArray[np.uint64], Callable[[], pa.Array]]
"""Numbers (see `id_numbers`), ascending, and the names that they are of."""


@dataclass(frozen=True)
class _Tables:
    """Tables of lists that are sorted together; an item of a map."""

    id: str
    tables: tuple[tuple[Input, str], ...]


@dataclass(frozen=True)
class Exclusions:
    """The ids of all lists: in files that a map has sorted, or here. Picklable."""

    files: tuple[LeftFile, ...] = ()
    tables: tuple[pa.Table, ...] = ()

    @classmethod
    def sort(cls, context: Context) -> Exclusions:
        """Those of a run, sorted by its workers."""
        parts = enumerate(_parts(context.many("exclusions")))
        items = [_Tables(f"{number:05d}", part) for number, part in parts]
        results = context.map(sort_exclusions, items) if items else []
        return cls(files=tuple(result.left(None, _SORTED) for result in results))

    @classmethod
    def read(cls, lists: Sequence[Input]) -> Exclusions:
        """The same without a run, in this process."""
        return cls(tables=tuple(_sorted_names(part) for part in _parts(lists)))

    def __bool__(self) -> bool:
        return bool(self.files or self.tables)

    def include(self, ids: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Whether each of a shard's ids is in some list."""
        names = ids.combine_chunks()
        numbers = id_numbers(names)
        order = np.argsort(numbers, kind="stable")
        ascending, included = numbers[order], np.zeros(len(names), dtype=bool)
        for excluded, read_names in self._parts():
            low, high = _range(ascending, excluded)
            rows = low + np.flatnonzero(_are_in(ascending[low:high], excluded))
            if len(rows):
                # Different names may have one number, in theory.
                equal = pa.array(_are_in(excluded, ascending[rows]))
                own = names.take(pa.array(order[rows]))
                same = pc.is_in(own, value_set=read_names().filter(equal))
                included[order[rows]] |= same.to_numpy(zero_copy_only=False)
        return included

    def _parts(self) -> Iterator[_Part]:
        for table in self.tables:
            yield table["number"].to_numpy(), partial(_column, table)
        for left in self.files:
            with open(left.path(), "rb") as opened, pq.ParquetFile(opened) as file:
                for group in range(file.num_row_groups):
                    numbers = file.read_row_group(group, ["number"], use_threads=False)
                    yield numbers["number"].to_numpy(), partial(_names_of, file, group)


def sort_exclusions(item: _Tables, out: ShardOutput) -> None:
    """Leave the names of some tables in the order of their numbers."""
    with out.open_scratch(_SORTED) as file:
        write_ordered(_sorted_names(item.tables), file)


def _parts(lists: Sequence[Input]) -> Iterator[tuple[tuple[Input, str], ...]]:
    """All tables, in parts of at most `_ROWS_TOGETHER` rows if one has no more."""
    held: list[tuple[Input, str]] = []
    rows = 0
    for one in lists:
        for file in one.files:
            if held and rows + (file.rows or 0) > _ROWS_TOGETHER:
                yield tuple(held)
                held, rows = [], 0
            held.append((one, file.path))
            rows += file.rows or 0
    if held:
        yield tuple(held)


def _sorted_names(tables: Sequence[tuple[Input, str]]) -> pa.Table:
    """Columns `number` and `doc_id`, by number."""
    columns = [one.read_table(path, ["doc_id"])["doc_id"] for one, path in tables]
    names = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
    names = names.combine_chunks()
    numbers = id_numbers(names)
    order = np.argsort(numbers, kind="stable")
    return pa.table({"number": numbers[order], "doc_id": names.take(pa.array(order))})


def _names_of(file: pq.ParquetFile, group: int) -> pa.Array:
    return _column(file.read_row_group(group, ["doc_id"], use_threads=False))


def _column(table: pa.Table) -> pa.Array:
    return table["doc_id"].combine_chunks()


def _range(ascending: NDArray[np.uint64], among: NDArray[np.uint64]) -> tuple[int, int]:
    """Where those begin and end that lie between the least and greatest of others."""
    if not len(among):
        return 0, 0
    low = np.searchsorted(ascending, among[0], "left")
    return int(low), int(np.searchsorted(ascending, among[-1], "right"))


def _are_in(numbers: NDArray[np.uint64], ascending: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether each number is among others, which are in order."""
    if not len(ascending):
        return np.zeros(len(numbers), dtype=bool)
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return np.asarray(ascending[places] == numbers)
