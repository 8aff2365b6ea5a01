"""The search in conversations and preference pairs: a hit names the text of the row it begins in.

A row is searched as one text, its texts one below the other: a question that a user asks and the
assistant answers is found as prompt and answer are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from artifacts_schema.kinds import KINDS
from stages.decontaminate.report import document_table
from stages.decontaminate.scan import TEXTS_AT_ONCE, Searched, scan_texts
from stages.text.chat_rows import Piece, Row, pieces_of, texts_of

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult
    from stages.text.chat_rows import ChatShard

_BETWEEN = "\n\n"
_SCHEMA = KINDS["contamination"].tables["chat/*.parquet"].arrow()


def scan_chat(item: Searched[ChatShard], out: ShardOutput, *, index: ShardResult) -> dict[str, Any]:
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
    item: Searched[ChatShard], out: ShardOutput, *, index: ShardResult, common: Sequence[int]
) -> dict[str, int]:
    """Write the shard's table, with the place of each hit within the row."""
    rows = item.shard.rows()
    ids = pa.chunked_array([pa.array(item.shard.ids(rows), pa.string())])
    table = document_table(item, ids, index, common)
    hits = [
        _placed(found, _pieces(row, item.shard.role)) if found else []
        for row, found in zip(rows, table["hits"].to_pylist(), strict=True)
    ]
    columns = {name: table[name] for name in ("doc_id", "ngrams", "ngrams_hit")}
    out.write_table("contamination", item.path, pa.table({**columns, "hits": hits}, schema=_SCHEMA))
    hit = sum(count > 0 for count in table["ngrams_hit"].to_pylist())
    return {item.shard.role: len(rows), f"{item.shard.role}_hit": hit}


def _pieces(row: Row, kind: str) -> list[Piece]:
    return [piece for text in texts_of(row, kind) for piece in pieces_of(text)]


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
