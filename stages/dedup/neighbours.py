"""From verified pairs to the rows of the `duplicates` table: each document's nearest partners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS
from stages.dedup.verify import Pairs

_SCHEMA = KINDS["duplicates"].tables["*/*.parquet"].arrow()
_STEPS = 10
"""Similarity is ranked in steps of 1 / _STEPS when a list of partners has to be capped."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Partners of every document in compressed rows: of d they are [offsets[d], offsets[d + 1])."""

    offsets: NDArray[np.int64]
    partner: NDArray[np.int64]
    similarity: NDArray[np.float32]
    band: NDArray[np.int32]
    capped: int
    """Documents with more partners than were kept."""


def nearest(pairs: Pairs, documents: int, most: int) -> Neighbours:
    """Each document's partners by similarity falling (then input order), at most `most` of them.

    Where more are left out, the most similar stay, in steps of 0.1, and of equally similar ones the
    earliest: in a large group of copies it is the early documents that the rest is compared with
    when `filter` decides.
    """
    owner = np.concatenate([pairs.left, pairs.right])
    partner = np.concatenate([pairs.right, pairs.left])
    both = np.tile(pairs.similarity, 2)
    bands = np.tile(pairs.band, 2)
    # 1e-6: a stored 0.7 counts as the step 0.7 although its float32 lies below.
    step = np.floor(both.astype(np.float64) * _STEPS + 1e-6).astype(np.int64)
    ranked = np.lexsort((partner, -step, owner))
    counts = np.bincount(owner, minlength=documents)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = ranked[rank < most]
    order = kept[np.lexsort((partner[kept], -both[kept], owner[kept]))]
    offsets = np.concatenate([[0], np.cumsum(np.minimum(counts, most))]).astype(np.int64)
    capped = int((counts > most).sum())
    return Neighbours(offsets, partner[order], both[order], bands[order], capped)


def duplicates_table(
    ids: pa.StringArray, first: NDArray[np.int64], neighbours: Neighbours, start: int, stop: int
) -> pa.Table:
    """Rows [start, stop) of the documents as a `duplicates` table.

    `first` names each document's exact class by the index of its first member; only that member's
    row lists partners.
    """
    begin, end = int(neighbours.offsets[start]), int(neighbours.offsets[stop])
    item = _SCHEMA.field("partners").type.value_type
    partners = pa.StructArray.from_arrays(
        [
            ids.take(pa.array(neighbours.partner[begin:end])),
            pa.array(neighbours.similarity[begin:end]),
            pa.array(neighbours.band[begin:end]),
        ],
        fields=list(item),
    )
    offsets = pa.array((neighbours.offsets[start : stop + 1] - begin).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, partners, type=_SCHEMA.field("partners").type)
    classes = ids.take(pa.array(first[start:stop]))
    return pa.table([ids.slice(start, stop - start), classes, lists], schema=_SCHEMA)
