"""The `pages` tables: what pages say, joined with what only the whole snapshot knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from artifacts_schema.kinds import KINDS
from stages.engine import ShardOutput
from stages.ingest.repeats import url_repeats
from stages.ingest.shard import SCRATCH

if TYPE_CHECKING:
    from stages.engine import ShardResult

SHARDS_A_WORKER = 32
"""A shard takes hundredths of a second here, the start of a worker half a one."""


@dataclass(frozen=True)
class PagesShard:
    """A unit that was read, and the rows of it whose URL came before in the snapshot."""

    id: str
    read: ShardResult
    repeats: Mapping[int, int]


def pages_shards(results: Sequence[ShardResult]) -> list[PagesShard]:
    """The units in their order, each with its repeated URLs: 8 bytes a document are held."""
    keys = [result.read_scratch(SCRATCH, ["url_key"])["url_key"].to_numpy() for result in results]
    repeats = url_repeats(keys)
    return [
        PagesShard(result.id, result, found) for result, found in zip(results, repeats, strict=True)
    ]


def write_pages(item: PagesShard, out: ShardOutput) -> dict[str, Any]:
    """Write a unit's `pages`; how many of its URLs came before."""
    table = item.read.read_scratch(SCRATCH)
    has_url = table["url_key"].to_numpy() != 0
    counts = np.zeros(len(table), dtype=np.int64)
    counts[list(item.repeats)] = list(item.repeats.values())
    column = pa.array(counts, mask=~has_url)
    schema = KINDS["pages"].tables["*.parquet"].arrow()
    columns = {
        field.name: column if field.name == "url_repeats" else table[field.name] for field in schema
    }
    out.write_table("pages", f"{item.id}.parquet", pa.table(columns, schema=schema))
    return {"url_repeats": len(item.repeats)}
