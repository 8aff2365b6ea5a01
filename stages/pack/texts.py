"""Documents of a shard a little text at a time, so that neither table nor row group is held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from artifacts_schema.kinds import kind_named
from stages.engine.arrays import numpy_array

if TYPE_CHECKING:
    from stages.engine import Shard

_PAGES_BYTES = 1 << 18
"""What is read at once of a column, instead of all that a row group has of it."""
_DICTIONARY_BYTES, _ROWS_OF_A_DICTIONARY = 2 << 20, 64
"""Where a row group's texts take so little, each may be there once, however often it occurs."""


def batches(shard: Shard, columns: Sequence[str], text_bytes: int) -> Iterator[pa.RecordBatch]:
    """Rows in order, so many that their `text` takes `text_bytes` at most, and at least one."""
    with shard.input.open(shard.path) as file:
        parquet = _parquet(file, shard)
        for group in range(parquet.num_row_groups):
            for batch in parquet.iter_batches(
                batch_size=_rows_at_once(parquet.metadata.row_group(group), text_bytes),
                row_groups=[group],
                columns=list(columns),
                use_threads=False,
            ):
                for begin, end in _cuts(batch["text"], text_bytes):
                    yield batch.slice(begin, end - begin)


def _parquet(file: IO[bytes], shard: Shard) -> pq.ParquetFile:
    parquet = pq.ParquetFile(file, buffer_size=_PAGES_BYTES, pre_buffer=False)
    table = kind_named(shard.input.kind).table_for(shard.path)
    if table is not None:
        table.check(parquet.schema_arrow, where=shard.path)
    return parquet


def _rows_at_once(group: Any, text_bytes: int) -> int:
    """Rows of a row group (its metadata) whose texts take about `text_bytes` once unpacked."""
    columns = (group.column(place) for place in range(group.num_columns))
    size = next(one.total_uncompressed_size for one in columns if one.path_in_schema == "text")
    rows = text_bytes * group.num_rows // max(size, 1)
    if size <= _DICTIONARY_BYTES:
        rows = min(rows, _ROWS_OF_A_DICTIONARY)
    return max(min(rows, group.num_rows), 1)


def _cuts(texts: pa.Array, text_bytes: int) -> Iterator[tuple[int, int]]:
    begin, ends = 0, np.cumsum(numpy_array(pc.binary_length(texts)), dtype=np.int64)
    while begin < len(texts):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + text_bytes, side="right")), begin + 1)
        yield begin, end
        begin = end
