"""How much of a table's row group to read at once, so that one of long texts need not be held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.engine.arrays import numpy_array

PAGES_BYTES = 1 << 18
"""What is read at once of a column, instead of all that a row group has of it."""
_DICTIONARY_BYTES, _ROWS_OF_A_DICTIONARY = 2 << 20, 64
"""Parquet's writers give a dictionary up when it grows beyond 1 MiB."""


def rows_at_once(group: Any, text_bytes: int) -> int:
    """Rows of a row group (its metadata) whose texts take about `text_bytes` once unpacked."""
    columns = (group.column(place) for place in range(group.num_columns))
    size = next(one.total_uncompressed_size for one in columns if one.path_in_schema == "text")
    rows = text_bytes * group.num_rows // max(size, 1)
    if size <= _DICTIONARY_BYTES:
        # Perhaps each text is there once, however often it occurs: what it takes is not known.
        rows = min(rows, _ROWS_OF_A_DICTIONARY)
    return max(min(rows, group.num_rows), 1)


def text_cuts(texts: pa.Array, text_bytes: int) -> Iterator[tuple[int, int]]:
    """Consecutive texts of at most `text_bytes` together, and at least one."""
    begin, ends = 0, np.cumsum(numpy_array(pc.binary_length(texts)), dtype=np.int64)
    while begin < len(texts):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + text_bytes, side="right")), begin + 1)
        yield begin, end
        begin = end
