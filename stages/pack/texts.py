"""Documents of a shard a little text at a time, so that neither table nor row group is held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from artifacts_schema.kinds import kind_named
from stages.engine.row_groups import PAGES_BYTES, rows_at_once, text_cuts

if TYPE_CHECKING:
    from stages.engine import Shard


def batches(shard: Shard, columns: Sequence[str], text_bytes: int) -> Iterator[pa.RecordBatch]:
    """Rows in order, so many that their `text` takes `text_bytes` at most, and at least one."""
    with shard.input.open(shard.path) as file:
        parquet = _parquet(file, shard)
        for group in range(parquet.num_row_groups):
            for batch in parquet.iter_batches(
                batch_size=rows_at_once(parquet.metadata.row_group(group), text_bytes),
                row_groups=[group],
                columns=list(columns),
                use_threads=False,
            ):
                for begin, end in text_cuts(batch["text"], text_bytes):
                    yield batch.slice(begin, end - begin)


def _parquet(file: IO[bytes], shard: Shard) -> pq.ParquetFile:
    parquet = pq.ParquetFile(file, buffer_size=PAGES_BYTES, pre_buffer=False)
    table = kind_named(shard.input.kind).table_for(shard.path)
    if table is not None:
        table.check(parquet.schema_arrow, where=shard.path)
    return parquet
