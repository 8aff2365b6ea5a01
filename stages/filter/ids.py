"""The ids of all documents, which must differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.errors import InputError

if TYPE_CHECKING:
    from stages.filter.coverage import Beside

_DIGITS = 32
"""Characters of a doc_id."""

_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93],
    dtype=np.uint64,
)
"""Odd numbers, one for each eight digits."""


def ids_of(shards: Sequence[Beside]) -> pa.StringArray:
    """All doc_ids in priority order. InputError if two documents bear one id."""
    columns = [shard.documents.read(["doc_id"])["doc_id"] for shard in shards]
    chunks = [chunk for column in columns for chunk in column.chunks]
    doc_ids = pa.concat_arrays([pa.array([], pa.string()), *chunks])
    if not all_differ(doc_ids):
        raise InputError(
            "two documents bear the same doc_id",
            where="filter",
            hint="the same documents, or overlapping snapshots under one name, came in twice",
        )
    return doc_ids


def all_differ(names: pa.StringArray) -> bool:
    """Whether no two strings are equal.

    Where all are as long as doc_ids are, numbers made of them are sorted first: different numbers
    prove different strings at a fraction of what a table of strings costs.
    """
    lengths = pc.binary_length(names)
    if len(names) and pc.all(pc.equal(lengths, _DIGITS)).as_py():
        _, offsets, data = names.buffers()
        first = np.frombuffer(offsets, dtype=np.int32)[names.offset]
        words = np.frombuffer(data, np.uint8)[first : first + _DIGITS * len(names)]
        numbers = np.sort((words.view(np.uint64).reshape(-1, 4) * _FACTORS).sum(axis=1))
        if (numbers[1:] != numbers[:-1]).all():
            return True
    return bool(pc.count_distinct(names).as_py() == len(names))
