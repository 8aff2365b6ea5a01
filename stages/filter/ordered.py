"""Scratch tables in the order of a column, of which a task reads a range.

Statistics of the row groups say which of them to read: a task holds its range and the row groups at
the range's two ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stages.engine import ShardOutput

GROUP = 1 << 14
"""Rows of a row group: of many groups a task with few values reads few."""


def write_ordered(table: pa.Table, file: Any) -> None:
    """Write a whole table into an open file, uncompressed: random bytes stay as long."""
    pq.write_table(table, file, row_group_size=GROUP, compression="none", use_dictionary=False)


class OrderedWriter:
    """Writes a table part by part; each part begins a row group."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(file, schema, compression="none", use_dictionary=False)
        self._schema = schema

    def write(self, table: pa.Table) -> None:
        """Append rows; a table without rows is left out."""
        if len(table):
            self._writer.write_table(table.cast(self._schema), row_group_size=1 << 17)

    def close(self, *, well: bool) -> None:
        """Write the footer; after an error nothing more is written, now or by the collector."""
        try:
            if well:
                self._writer.close()
        finally:
            self._writer.is_open = False


@contextmanager
def ordered_writer(out: ShardOutput, name: str, schema: pa.Schema) -> Iterator[OrderedWriter]:
    """A writer of a scratch table."""
    with out.open_scratch(name) as file:
        writer, well = OrderedWriter(file, schema), False
        try:
            yield writer
            well = True
        finally:
            writer.close(well=well)


def read_range(
    path: Path, low: int, high: int, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The rows of which the first column is in [low, high), a row group at a time."""
    with open(path, "rb") as opened, pq.ParquetFile(opened) as file:
        by = file.schema_arrow.names[0]
        chosen = None if columns is None else list(dict.fromkeys([by, *columns]))
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            if not group.num_rows:
                continue
            statistics = group.column(0).statistics
            if statistics.min >= high or statistics.max < low:
                continue
            rows = file.read_row_group(number, chosen, use_threads=False)
            if statistics.min < low or statistics.max >= high:
                rows = rows.slice(*_within(rows[by].to_numpy(), low, high))
            yield rows if columns is None else rows.select(list(columns))


def _within(values: NDArray[Any], low: int, high: int) -> tuple[int, int]:
    """Where the ascending values in [low, high) begin, and how many there are."""
    begin = int(np.searchsorted(values, values.dtype.type(low)))
    last = values.dtype.type(high - 1)
    return begin, int(np.searchsorted(values, last, side="right")) - begin
