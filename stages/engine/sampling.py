"""What a page reads of a large output: an even choice of its tables, the same each time.

A page is made in the process of the run, so what it reads does not grow with the corpus. Outputs of
up to `MOST_TABLES` tables with `MOST_ROWS` rows in all are read whole; what is measured on a part
says so by `sample_note`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from stages.engine.inputs import Input

MOST_TABLES = 256
MOST_ROWS = 2_000_000
"""So many rows, drawn one by one, place a share within 0.07 %."""

SAMPLED_ROWS = 200_000
"""Rows that distributions are measured on; enough to place a quantile within 0.2 %."""


def sampled(source: Input, pattern: str = "*.parquet") -> Input:
    """An output with an even choice of the tables that match, by path, and all its other files.

    The output itself if it is small. Outputs with a table of the same name and length for each
    shard, such as signals and their documents, are sampled alike.
    """
    tables = source.shards(pattern)
    rows = sum(table.rows for table in tables)
    most = max(1, min(MOST_TABLES, MOST_ROWS * len(tables) // max(rows, 1)))
    if len(tables) <= most:
        return source
    skipped = {table.path for table in tables}
    skipped -= {tables[place * len(tables) // most].path for place in range(most)}
    return _without(source, skipped)


def _without(source: Input, paths: Collection[str]) -> Input:
    return replace(source, files=tuple(file for file in source.files if file.path not in paths))


def named_alike(source: Input, tables: Iterable[str]) -> Input:
    """An output with its tables that end in the names of others: those may describe the same rows.

    `0a18…/00007.parquet` describes `00007.parquet`, of which `00-00007.parquet` was made.
    """
    names = set(map(_last_name, tables))
    others = {path for path in source.paths("*.parquet") if _last_name(path) not in names}
    return _without(source, others)


def _last_name(path: str) -> str:
    return path.rpartition("/")[2].rpartition("-")[2]


def sampled_groups(
    inputs: Sequence[Input], columns: Sequence[str], most: int = SAMPLED_ROWS
) -> Iterator[pa.Table]:
    """Row groups of sampled tables: all of them, or every k-th where they have over `most` rows.

    Rows of long tables lie in groups of equal size, so that about `most` rows are read.
    """
    chosen = [sampled(source) for source in inputs]
    rows = sum(source.rows for source in chosen)
    step, number = max(1, math.ceil(rows / most)), 0
    for source in chosen:
        for path in source.paths("*.parquet"):
            with source.open_table(path) as parquet:
                for group in range(parquet.num_row_groups):
                    if number % step == 0:
                        yield parquet.read_row_group(group, columns=columns, use_threads=False)
                    number += 1


def sample_note(measured: int, total: int, what: str = "documents") -> str:
    """A sentence on how many rows were measured; empty if it was all of them."""
    if measured >= total:
        return ""
    return f"Measured on {measured:,} of {total:,} {what}, taken evenly."
