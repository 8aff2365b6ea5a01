"""Matches as tables: the items of each document, and the documents of each item.

A conversation or preference pair is searched as one text, its texts joined by blank lines, so that
a user's question and the assistant's answer match as prompt and answer do. A hit
names the text of the row in which it begins.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS
from stages.decontaminate.search import (
    TEXTS_AT_ONCE,
    SearchTask,
    find_overlaps,
    load_index,
    scan_texts,
)
from stages.text.chat_rows import Piece, Row, list_texts, split_pieces

if TYPE_CHECKING:
    from stages.decontaminate.config import DecontaminateConfig
    from stages.engine import Shard, ShardOutput, ShardResult
    from stages.text.chat_rows import ChatShard


def common_ngrams(
    matches: Iterable[ShardResult], index_result: ShardResult, config: DecontaminateConfig
) -> list[int]:
    """Index rows of n-grams that more documents hold than the config allows, ascending.

    Those of fewer than `min_words` words have a limit of their own.
    """
    held = list(matches)
    if not held or (config.common_documents is None and config.common_short_documents is None):
        return []
    ngrams = [np.unique(_pairs(result), axis=0)[:, 1] for result in held]
    distinct, documents = np.unique(np.concatenate(ngrams), return_counts=True)
    short = load_index(index_result).words[distinct] < config.min_words
    limits = np.where(short, _limit(config.common_short_documents), _limit(config.common_documents))
    return [int(ngram) for ngram in distinct[documents > limits]]


def _limit(documents: int | None) -> int:
    return np.iinfo(np.int64).max if documents is None else documents


def report_shard(
    item: SearchTask[Shard],
    out: ShardOutput,
    *,
    index: ShardResult,
    common: Sequence[int],
    share: float,
) -> dict[str, int]:
    """Write the shard's table of the contamination kind."""
    table = document_table(item, item.shard.read(["doc_id"])["doc_id"], index, common, share)
    out.write_table("contamination", item.path, table)
    hit = np.count_nonzero(table["ngrams_hit"].to_numpy())
    return {"documents": table.num_rows, "documents_hit": int(hit)}


def document_table(
    item: SearchTask[Any],
    doc_ids: pa.ChunkedArray,
    index_result: ShardResult,
    common: Sequence[int],
    share: float = 0.0,
) -> pa.Table:
    """One row a document. `ngrams_hit` counts places in the text, the hits' `ngrams` different
    ones.

    `index_result` is that of `build_index`. Hits are items of which the document holds enough (see
    `find_overlaps`), in the order of their first place, then of the items in the benchmarks.
    """
    assert item.matches is not None, "a shard is reported after it was scanned"
    index, item_rows = load_index(index_result), index_result.read_scratch("items")
    items = list(
        zip(item_rows["benchmark"].to_pylist(), item_rows["item_id"].to_pylist(), strict=True)
    )
    ngrams: NDArray[np.int64] = item.matches.read_scratch("documents")["ngrams"].to_numpy()
    matches = _counted(item.matches, common)
    rows, numbers = matches["row"].to_numpy(), matches["ngram"].to_numpy()
    overlaps = find_overlaps(rows, numbers, index, share)
    pairs = zip(overlaps.texts.tolist(), overlaps.items.tolist(), strict=True)
    shared = dict(zip(pairs, overlaps.shared.tolist(), strict=True))
    places: list[set[int]] = [set() for _ in range(len(doc_ids))]
    first: list[dict[int, tuple[int, int]]] = [{} for _ in range(len(doc_ids))]
    columns = (matches[name].to_pylist() for name in ("row", "start_word", "ngram", "start", "end"))
    for row, word, ngram, start, end in zip(*columns, strict=True):
        for number in index.items_with(ngram).tolist():
            if (row, number) in shared:
                places[row].add(word)
                first[row].setdefault(number, (start, end))
    hits = [
        [
            {
                "benchmark": items[number][0],
                "item_id": items[number][1],
                "ngrams": shared[row, number],
                "start": start,
                "end": end,
            }
            for number, (start, end) in sorted(held.items(), key=lambda hit: (hit[1], hit[0]))
        ]
        for row, held in enumerate(first)
    ]
    hit_places = np.array([len(words) for words in places], dtype=np.int64)
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
    matches: Sequence[ShardResult],
    index_result: ShardResult,
    common: Sequence[int],
    share: float = 0.0,
) -> pa.Table:
    """One row for each item of which some document holds enough, in the order of the benchmarks."""
    index = load_index(index_result)
    items = index_result.read_scratch("items")
    documents = np.zeros(items.num_rows, dtype=np.int64)
    seen = np.zeros(len(index.items), dtype=np.bool_)
    for result in matches:
        counted = _counted(result, common)
        rows, ngrams = counted["row"].to_numpy(), counted["ngram"].to_numpy()
        overlaps = find_overlaps(rows, ngrams, index, share)
        documents += np.bincount(overlaps.items, minlength=len(documents))
        seen[overlaps.entries] = True
    ngrams_hit = np.bincount(index.items[seen], minlength=len(documents))
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


