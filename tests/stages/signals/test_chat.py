"""Spans of JSON text as it stands and of its pieces, joined."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stages.signals.chat import _add_whole_text_spans, _place_span
from stages.signals.outputs import Span
from stages.text.chat_rows import Piece, Text, split_pieces

VALUES = st.recursive(
    st.integers() | st.text('ab\\"\n\u00e9\U0001f600', max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


def joined_pair_by_pair(
    found: Sequence[Span], whole: Sequence[Span], pieces: Sequence[Piece]
) -> list[Span]:
    """The reference: every span with every piece, and that with every other span."""
    more = list(found)
    for span in whole:
        for piece in pieces:
            clipped = piece.clipped(span.start, span.end)
            if clipped is None or any(s.start < clipped[1] and clipped[0] < s.end for s in more):
                continue
            more.append(Span(*clipped, span.label, piece.replacement(span.replacement)))
    return more


def drawn(data: Any, length: int) -> list[Span]:
    """Spans of a text of `length` characters, from left to right, without overlap."""
    cuts = sorted(data.draw(st.sets(st.integers(0, length), max_size=8)))
    pairs = pairwise(cuts)
    return [Span(*pair, "email", "<e>") for pair in pairs if data.draw(st.booleans())]


@settings(max_examples=300, deadline=None)
@given(VALUES, st.booleans(), st.booleans(), st.data())
def test_spans_are_joined_as_pair_by_pair(
    value: Any, ascii_only: bool, broken: bool, data: Any
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only) + "]" * broken
    pieces = split_pieces(Text("tools", None, text, is_json=True))
    found = [_place_span(span, piece) for piece in pieces for span in drawn(data, len(piece.text))]
    whole = drawn(data, len(text))
    assert _add_whole_text_spans(found, whole, pieces) == joined_pair_by_pair(found, whole, pieces)


def test_a_span_looks_at_the_pieces_near_it(monkeypatch: Any) -> None:
    """A list of 2,000 addresses has 4 million pairs of span and piece."""
    text = json.dumps(["a@b.cd"] * 2_000)
    pieces = split_pieces(Text("tools", None, text, is_json=True))
    whole = [Span(piece.start + 1, piece.start + 7, "email", "<e>") for piece in pieces]
    clipped, looked = Piece.clipped, []
    monkeypatch.setattr(
        Piece, "clipped", lambda self, *place: looked.append(place) or clipped(self, *place)
    )
    assert _add_whole_text_spans([], whole, pieces) == whole
    assert len(looked) <= 2 * len(whole)
