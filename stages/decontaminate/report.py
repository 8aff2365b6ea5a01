"""Matches read both ways: the items of each document, and the documents of each item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS
from stages.decontaminate.index import load_index

if TYPE_CHECKING:
    from stages.decontaminate.scan import Searched
    from stages.engine import Shard, ShardOutput, ShardResult


def common_ngrams(matches: Iterable[ShardResult], limit: int | None) -> list[int]:
    """Index rows of n-grams that more than `limit` documents hold, ascending; none without a
    limit."""
    held = list(matches)
    if limit is None or not held:
        return []
    ngrams = [np.unique(_pairs(found), axis=0)[:, 1] for found in held]
    distinct, documents = np.unique(np.concatenate(ngrams), return_counts=True)
    return [int(ngram) for ngram in distinct[documents > limit]]


def report_shard(
    item: Searched[Shard], out: ShardOutput, *, index: ShardResult, common: Sequence[int]
) -> dict[str, int]:
    """Write the shard's table of the contamination kind."""
    table = document_table(item, item.shard.read(["doc_id"])["doc_id"], index, common)
    out.write_table("contamination", item.path, table)
    hit = np.count_nonzero(table["ngrams_hit"].to_numpy())
    return {"documents": table.num_rows, "documents_hit": int(hit)}


def document_table(
    item: Searched[Any],
    doc_ids: pa.ChunkedArray,
    found: ShardResult,
    common: Sequence[int],
) -> pa.Table:
    """One row a document. `ngrams_hit` counts places in the text, the hits' `ngrams` different
    ones.

    `found` is the index. Hits are in the order of their first place, then of the items in the
    benchmarks.
    """
    assert item.matches is not None, "a shard is reported after it was scanned"
    index, listed = load_index(found), found.read_scratch("items")
    items = list(zip(listed["benchmark"].to_pylist(), listed["item_id"].to_pylist(), strict=True))
    ngrams: NDArray[np.int64] = item.matches.read_scratch("documents")["ngrams"].to_numpy()
    matches = item.matches.read_scratch("matches")
    ignored = frozenset(common)
    places: list[set[int]] = [set() for _ in range(len(doc_ids))]
    shared: list[dict[int, set[int]]] = [{} for _ in range(len(doc_ids))]
    first: list[dict[int, tuple[int, int]]] = [{} for _ in range(len(doc_ids))]
    columns = (matches[name].to_pylist() for name in ("row", "start_word", "ngram", "start", "end"))
    for row, word, ngram, start, end in zip(*columns, strict=True):
        if ngram in ignored:
            continue
        places[row].add(word)
        for number in index.items_of(ngram).tolist():
            shared[row].setdefault(number, set()).add(ngram)
            first[row].setdefault(number, (start, end))
    hits = [
        [
            {
                "benchmark": items[number][0],
                "item_id": items[number][1],
                "ngrams": len(shared[row][number]),
                "start": start,
                "end": end,
            }
            for number, (start, end) in sorted(held.items(), key=lambda hit: (hit[1], hit[0]))
        ]
        for row, held in enumerate(first)
    ]
    hit_places = np.array([len(found) for found in places], dtype=np.int64)
    return pa.table(
        {
            "doc_id": doc_ids,
            "ngrams": ngrams,
            "ngrams_hit": np.minimum(hit_places, ngrams),
            "hits": hits,
        },
        schema=KINDS["contamination"].tables["*/*.parquet"].arrow(),
    )


def items_table(
    matches: Sequence[ShardResult], index_result: ShardResult, common: Sequence[int]
) -> pa.Table:
    """One row for each item that some document holds, in the order of the benchmarks."""
    index = load_index(index_result)
    items = index_result.read_scratch("items")
    documents = np.zeros(items.num_rows, dtype=np.int64)
    seen = np.zeros(len(index.hashes), dtype=np.bool_)
    for found in matches:
        pairs = _pairs(found)
        pairs = np.unique(pairs[~np.isin(pairs[:, 1], common)], axis=0)
        seen[pairs[:, 1]] = True
        sizes = np.diff(index.offsets)[pairs[:, 1]]
        owners = [index.items_of(ngram) for ngram in pairs[:, 1].tolist()]
        if owners:
            of_items = np.column_stack((np.repeat(pairs[:, 0], sizes), np.concatenate(owners)))
            held = np.unique(of_items, axis=0)[:, 1]
            documents += np.bincount(held, minlength=len(documents))
    holders = np.repeat(seen, np.diff(index.offsets))
    ngrams_hit = np.bincount(index.items[holders], minlength=len(documents))
    hit = np.flatnonzero(documents)
    return pa.table(
        {
            "benchmark": items["benchmark"].take(pa.array(hit)),
            "item_id": items["item_id"].take(pa.array(hit)),
            "documents": documents[hit],
            "ngrams": items["ngrams"].to_numpy()[hit],
            "ngrams_hit": ngrams_hit[hit],
        },
        schema=KINDS["contamination"].tables["items.parquet"].arrow(),
    )


def _pairs(found: ShardResult) -> NDArray[np.int64]:
    """[matches, 2]: document row and index row of each match of a shard."""
    table = found.read_scratch("matches")
    return np.column_stack((table["row"].to_numpy(), table["ngram"].to_numpy()))
