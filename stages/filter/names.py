"""Names of documents as numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def coded(parts: Sequence[pa.Array | pa.ChunkedArray]) -> tuple[pa.Array, list[NDArray[np.int64]]]:
    """The different names in several arrays, and each array as places among these."""
    chunks = [c for part in parts for c in getattr(part, "chunks", [part]) if len(c)]
    if not chunks:
        return pa.array([], pa.string()), [np.empty(0, np.int64) for _ in parts]
    encoded = pa.chunked_array(chunks).dictionary_encode()
    places = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    stops = np.cumsum([len(part) for part in parts])
    return encoded.chunk(0).dictionary, np.split(places.astype(np.int64), stops[:-1])


def numbered(
    doc_ids: pa.StringArray, parts: Sequence[pa.Array | pa.ChunkedArray]
) -> tuple[pa.Array, list[NDArray[np.int64]]]:
    """Every name in several arrays as a row of `doc_ids`, or as a number beyond those.

    Returns the names that are beyond, in the order of their numbers, and the numbers.
    """
    names, places = coded(parts)
    found = pc.index_in(doc_ids, value_set=names)
    number = np.full(len(names), -1, dtype=np.int64)
    number[found.drop_null().to_numpy()] = np.flatnonzero(found.is_valid().to_numpy(False))
    beyond = np.flatnonzero(number < 0)
    number[beyond] = len(doc_ids) + np.arange(len(beyond))
    return names.take(pa.array(beyond)), [number[place] for place in places]


def absent(names: pa.Array, among: pa.Array) -> pa.Array:
    """The names that are not `among` others."""
    return names.filter(pc.invert(pc.is_in(names, value_set=among)))
