"""NumPy arrays as Arrow's and back, without pandas, and row groups read in bounded pieces.

`pa.array(ndarray)` and `Array.to_numpy` import pandas wherever it is installed, to ask whether the
values are its own: a third of a second and 28 MB in every process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def arrow_array(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers as an Arrow array of the same type, null where `missing`; nothing is copied."""
    held = np.ascontiguousarray(values)
    valid = None
    if missing is not None and missing.any():
        valid = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    type_ = pa.from_numpy_dtype(held.dtype)
    return pa.Array.from_buffers(type_, len(held), [valid, pa.py_buffer(held)])


def numpy_array(values: pa.Array) -> NDArray[Any]:
    """Numbers without nulls as NumPy's, not to be written to; nothing is copied.

    Raises ValueError for nulls.
    """
    if values.null_count:
        raise ValueError(f"{values.null_count} values are null")
    return np.from_dlpack(values)


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
