"""What the most frequent passages say, read from their first places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from stages.dedup.passages.spans import Stretch
from stages.engine.excerpts import excerpt

if TYPE_CHECKING:
    from stages.engine import Shard

EXCERPT = 200
"""Characters of a passage that are shown."""


def with_excerpts(found: Sequence[tuple[Stretch, Shard]]) -> list[dict[str, Any]]:
    """`count`, `doc_id` and `excerpt` of each passage; only the row groups they lie in are read."""
    return [
        {
            "count": stretch.count,
            "doc_id": stretch.doc_id,
            "excerpt": excerpt(_text(shard, stretch.row)[stretch.start : stretch.end], EXCERPT),
        }
        for stretch, shard in found
    ]


def _text(shard: Shard, row: int) -> str:
    with shard.input.open(shard.path) as file:
        parquet = pq.ParquetFile(file)
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if row < rows:
                table = parquet.read_row_group(group, columns=["text"], use_threads=False)
                return table["text"][row].as_py()
            row -= rows
    raise ValueError(f"{shard.path} has no such row")
