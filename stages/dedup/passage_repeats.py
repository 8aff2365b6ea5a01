"""Passages that occur more than once: found with DuckDB, a range of hashes at a time.

A task takes the memory of about `rows_per_task` passages, whatever the size of the corpus; what
does not fit, DuckDB sorts on disk: 6 million lines, a third of them repeated, take it 5 CPU seconds
at its least memory, 64 MiB. Earlier indexes are streamed past the passages of the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stages.dedup.passage_files import (
    ANCHORS,
    ROWS_OF_A_PART,
    EarlierTable,
    part_edges,
    write_sorted_table,
)
from stages.dedup.passage_spans import Occurrences
from stages.engine.database import database_settings

if TYPE_CHECKING:
    from stages.dedup.passage_files import PassageIndex
    from stages.engine import Context, ShardOutput, ShardResult

MOST_RANGES = 64
"""Ranges of hashes; the row groups of occurrences are as fine, so that a task reads its own."""
ROWS_AT_ONCE = 1 << 14
"""Of the result of a query."""
_BYTES_A_ROW, LEAST_MEMORY = 160, 64 << 20
"""Bytes of DuckDB: for each of `rows_per_task`, and at least."""


@dataclass(frozen=True)
class RangeTask:
    """The passages of a measure whose hash is in [low, high); `part` numbers the range."""

    id: str
    measure: str
    part: int
    low: int
    high: int


def repeated_passages(
    context: Context,
    measures: Sequence[str],
    scans: Sequence[ShardResult],
    rows_per_task: int,
    earlier: Sequence[PassageIndex] = (),
) -> dict[str, list[ShardResult]]:
    """What `find_repeats` left for each measure; of windows `earlier` has no tables."""
    tables = {
        name: [index.table(name) for index in earlier if name in index.record["tables"]]
        for name in measures
    }
    tasks = []
    for name in measures if scans else ():
        total = _occurrences(scans, name)
        ranges = max(1, min(MOST_RANGES, -(-total // rows_per_task)))
        tasks += range_tasks(name, ranges)
    results = context.map(
        find_repeats,
        tasks,
        name=f"first_{'_'.join(measures)}",
        scans=scans,
        earlier=tables,
        memory=_memory(rows_per_task),
    )
    return {
        name: [r for t, r in zip(tasks, results, strict=True) if t.measure == name]
        for name in measures
    }


def write_index_tables(
    context: Context, measures: Sequence[str], scans: Sequence[ShardResult], rows_per_task: int
) -> dict[str, dict[str, int]]:
    """Write the sorted tables of the passage index; returns `parts` and `rows` of each."""
    tasks = []
    for name in measures:
        tasks += range_tasks(name, max(1, -(-_occurrences(scans, name) // ROWS_OF_A_PART)))
    written = context.map(write_index_table, tasks, scans=scans, memory=_memory(rows_per_task))
    tables = {name: {"parts": 0, "rows": 0} for name in measures}
    for task, result in zip(tasks, written, strict=True):
        tables[task.measure]["parts"] += 1
        tables[task.measure]["rows"] += result.value["rows"]
    return tables


def range_tasks(measure: str, ranges: int) -> list[RangeTask]:
    """All hashes in so many equal ranges."""
    edges = part_edges(ranges)
    return [
        RangeTask(f"{measure}-{ranges:02d}-{part:02d}", measure, part, edges[part], edges[part + 1])
        for part in range(ranges)
    ]


def _occurrences(scans: Sequence[ShardResult], measure: str) -> int:
    return sum(result.value["occurrences"][measure] for result in scans)


def _memory(rows_per_task: int) -> int:
    return max(rows_per_task * _BYTES_A_ROW, LEAST_MEMORY)


@contextmanager
def open_database(memory: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in `memory` bytes, with room on disk for what does not fit."""
    with (
        tempfile.TemporaryDirectory() as folder,
        duckdb.connect(config=database_settings(memory, folder)) as connection,
    ):
        yield connection


def find_repeats(
    task: RangeTask,
    out: ShardOutput,
    *,
    scans: Sequence[ShardResult],
    earlier: dict[str, list[EarlierTable]],
    memory: int,
) -> dict[str, int]:
    """Leave the occurrences of all passages that occur more than once, as scratch `repeats`.

    They have the columns of `Occurrences` and their shard, and are sorted by shard, row and start.
    The first occurrence is in the earliest documents output, there in the document of least id, at
    the first place. Passages of `earlier` indexes occur before all others; `times` counts each once
    there. Occurrences in shards below 0 are those of earlier documents: they count, and are left
    out. Of anchors it leaves as scratch `earlier` too where earlier documents have them: `index`,
    `shard`, `row`, `hash`, in this order.
    """
    values: dict[str, Any] = {
        "paths": [str(result.scratch_path(task.measure)) for result in scans],
        "low": task.low,
        "high": task.high - 1,
    }
    tables = []
    for place, table in enumerate(earlier[task.measure]):
        values[f"earlier{place}"] = table.local_paths(task.low, task.high)
        tables.append((f"earlier{place}", table))
    occurrences = f"occurrences AS MATERIALIZED ({IN_RANGE.format('$paths')})"
    with open_database(memory) as database:
        query = f"WITH {occurrences}, {_repeats_query(tables, task.measure)}"
        with out.open_scratch("repeats") as file:
            rows = _write_query(database, query, values, file)
        if task.measure == ANCHORS and tables:
            query = f"WITH {occurrences} {_earlier_anchors_query(tables)}"
            with out.open_scratch("earlier") as file:
                _write_query(database, query, values, file)
    return {"rows": rows}


