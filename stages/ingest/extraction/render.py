"""Blocks as text, boilerplate as spans.

A paragraph, heading, list item or table row is a line; a blank line stands between them, but not
between the items of a list or the rows of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stages.ingest.extraction.blocks import Blocks
from stages.ingest.extraction.vocabulary import CELL_CODES, PLACE_BIT, TOPICS, topics

BULLET, CELL = "- ", " | "
LABELS = (
    "navigation",
    "header",
    "footer",
    "sidebar",
    "comments",
    "related",
    "form",
    "cookie",
    "other",
)


class Span(NamedTuple):
    """Characters `start` to `end` of the text are boilerplate of this kind."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """Text, and its spans that are not main text, in order and without overlap."""

    text: str
    boilerplate: list[Span]


def render(blocks: Blocks, main: Sequence[bool], keep: bool) -> Rendered:
    """The text of the main blocks; with `keep` of all, the others marked as spans.

    Cutting the spans out of the kept text gives the text without them, character by character.
    """
    writer, pieces, spans = _Lines(blocks), [], []
    others = _Lines(blocks)
    length = 0
    aside: list[int] = []
    for index, is_main in enumerate(main):
        if not is_main:
            if keep:
                aside.append(index)
            continue
        separator, line = writer.next(index)
        pieces.append(separator)
        length += len(separator)
        if aside:
            written = _boilerplate(blocks, others, aside, length, separator or "\n\n", after=True)
            pieces.append(written.text)
            spans += written.boilerplate
            length += len(written.text)
            aside = []
        pieces.append(line)
        length += len(line)
    if aside:
        before = "\n\n" if length else ""
        written = _boilerplate(blocks, others, aside, length, before, after=False)
        pieces.append(written.text)
        spans += written.boilerplate
    return Rendered("".join(pieces), spans)


def _boilerplate(
    blocks: Blocks, lines: _Lines, indices: list[int], start: int, separator: str, after: bool
) -> Rendered:
    """Adjacent blocks outside the main text; `separator` is theirs, so that a cut leaves none."""
    lines.begin()
    text, spans = "" if after else separator, []
    pieces = [text]
    length, begun, label = len(text), 0, ""
    for index in indices:
        between, line = lines.next(index)
        own = label_of(blocks, index)
        if own != label:
            if label:
                spans.append(Span(start + begun, start + length, label))
                begun = length
            label = own
        pieces += (between, line)
        length += len(between) + len(line)
    if after:
        pieces.append(separator)
        length += len(separator)
    spans.append(Span(start + begun, start + length, label))
    return Rendered("".join(pieces), spans)


class _Lines:
    """Which separator and bullet each block of a sequence gets."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._last_item = -1
        self._last_row = -1
        self._begun = False

    def begin(self) -> None:
        """The next block is the first of its text."""
        self._begun = False
        self._last_row = -1

    def next(self, index: int) -> tuple[str, str]:
        """What stands before the block, and its line."""
        blocks, held = self._blocks, self._blocks.containers
        container = blocks.container[index]
        line = blocks.text[index]
        row = item = -1
        if container >= 0:
            item = held.item[container]
            if held.tag[container] in CELL_CODES:
                row = held.row[container]
        in_list = item >= 0 and self._last_item >= 0
        in_table = row >= 0 and self._last_row >= 0
        separator = ("\n" if in_list or in_table else "\n\n") if self._begun else ""
        if row >= 0 and row == self._last_row and self._begun:
            separator = CELL
        elif item >= 0 and item != self._last_item:
            line = BULLET + line
        self._last_item, self._last_row, self._begun = item, row, True
        return separator, line


def _topic(*names: str) -> int:
    return sum(1 << TOPICS.index(name) for name in names)


def _place(*names: str) -> int:
    return sum(PLACE_BIT[name] for name in names)


_LABEL_RULES = (
    ("cookie", 0, _topic("cookie")),
    ("comments", 0, _topic("comments")),
    ("navigation", _place("nav"), _topic("navigation")),
    ("footer", _place("footer"), _topic("footer")),
    ("form", _place("form"), _topic("form")),
    ("related", 0, _topic("related")),
    ("sidebar", _place("aside"), _topic("sidebar")),
    ("header", _place("header"), _topic("header")),
)


def label_of(blocks: Blocks, index: int) -> str:
    """What kind of boilerplate a block is, by the nearest container that tells."""
    held = blocks.containers
    container = blocks.container[index]
    steps = 0
    while container >= 0 and steps < 40:
        above = held.parent[container]
        places = held.places[container] & ~(held.places[above] if above >= 0 else 0)
        named_topics = topics(held.names[container])
        for label, in_place, named in _LABEL_RULES:
            if places & in_place or named_topics & named:
                return label
        container, steps = above, steps + 1
    return "other"
