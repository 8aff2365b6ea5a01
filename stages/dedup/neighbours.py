"""From pairs to the rows of the `duplicates` table: each document's nearest partners.

A document lists partners of its own and earlier generations alone, so a pair of two generations is
in the newer document's list, and what is said of a generation stays as later ones come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS
from stages.dedup.closure import Found
from stages.dedup.nearest import gathered, nearest, ranks
from stages.dedup.pairs import BYTES_AT_WORK, Pairs
from stages.dedup.verify import Measure, ranges
from stages.engine.arrays import arrow_array
from stages.engine.tables import ROW_GROUP

if TYPE_CHECKING:
    from stages.dedup.classes import Classes
    from stages.dedup.index import Corpus
    from stages.engine import ShardOutput

_SCHEMA = KINDS["duplicates"].tables["*/*.parquet"].arrow()
_ITEM = _SCHEMA.field("partners").type.value_type
_STEPS = 10
"""Similarity is ranked in steps of 1 / _STEPS when a list of partners has to be capped."""


@dataclass(frozen=True)
class DuplicatesShard:
    """Documents [start, start + documents) of one generation, and the files that tell of them."""

    id: str
    generation: int
    start: int
    documents: int
    table: str
    """Path of the table in `duplicates`."""
    pairs: str | None
    """Path of the pairs in `dedup_index`; None where no index is written."""


def duplicates_shard(
    item: DuplicatesShard,
    out: ShardOutput,
    *,
    corpus: Corpus,
    classes: Classes,
    found: Sequence[Found],
    measure: Measure,
    max_partners: int,
    bytes_at_once: int,
) -> dict[str, Any]:
    """Write the table of one shard, and its pairs for a later run; returns counts.

    Of `found` those of the shard's generation are read: at most `bytes_at_once` of them are in
    memory, and the lists of one row group.
    """
    records = max(bytes_at_once // BYTES_AT_WORK, 1)
    own = next(of for of in found if of.generation == item.generation)
    end = item.start + item.documents
    listed = capped = 0
    with out.table_writer("duplicates", item.table, _SCHEMA) as writer:
        for low in range(item.start, end, ROW_GROUP):
            high = min(low + ROW_GROUP, end)
            counts = np.zeros(high - low, dtype=np.int64)
            partners = _listed(low, high, counts, corpus, own, measure, max_partners, records)
            writer.write(duplicates_rows(low, high, partners, corpus, classes))
            listed += int((counts > 0).sum())
            capped += int((counts > max_partners).sum())
    stored = _store_pairs(item, out, own, records) if item.pairs else 0
    return {"documents_with_pairs": listed, "capped_documents": capped, "pairs": stored}


def _store_pairs(item: DuplicatesShard, out: ShardOutput, own: Found, records: int) -> int:
    """The pairs of a shard's documents, in this run's numbers: see `pairs.translated`."""
    stored = 0
    with out.open("dedup_index", str(item.pairs)) as file:
        for low, high in ranges([own.pairs], item.start, item.start + item.documents, records):
            pairs = own.pairs.between(low, high)
            file.write(pairs.tobytes())
            stored += len(pairs)
    return stored


def duplicates_rows(
    low: int, high: int, partners: Pairs, corpus: Corpus, classes: Classes
) -> pa.Table:
    """Documents [low, high) as rows of a `duplicates` table.

    `partners` lists them with their partners as (right, left), in the order of the rows.
    """
    numbers = np.arange(low, high)
    bounds = np.searchsorted(partners["right"], np.arange(low, high + 1))
    items = pa.StructArray.from_arrays(
        [
            _ids(partners["left"], corpus),
            _or_null(partners["jaccard"]),
            _or_null(partners["containment"]),
            arrow_array(partners["band"].astype(np.int32)),
        ],
        fields=list(_ITEM),
    )
    lists = pa.ListArray.from_arrays(
        arrow_array(bounds.astype(np.int32)), items, type=_SCHEMA.field("partners").type
    )
    return pa.table(
        [
            corpus.ids(numbers),
            _ids(classes.first(low, high), corpus),
            _ids(classes.text_first(low, high), corpus),
            lists,
        ],
        schema=_SCHEMA,
    )


def _listed(
    low: int,
    high: int,
    counts: NDArray[np.int64],
    corpus: Corpus,
    found: Found,
    measure: Measure,
    most: int,
    records: int,
) -> Pairs:
    """Partners of documents [low, high) in the order of the lists; `counts` is how many there are.

    Where more than `most` are left out, the most similar stay, in steps of 0.1, and of equally
    similar ones the first by rank: in a large group of copies it is these that the rest is compared
    with when `filter` decides.
    """

    def pieces() -> Iterator[Pairs]:
        for side in found.sides:
            for piece in side.slices(low, high, records):
                counts[:] += np.bincount(piece["right"] - low, minlength=high - low)
                yield piece

    def kept(pairs: Pairs) -> Pairs:
        # 1e-6: a stored 0.7 counts as the step 0.7 although its float32 lies below.
        steps = np.floor(np.nan_to_num(pairs[measure].astype(np.float64)) * _STEPS + 1e-6)
        return pairs[nearest(pairs["right"], pairs["left"], steps, most, corpus)]

    partners = gathered(pieces(), kept, records)
    generation, identity = ranks(partners["left"], corpus)
    similarity = partners["jaccard"]
    # Measured ones follow by similarity and id; others are all alike and follow by rank.
    generation = np.where(np.isnan(similarity), generation, 0)
    return partners[np.lexsort((identity, generation, -similarity, partners["right"]))]


def _ids(numbers: NDArray[np.int64], corpus: Corpus) -> pa.StringArray:
    different, places = np.unique(numbers, return_inverse=True)
    return corpus.ids(different).take(arrow_array(places))


def _or_null(measured: NDArray[np.float32]) -> pa.Array:
    return arrow_array(measured, np.isnan(measured))
