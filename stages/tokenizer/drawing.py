"""The sample of a tokenizer as two maps: how much text lies how deep, and what is drawn.

The first map reads every text once, for its length, and leaves the depth of each document beside.
The second reads the row groups that hold a drawn document, and no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stages.engine import Shard, ShardOutput, ShardResult
from stages.text.draw import draw
from stages.tokenizer.sample import BINS, UNKNOWN, Cell, depth_bins

SALT = "tokenizer sample"
_DEPTHS, _BINS, _TEXTS = "depths", "bins", "texts"
_IDS = ["doc_id", "duplicate_class", "source", "language"]
_TEXT_SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("held", pa.bool_(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
    ]
)


@dataclass(frozen=True)
class TextShard:
    """A shard of documents; `id` sorts in the order of the inputs and their shards."""

    id: str
    shard: Shard


@dataclass(frozen=True)
class DrawnShard:
    """A shard, and what `scan_depths` left of it."""

    id: str
    shard: Shard
    scan: ShardResult


def scan_depths(item: TextShard, out: ShardOutput) -> dict[str, Any]:
    """Leave the cell and depth of each document, and the bytes of each cell by depth."""
    cells: dict[Cell, int] = {}
    sizes: list[NDArray[np.int64]] = []
    numbers: list[int] = []
    depths: list[float] = []
    for table in item.shard.row_groups([*_IDS, "text"]):
        for cell, depth in _cells_and_depths(table):
            numbers.append(cells.setdefault(cell, len(cells)))
            depths.append(depth)
        sizes.append(pc.binary_length(table["text"]).to_numpy().astype(np.int64))
    number, depth_of = np.array(numbers, dtype=np.int32), np.array(depths)
    bytes_of = np.concatenate([np.empty(0, np.int64), *sizes])
    out.write_scratch(_DEPTHS, pa.table({"cell": number, "depth": depth_of}))
    places, inverse = np.unique(
        number.astype(np.int64) * BINS + depth_bins(depth_of), return_inverse=True
    )
    totals = np.zeros(len(places), dtype=np.int64)
    np.add.at(totals, inverse, bytes_of)
    out.write_scratch(
        _BINS, pa.table({"cell": places // BINS, "bin": places % BINS, "bytes": totals})
    )
    return {"cells": [list(cell) for cell in cells]}


def bytes_by_depth(scans: Sequence[ShardResult]) -> dict[Cell, NDArray[np.int64]]:
    """[bin] Bytes of each source and language over all shards."""
    bins: dict[Cell, NDArray[np.int64]] = {}
    for scan in scans:
        table = scan.read_scratch(_BINS)
        number, place, size = (table[name].to_numpy() for name in ("cell", "bin", "bytes"))
        for own, (source, language) in enumerate(scan.value["cells"]):
            total = bins.setdefault((source, language), np.zeros(BINS, dtype=np.int64))
            total[place[number == own]] += size[number == own]
    return bins


def draw_texts(
    item: DrawnShard, out: ShardOutput, *, held: float, limits: Mapping[Cell, float]
) -> dict[str, Any]:
    """Leave the texts to measure on (depths up to `held`) and to train on (up to the cell's)."""
    scan = item.scan.read_scratch(_DEPTHS)
    depth, number = scan["depth"].to_numpy(), scan["cell"].to_numpy()
    cells = [(source, language) for source, language in item.scan.value["cells"]]
    most = np.array([limits.get(cell, 0.0) for cell in cells] or [0.0])
    drawn = (depth <= held) | (depth <= most[number])
    start = 0
    with (
        item.shard.input.open(item.shard.path) as file,
        out.open_scratch(_TEXTS) as sink,
        pa.ipc.new_stream(sink, _TEXT_SCHEMA) as writer,
    ):
        parquet = pq.ParquetFile(file)
        for group in range(parquet.num_row_groups):
            stop = start + parquet.metadata.row_group(group).num_rows
            rows = np.flatnonzero(drawn[start:stop])
            if len(rows):
                texts = parquet.read_row_group(group, ["text"], use_threads=False)["text"]
                own = number[start:stop][rows]
                columns = [
                    pa.array([cells[one][0] for one in own], pa.string()),
                    pa.array([cells[one][1] for one in own], pa.string()),
                    pa.array(depth[start:stop][rows] <= held),
                    texts.take(pa.array(rows)).cast(pa.large_string()).combine_chunks(),
                ]
                writer.write_batch(pa.record_batch(columns, schema=_TEXT_SCHEMA))
            start = stop
    return {}


def drawn_texts(drawn: Sequence[ShardResult], *, held: bool) -> Iterator[tuple[Cell, str]]:
    """The texts to measure on, or to train on, with their cells, in the order of the documents."""
    for result in drawn:
        with open(result.scratch_path(_TEXTS), "rb") as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                chosen = batch.filter(pc.equal(batch["held"], held))
                cells = zip(
                    chosen["source"].to_pylist(), chosen["language"].to_pylist(), strict=True
                )
                yield from zip(cells, chosen["text"].to_pylist(), strict=True)


def _cells_and_depths(table: pa.Table) -> Iterator[tuple[Cell, float]]:
    """Source and language, and depth, of each row."""
    rows = zip(*(table[name].to_pylist() for name in _IDS), strict=True)
    for doc_id, duplicate_class, source, language in rows:
        yield (source, language or UNKNOWN), 1.0 - draw(duplicate_class or doc_id, SALT)
