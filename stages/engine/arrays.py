"""NumPy arrays as Arrow's and back, without pandas.

`pa.array(ndarray)` and `Array.to_numpy` import pandas wherever it is installed, to ask whether the
values are its own: a third of a second and 28 MB in every process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
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
