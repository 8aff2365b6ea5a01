"""Parts of shards: what one call scores or embeds, and is done again after a kill."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from stages.engine import Shard

PART_ROWS = 4096
"""Documents that are sorted by length together."""


@dataclass(frozen=True)
class Part:
    """Rows [start, stop) of a shard of documents."""

    id: str
    shard: Shard
    start: int
    stop: int

    def read(self, columns: list[str]) -> pa.Table:
        """Some columns of its rows; only row groups that hold some are read."""
        pieces, begin = [], 0
        with self.shard.input.open(self.shard.path) as file:
            parquet = pq.ParquetFile(file)
            for number in range(parquet.num_row_groups):
                end = begin + parquet.metadata.row_group(number).num_rows
                low, high = max(begin, self.start), min(end, self.stop)
                if low < high:
                    group = parquet.read_row_group(number, columns=columns, use_threads=False)
                    pieces.append(group.slice(low - begin, high - low))
                begin = end
            if not pieces:
                pieces.append(parquet.schema_arrow.empty_table().select(columns))
        return pa.concat_tables(pieces)


def cut_parts(shard: Shard, prefix: str = "") -> list[Part]:
    """The parts of a shard in order; one without rows if it has none. `prefix` begins their ids."""
    starts = range(0, max(1, shard.rows), PART_ROWS)
    return [
        Part(f"{prefix}{shard.id}-{start:010d}", shard, start, min(start + PART_ROWS, shard.rows))
        for start in starts
    ]


def digest_text(text: str) -> str:
    """32 hex digits of BLAKE2b over its UTF-8."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
