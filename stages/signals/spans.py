"""Spans: characters of a text, what they are, and what a view puts in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """Characters [start, end) of a text: what they are and what to put there."""

    start: int
    end: int
    label: str
    replacement: str


def replaced(text: str, spans: Sequence[Span]) -> str:
    """`text` with each span replaced; `spans` from left to right, without overlap."""
    pieces, last = [], 0
    for span in spans:
        pieces += [text[last : span.start], span.replacement]
        last = span.end
    return "".join([*pieces, text[last:]])


def without_overlap(spans: Sequence[Span]) -> list[Span]:
    """From left to right; of two that overlap the first, of two that start together the longer."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not kept or kept[-1].end <= span.start:
            kept.append(span)
    return kept
