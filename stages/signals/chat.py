"""Signals and views of conversations and preference pairs, by the same functions as of documents.

Personal data, secrets and mojibake are looked for in each text of a row by itself; what is measured
of a row as a whole, its language among it, is measured on its texts one below the other. Line rules
make no views of it: they are made for pages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from artifacts_schema.kinds import KINDS
from stages.signals.columns import signals_of
from stages.signals.config import SignalsConfig
from stages.signals.measure import VIEWS, Views, found_views
from stages.signals.spans import Span, without_overlap
from stages.signals.tables import Given, counted, measured_columns
from stages.text.chat_rows import ChatShard, Piece, Text, pieces_of, texts_of

if TYPE_CHECKING:
    from stages.engine import ShardOutput

_SCHEMA = KINDS["views"].tables["chat/*.parquet"].arrow()


class _Part(NamedTuple):
    """A text of a row, with its pieces."""

    text: Text
    pieces: list[Piece]


def measure_chat_shard(
    item: ChatShard, out: ShardOutput, *, config: SignalsConfig, given: Given
) -> dict[str, int]:
    """Write the signals and views of a shard; return what it counted."""
    rows = item.rows()
    parts = [[_Part(t, pieces_of(t)) for t in texts_of(row, item.role)] for row in rows]
    spans = iter(found_in([part for own in parts for part in own], config))
    by_row = [[(part.text, next(spans)) for part in own] for own in parts]
    views: list[Views] = [
        {view: [span for _, found in own for span in found[view]] for view in VIEWS}
        for own in by_row
    ]
    texts = ["\n\n".join(piece.text for part in own for piece in part.pieces) for own in parts]
    given = replace(given, pages=None, page_views=None)
    nothing = [None] * len(rows)
    columns, _ = measured_columns(texts, nothing, nothing, config, given, views=views)
    schema = (
        KINDS["signals"]
        .tables["*.parquet"]
        .arrow([signal.column for signal in signals_of(given.asked(config))])
    )
    ids = item.ids(rows)
    out.write_table("signals", item.path, pa.table({"doc_id": ids, **columns}, schema=schema))
    listed = [_listed(own) for own in by_row]
    out.write_table("views", item.path, pa.table({"doc_id": ids, "spans": listed}, schema=_SCHEMA))
    return {item.role: len(rows), **counted(columns)}


def found_in(parts: Sequence[_Part], config: SignalsConfig) -> list[Views]:
    """The spans of each text, by view, as characters of that text."""
    found = iter(found_views([piece.text for part in parts for piece in part.pieces], config))
    # JSON text as it stands, too: a name tells what a value is, as in {"password": "…"}.
    whole = iter(found_views([part.text.text for part in parts if part.text.is_json], config))
    views = []
    for text, pieces in parts:
        own: Views = {view: [] for view in VIEWS}
        for piece in pieces:
            for view, spans in next(found).items():
                own[view] += [_moved(span, piece) for span in spans]
        if text.is_json:
            for view, spans in next(whole).items():
                if view != "mojibake":
                    own[view] = _joined(own[view], spans, pieces)
        views.append({view: without_overlap(spans) for view, spans in own.items()})
    return views


def _moved(span: Span, piece: Piece) -> Span:
    start, end = piece.span(span.start, span.end)
    return Span(start, end, span.label, piece.replacement(span.replacement))


def _joined(found: list[Span], whole: Sequence[Span], pieces: Sequence[Piece]) -> list[Span]:
    """`found`, and what of the spans in the whole text lies in a piece and is not among them.

    All three are from left to right, without overlaps.
    """
    starts = [piece.start for piece in pieces]
    begins, ends = [span.start for span in found], [span.end for span in found]
    more = list(found)
    last = 0  # Two spans may touch one number or escape, which is replaced once.
    for span in whole:
        first = max(bisect_right(starts, span.start) - 1, 0)
        for piece in pieces[first : bisect_left(starts, span.end)]:
            clipped = piece.clipped(span.start, span.end)
            if clipped is None or clipped[0] < last:
                continue
            before = bisect_left(begins, clipped[1]) - 1
            if before < 0 or ends[before] <= clipped[0]:
                more.append(Span(*clipped, span.label, piece.replacement(span.replacement)))
                last = clipped[1]
    return more


def _listed(own: Sequence[tuple[Text, Views]]) -> list[dict[str, object]]:
    """The spans of a row as the table has them: by view, place, then start."""
    return [
        {"view": view, "place": text.place, **span._asdict()}
        for view in VIEWS
        for text, found in own
        for span in found[view]
    ]
