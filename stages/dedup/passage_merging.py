"""Several passage indexes as one: sorted tables joined by ranges of hashes, tokens copied.

A later run finds the same passages by the merged index as by those that it was made of: a passage
that several hold belongs to the oldest, as it does for a run that reads them one by one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.dedup.config import PassagesConfig
from stages.dedup.passage_files import (
    ANCHORS,
    FORMAT,
    OUTPUT,
    RECORD,
    ROWS_OF_A_PART,
    PassageIndex,
    read_passage_indexes,
    read_passage_record,
    write_sorted_table,
)
from stages.dedup.passage_repeats import (
    IN_RANGE,
    LEAST_MEMORY,
    ROWS_AT_ONCE,
    RangeTask,
    open_database,
    range_tasks,
)

if TYPE_CHECKING:
    from stages.engine import Context, Input, ShardOutput


def merge_passage_indexes(context: Context, inputs: Sequence[Input]) -> int:
    """Write the merged index of `inputs`, oldest first, if there are any; returns its rows.

    Raises InputError for indexes that hold other measures, or windows of another length.
    """
    if not inputs:
        return 0
    indexes = _read_alike(inputs)
    measures = list(indexes[0].record["tables"])
    tasks = [
        task
        for name in measures
        for task in range_tasks(
            name, max(1, -(-sum(o.rows(name) for o in indexes) // ROWS_OF_A_PART))
        )
    ]
    written = context.map(join_tables, tasks, indexes=indexes)
    tables = {name: {"parts": 0, "rows": 0} for name in measures}
    for task, result in zip(tasks, written, strict=True):
        tables[task.measure]["parts"] += 1
        tables[task.measure]["rows"] += result.value["rows"]
    context.map(copy_tokens, list(_tokens(indexes)))
    context.write_json(OUTPUT, RECORD, _record(indexes, tables))
    return sum(table["rows"] for table in tables.values())


def _read_alike(inputs: Sequence[Input]) -> tuple[PassageIndex, ...]:
    record = read_passage_record(inputs[0])
    names = set(record["tables"])
    config = PassagesConfig(
        lines="lines" in names, sentences="sentences" in names, substrings=record["substrings"]
    )
    indexes = read_passage_indexes(inputs, config, [])
    for index in indexes:
        if more := sorted(set(index.record["tables"]) - names):
            raise InputError(
                f"the passage index holds {', '.join(more)}, which another one lacks",
                where=index.where,
                hint="give all runs the same passages",
            )
    return indexes


def join_tables(
    task: RangeTask, out: ShardOutput, *, indexes: Sequence[PassageIndex]
) -> dict[str, int]:
    """Write a part of a sorted table of the merged index; returns its rows."""
    values: dict[str, Any] = {"low": task.low, "high": task.high - 1}
    parts, shards = [], 0
    for place, index in enumerate(indexes):
        values[f"files{place}"] = index.table(task.measure).local_paths(task.low, task.high)
        source = f"({IN_RANGE.format(f'$files{place}')})"
        if task.measure == ANCHORS:
            parts.append(f'SELECT hash, shard + {shards}::INTEGER AS shard, "row" FROM {source}')
        else:
            parts.append(f"SELECT hash, high, low, {place} AS place FROM {source}")
        shards += len(index.record["shards"])
    query = " UNION ALL ".join(parts)
    if task.measure == ANCHORS:
        query = f'{query} ORDER BY hash, shard, "row"'
    else:
        query = f"""
            SELECT hash, first[2] AS high, first[3] AS low FROM (
                SELECT hash, min(ROW(place, high, low)) AS first FROM ({query}) GROUP BY hash
            ) ORDER BY hash"""
    with open_database(LEAST_MEMORY) as database:
        reader = database.sql(query, params=values).to_arrow_reader(ROWS_AT_ONCE)
        return {"rows": write_sorted_table(out, task.measure, task.part, reader)}


@dataclass(frozen=True, eq=False)
class TokensFile:
    """The tokens of a shard of documents in one of the indexes."""

    id: str
    source: Input
    path: str
    rows: int


def _tokens(indexes: Sequence[PassageIndex]) -> Iterator[TokensFile]:
    for index in indexes:
        for place, shard in enumerate(index.record["shards"]):
            if shard["tokens"] is not None:
                name = f"{index.number:03d}-{place:06d}"
                yield TokensFile(name, index.source, shard["tokens"], shard["documents"])


def copy_tokens(item: TokensFile, out: ShardOutput) -> None:
    """Copy a file of tokens."""
    with item.source.open(item.path) as file, out.open(OUTPUT, item.path) as copy:
        shutil.copyfileobj(file, copy)
    out.note_rows(OUTPUT, item.path, item.rows)


def _record(indexes: Sequence[PassageIndex], tables: dict[str, dict[str, int]]) -> dict[str, Any]:
    """The content of `index.json`; generations count on from index to index."""
    return {
        "format": FORMAT,
        "documents": [digest for index in indexes for digest in index.record["documents"]],
        "shards": [
            {**shard, "generation": index.generation + shard["generation"]}
            for index in indexes
            for shard in index.record["shards"]
        ],
        "substrings": indexes[0].record["substrings"],
        "tables": tables,
    }
