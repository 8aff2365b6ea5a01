"""The ids of the documents to decide on, as numbers, and looked up shard by shard.

A document is a number: its row among all, in the order of the inputs and their shards. Links refer
to documents by name, and names are matched by numbers that a name has (`id_words`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest, xxh3_128_intdigest

if TYPE_CHECKING:
    from stages.engine import Shard

_LEAST_ROWS = 16_384
"""Ids that are compared with a set of names together, at least."""
_NAMES_A_ROW = 8
"""Names for each of these at most: a table of the names is made for each batch."""
_DIGITS = 32
"""Characters of a doc_id."""
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93],
    dtype=np.uint64,
)
"""Odd numbers, one for each eight digits."""
_DIGIT_VALUES = np.full(256, 255, dtype=np.uint8)
"""Values of lower-case hexadecimal digits by their bytes; 255 for other bytes."""
_DIGIT_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


@dataclass(frozen=True, eq=False)
class DocumentIds:
    """The ids of the documents of some shards."""

    shards: tuple[Shard, ...]

    def __len__(self) -> int:
        return sum(shard.rows for shard in self.shards)

    def batches(self, least: int = 1) -> Iterator[tuple[int, pa.StringArray]]:
        """All ids in order: the row of the first, and at least so many, but for the last."""
        held: list[pa.Array] = []
        start = rows = 0
        for shard in self.shards:
            for group in shard.row_groups(["doc_id"]):
                chunks = group["doc_id"].chunks
                held += chunks
                rows += sum(map(len, chunks))
                if rows >= least:
                    yield start, pa.concat_arrays(held)
                    start, rows, held = start + rows, 0, []
        if rows:
            yield start, pa.concat_arrays(held)

    def rows_of(self, names: pa.Array) -> NDArray[np.int64]:
        """The row of each of some different names; -1 for one that no document has."""
        rows = np.full(len(names), -1, dtype=np.int64)
        if len(names):
            for start, ids in self.batches(max(_LEAST_ROWS, len(names) // _NAMES_A_ROW)):
                places = pc.index_in(ids, value_set=names)
                there = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
                rows[places.drop_null().to_numpy()] = start + there
        return rows

    def sorted_numbers(self) -> NDArray[np.uint64]:
        """The numbers of all ids: 8 bytes a document."""
        numbers = [id_numbers(ids) for _, ids in self.batches()]
        return np.sort(np.concatenate([np.empty(0, np.uint64), *numbers]))


def id_numbers(ids: pa.StringArray) -> NDArray[np.uint64]:
    """A number for each string: different numbers prove different strings."""
    numbers = np.empty(len(ids), dtype=np.uint64)
    whole = pc.equal(pc.binary_length(ids), _DIGITS).to_numpy(zero_copy_only=False)
    if len(ids) and whole.all():
        _, offsets, data = ids.buffers()
        first = np.frombuffer(offsets, dtype=np.int32)[ids.offset]
        words = np.frombuffer(data, np.uint8)[first : first + _DIGITS * len(ids)]
        numbers[:] = (words.view(np.uint64).reshape(-1, 4) * _FACTORS).sum(axis=1)
        return numbers
    if whole.any():
        numbers[whole] = id_numbers(ids.filter(pa.array(whole)))
    others = ids.filter(pa.array(~whole)).to_pylist()
    numbers[~whole] = [xxh3_64_intdigest(name.encode("utf-8", "surrogatepass")) for name in others]
    return numbers


def id_words(ids: pa.StringArray) -> NDArray[np.uint64]:
    """[id, 2] Two numbers for each string, which differ for different strings.

    The first is spread over all 64-bit values. For ids of 32 hexadecimal digits the two are another
    form of these 128 bits; other strings have the 128 bits of a hash.
    """
    words = np.empty((len(ids), 2), dtype=np.uint64)
    if not len(ids):
        return words
    lengths = pc.binary_length(ids).to_numpy(zero_copy_only=False)
    hexadecimal = np.zeros(len(ids), dtype=bool)
    if (lengths == _DIGITS).all():
        _, offsets, data = ids.buffers()
        first = np.frombuffer(offsets, dtype=np.int32)[ids.offset]
        digits = np.frombuffer(data, np.uint8)[first : first + _DIGITS * len(ids)]
        values = _DIGIT_VALUES[digits].reshape(len(ids), _DIGITS)
        hexadecimal = values.max(axis=1) < 16
        packed = (values[:, 0::2] << 4) | (values[:, 1::2] & 15)
        halves = np.ascontiguousarray(packed).view(">u8").astype(np.uint64)
        # An odd factor, so the product has an inverse: both halves follow from the two numbers.
        words[:, 0] = halves[:, 0] * _FACTORS[0] + halves[:, 1] * _FACTORS[1]
        words[:, 1] = halves[:, 1]
        if hexadecimal.all():
            return words
    elif (lengths == _DIGITS).any():
        whole = lengths == _DIGITS
        words[whole] = id_words(ids.filter(pa.array(whole)))
        hexadecimal = whole
    others = np.flatnonzero(~hexadecimal)
    for row, name in zip(others.tolist(), ids.take(pa.array(others)).to_pylist(), strict=True):
        hashed = xxh3_128_intdigest(name.encode("utf-8", "surrogatepass"))
        words[row] = divmod(hashed, 1 << 64)
    return words


def all_differ(names: Sequence[pa.StringArray]) -> bool:
    """Whether no two strings of several arrays are equal."""
    numbers = np.concatenate([np.empty(0, np.uint64), *(id_numbers(part) for part in names)])
    ordered = np.sort(numbers)
    if (ordered[1:] != ordered[:-1]).all():
        return True
    whole = pa.chunked_array(list(names), pa.string())
    return bool(pc.count_distinct(whole).as_py() == len(whole))