IN_RANGE = "SELECT * FROM read_parquet({}) WHERE hash BETWEEN $low AND $high"
"""The rows of some files, a parameter, in the range of a task."""
_FIRST = "ROW(generation, high, low, start)"
_KNOWN = "hash IN (SELECT hash FROM occurrences)"


def _repeats_query(tables: Sequence[tuple[str, EarlierTable]], measure: str) -> str:
    """The common tables and the query of `find_repeats`, after `occurrences`."""
    ids = "0::UBIGINT, 0::UBIGINT" if measure == ANCHORS else "high, low"
    places = [f"SELECT hash, {_FIRST} AS place FROM occurrences"]
    places += [
        f"SELECT hash, ROW({table.generation}::INTEGER, {ids}, 0::INTEGER) AS place "
        f"FROM ({IN_RANGE.format(f'${name}')}) WHERE {_KNOWN}"
        for name, table in tables
    ]
    return f"""
        places AS ({" UNION ALL ".join(places)}),
        firsts AS (
            SELECT hash, count(*) AS times, min(place) AS first
            FROM places GROUP BY hash HAVING count(*) > 1
        )
        SELECT shard, hash, "row", start, "end", next_start, following, times,
            first[2] AS high, first[3] AS low, {_FIRST} = first AS is_first
        FROM occurrences JOIN firsts USING (hash) WHERE shard >= 0
        ORDER BY shard, "row", start"""


def _earlier_anchors_query(tables: Sequence[tuple[str, EarlierTable]]) -> str:
    anchors = " UNION ALL ".join(
        f'SELECT {table.index}::INTEGER AS "index", shard, "row", hash '
        f"FROM ({IN_RANGE.format(f'${name}')}) WHERE {_KNOWN}"
        for name, table in tables
    )
    return f'{anchors} ORDER BY "index", shard, "row", hash'


def _write_query(
    database: duckdb.DuckDBPyConnection, query: str, values: dict[str, Any], file: Any
) -> int:
    """Write the rows of a query as Parquet; returns how many there are."""
    used = {name: value for name, value in values.items() if f"${name}" in query}
    reader, rows = database.sql(query, params=used).to_arrow_reader(ROWS_AT_ONCE), 0
    with pq.ParquetWriter(file, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def write_index_table(
    task: RangeTask, out: ShardOutput, *, scans: Sequence[ShardResult], memory: int
) -> dict[str, int]:
    """Write one part of a sorted table of the passage index."""
    values = {
        "paths": [str(result.scratch_path(task.measure)) for result in scans],
        "low": task.low,
        "high": task.high - 1,
    }
    occurrences = f"({IN_RANGE.format('$paths')})"
    query = f"""
        SELECT hash, first[2] AS high, first[3] AS low FROM (
            SELECT hash, min(ROW(generation, high, low)) AS first
            FROM {occurrences} GROUP BY hash
        ) ORDER BY hash"""
    if task.measure == ANCHORS:
        query = f'SELECT DISTINCT hash, shard, "row" FROM {occurrences} ORDER BY hash, shard, "row"'
    with open_database(memory) as database:
        reader = database.sql(query, params=values).to_arrow_reader(ROWS_AT_ONCE)
        return {"rows": write_sorted_table(out, task.measure, task.part, reader)}


# Reading -----------------------------------------------------------------------------------------


def read_repeats(results: Sequence[ShardResult], shard: int, first: int, stop: int) -> Occurrences:
    """What `find_repeats` left of rows [first, stop) of a shard, by row, then start."""
    chosen = (pc.field("shard") == shard) & (pc.field("row") >= first) & (pc.field("row") < stop)
    columns = list(Occurrences._fields)
    parts = [
        pq.read_table(
            result.scratch_path("repeats"), columns=columns, filters=chosen, use_threads=False
        )
        for result in results
    ]
    table = pa.concat_tables(parts)
    return Occurrences.from_table(table.sort_by([("row", "ascending"), ("start", "ascending")]))


def read_earlier_anchors(
    results: Sequence[ShardResult], index: int, shard: int, first: int, stop: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Rows in [first, stop) of a shard of an earlier index that have anchors of this run's
    documents, and the hashes of these anchors; each once, ascending."""
    chosen = (pc.field("index") == index) & (pc.field("shard") == shard)
    chosen &= (pc.field("row") >= first) & (pc.field("row") < stop)
    parts = [
        pq.read_table(
            result.scratch_path("earlier"),
            columns=["row", "hash"],
            filters=chosen,
            use_threads=False,
        )
        for result in results
    ]
    table = pa.concat_tables(parts)
    return np.unique(table["row"].to_numpy()), np.unique(table["hash"].to_numpy())
