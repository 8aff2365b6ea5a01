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
from stages.signals.columns import choose_signals
from stages.signals.config import SignalsConfig
from stages.signals.measure import (
    VIEWS,
    RunInputs,
    Views,
    count_totals,
    find_views,
    measure_columns,
)
from stages.signals.outputs import Span, drop_overlaps
from stages.text.chat_rows import ChatShard, Piece, Text, list_texts, split_pieces

if TYPE_CHECKING:
    from stages.engine import ShardOutput

_SCHEMA = KINDS["views"].tables["chat/*.parquet"].arrow()


class _Part(NamedTuple):
    """A text of a row, with its pieces."""

    text: Text
    pieces: list[Piece]


def measure_chat_shard(
    item: ChatShard, out: ShardOutput, *, config: SignalsConfig, inputs: RunInputs
) -> dict[str, int]:
    """Write the signals and views of a shard; return what it counted."""
    rows = item.rows()
    parts = [[_Part(t, split_pieces(t)) for t in list_texts(row, item.role)] for row in rows]
    spans = iter(find_chat_views([part for own in parts for part in own], config))
    by_row = [[(part.text, next(spans)) for part in own] for own in parts]
    views: list[Views] = [
        {view: [span for _, spans_by_view in own for span in spans_by_view[view]] for view in VIEWS}
        for own in by_row
    ]
    texts = ["\n\n".join(piece.text for part in own for piece in part.pieces) for own in parts]
    inputs = replace(inputs, pages=None, page_views=None)
    nothing = [None] * len(rows)
    columns, _ = measure_columns(texts, nothing, nothing, config, inputs, views=views)
    schema = (
        KINDS["signals"]
        .tables["*.parquet"]
        .arrow([signal.column for signal in choose_signals(inputs.choose_columns(config))])
    )
    ids = item.ids(rows)
    out.write_table("signals", item.path, pa.table({"doc_id": ids, **columns}, schema=schema))
    formatted = [_format_spans(own) for own in by_row]
    table = pa.table({"doc_id": ids, "spans": formatted}, schema=_SCHEMA)
    out.write_table("views", item.path, table)
    return {item.role: len(rows), **count_totals(columns)}


def find_chat_views(parts: Sequence[_Part], config: SignalsConfig) -> list[Views]:
    """The spans of each text, by view, as characters of that text."""
    piece_views = iter(find_views([piece.text for part in parts for piece in part.pieces], config))
    # The undecoded JSON text too: a name says what a value is, as in {"password": "…"}.
    whole = iter(find_views([part.text.text for part in parts if part.text.is_json], config))
    views = []
    for text, pieces in parts:
        own: Views = {view: [] for view in VIEWS}
        for piece in pieces:
            for view, spans in next(piece_views).items():
                own[view] += [_place_span(span, piece) for span in spans]
        if text.is_json:
            for view, spans in next(whole).items():
                if view != "mojibake":
                    own[view] = _add_whole_text_spans(own[view], spans, pieces)
        views.append({view: drop_overlaps(spans) for view, spans in own.items()})
    return views


def _place_span(span: Span, piece: Piece) -> Span:
    start, end = piece.span(span.start, span.end)
    return Span(start, end, span.label, piece.replacement(span.replacement))


def _add_whole_text_spans(
    piece_spans: list[Span], whole: Sequence[Span], pieces: Sequence[Piece]
) -> list[Span]:
    """`piece_spans`, and those parts of `whole` that lie in a piece and are not among them.

    All three are from left to right, without overlaps.
    """
    starts = [piece.start for piece in pieces]
    begins, ends = [span.start for span in piece_spans], [span.end for span in piece_spans]
    more = list(piece_spans)
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


def _format_spans(own: Sequence[tuple[Text, Views]]) -> list[dict[str, object]]:
    """The spans of a row as the table has them: by view, place, then start."""
    return [
        {"view": view, "place": text.place, **span._asdict()}
        for view in VIEWS
        for text, spans_by_view in own
        for span in spans_by_view[view]
    ]
