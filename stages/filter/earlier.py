"""Links of earlier runs: one task reads their tables, and leaves what concerns the documents.

Its files have the form of a shard's links, so names of earlier documents are matched and decided
with all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.filter.document_ids import DocumentIds
from stages.filter.duplicates import EarlierDocuments, encode_names
from stages.filter.links import (
    CLASS,
    EARLIER_CLASS,
    EARLIER_NAME,
    EARLIER_PAIR,
    EARLIER_TEXT,
    LINKS,
    NAMES,
    PAIR,
    leave_named_links,
    measure_column,
)
from stages.filter.ordered import write_ordered

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

MEMBERS = "members"
"""Scratch table: `one` (a place among the names), `age`, and `kept`, the place among all that were
kept, -1 for others."""


@dataclass(frozen=True)
class EarlierRuns:
    """What there is of earlier runs, and the documents to decide on; the item of a map."""

    id: str
    documents: EarlierDocuments
    ids: DocumentIds


def leave_earlier(
    item: EarlierRuns, out: ShardOutput, *, shards: Sequence[ShardResult], measure: str
) -> dict[str, Any]:
    """Leave `NAMES`, `LINKS` and `MEMBERS` of earlier runs; returns how many names there are."""
    classes = _named(shards)
    pairs = item.documents.connected(classes, item.ids)
    every = encode_names([classes, pairs["one"], pairs["two"]])[0]
    kept, others = item.documents.members(every, item.ids)
    kinds = (EARLIER_CLASS, EARLIER_TEXT, EARLIER_NAME, EARLIER_PAIR)
    names, places = leave_named_links(
        out,
        kinds,
        [kept["doc_id"], kept["doc_id"], others["doc_id"], pairs["one"]],
        [kept["exact_class"], kept["text_class"], others["exact_class"], pairs["two"]],
        {EARLIER_PAIR: measure_column(pairs, measure)},
    )
    # Of one that is in both, the second row holds.
    members = {
        "one": np.concatenate([places[2], places[0]]),
        "age": np.concatenate([others["age"].to_numpy(), kept["age"].to_numpy()]),
        "kept": np.concatenate([np.full(len(others), -1), np.arange(len(kept))]),
    }
    with out.open_scratch(MEMBERS) as file:
        write_ordered(pa.table(members), file)
    return {"names": names}


def _named(shards: Sequence[ShardResult]) -> pa.Array:
    """What the documents' own rows name as a class or a partner."""
    chosen = [pa.array([], pa.string())]
    for result in shards:
        links = result.read_scratch(LINKS, ["two", "kind"])
        kinds = links["kind"].to_numpy()
        places: NDArray[np.int64] = np.unique(
            links["two"].to_numpy()[np.isin(kinds, (CLASS, PAIR))]
        )
        if len(places):
            names = result.read_scratch(NAMES, ["doc_id"])["doc_id"].combine_chunks()
            chosen.append(names.take(pa.array(places)))
    return encode_names(chosen)[0]