def _counted(result: ShardResult, common: Sequence[int]) -> pa.Table:
    """The matches of a shard without those of n-grams that are `common`."""
    matches = result.read_scratch("matches")
    return matches.filter(~np.isin(matches["ngram"].to_numpy(), common))


def _pairs(result: ShardResult) -> NDArray[np.int64]:
    """[matches, 2]: document row and index row of each match of a shard."""
    table = result.read_scratch("matches")
    return np.column_stack((table["row"].to_numpy(), table["ngram"].to_numpy()))


_BETWEEN = "\n\n"
_SCHEMA = KINDS["contamination"].tables["chat/*.parquet"].arrow()


def scan_chat(
    item: SearchTask[ChatShard], out: ShardOutput, *, index: ShardResult
) -> dict[str, Any]:
    """As `scan_shard` does it; places are those in the texts of a row one below the other."""
    pieces = [_pieces(row, item.shard.role) for row in item.shard.rows()]
    texts = [_BETWEEN.join(piece.text for piece in own) for own in pieces]
    # One array of strings holds at most 2 GiB.
    chunks = [
        pa.array(texts[first : first + TEXTS_AT_ONCE], pa.string())
        for first in range(0, len(texts), TEXTS_AT_ONCE)
    ]
    return scan_texts(pa.chunked_array(chunks, pa.string()), out, index)


def report_chat(
    item: SearchTask[ChatShard],
    out: ShardOutput,
    *,
    index: ShardResult,
    common: Sequence[int],
    share: float,
) -> dict[str, int]:
    """Write the shard's table, with the place of each hit within the row."""
    rows = item.shard.rows()
    ids = pa.chunked_array([pa.array(item.shard.ids(rows), pa.string())])
    table = document_table(item, ids, index, common, share)
    hits = [
        _placed(hits_of_row, _pieces(row, item.shard.role)) if hits_of_row else []
        for row, hits_of_row in zip(rows, table["hits"].to_pylist(), strict=True)
    ]
    columns = {name: table[name] for name in ("doc_id", "ngrams", "ngrams_hit")}
    out.write_table("contamination", item.path, pa.table({**columns, "hits": hits}, schema=_SCHEMA))
    hit = sum(count > 0 for count in table["ngrams_hit"].to_pylist())
    return {item.shard.role: len(rows), f"{item.shard.role}_hit": hit}


def _pieces(row: Row, kind: str) -> list[Piece]:
    return [piece for text in list_texts(row, kind) for piece in split_pieces(text)]


def _placed(hits: Sequence[dict[str, Any]], pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """Hits as characters of the text that each begins in; one that goes on ends with that text."""
    starts = list(accumulate((len(p.text) + len(_BETWEEN) for p in pieces[:-1]), initial=0))
    placed = []
    for hit in hits:
        number = bisect_right(starts, hit["start"]) - 1
        piece, begin = pieces[number], starts[number]
        start, end = piece.span(hit["start"] - begin, min(hit["end"] - begin, len(piece.text)))
        assert piece.owner is not None
        place = {"place": piece.owner.place, "role": piece.owner.role}
        placed.append({**hit, **place, "start": start, "end": end})
    return placed
