"""From the HTML of a page to its main text: budgets, one parse, blocks, labels, the text.

Ingot's block classifier finds it, or resiliparse or trafilatura behind the same interface. In
the text a paragraph, heading, list item or table row is a line; a blank line separates them, but
not the items of a list or the rows of a table. Boilerplate that is kept is marked by spans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from stages.ingest.config import IngestConfig
from stages.ingest.extraction.blocks import Blocks, segment
from stages.ingest.extraction.classifier import BlockModel, block_model, smooth
from stages.ingest.extraction.features import Ints
from stages.ingest.extraction.markdown import to_markdown
from stages.ingest.extraction.nesting import PageTooLarge, check_nesting
from stages.ingest.extraction.vocabulary import CELL_CODES, PLACE_BIT, TOPICS, topics
from stages.ingest.head import Head, read_head

BULLET, CELL = "- ", " | "
LABELS = (
    "navigation", "header", "footer", "sidebar", "comments", "related", "form", "cookie", "other",
)  # fmt: skip


class Span(NamedTuple):
    """Characters `start` to `end` of the text are boilerplate of this kind."""

    start: int
    end: int
    label: str


def render(blocks: Blocks, main: Sequence[bool], keep: bool) -> tuple[str, list[Span]]:
    """The text of the main blocks; with `keep` of all, the others marked as spans.

    Spans are in order and do not overlap. Cutting them out of the kept text gives the text without
    them, character by character.
    """
    writer, others = _Lines(blocks), _Lines(blocks)
    pieces: list[str] = []
    spans: list[Span] = []
    length = 0
    boilerplate: list[int] = []
    for index, is_main in enumerate(main):
        if not is_main:
            if keep:
                boilerplate.append(index)
            continue
        separator, line = writer.next(index)
        pieces.append(separator)
        length += len(separator)
        if boilerplate:
            text, own = _boilerplate(
                blocks, others, boilerplate, length, separator or "\n\n", after=True
            )
            pieces.append(text)
            spans += own
            length += len(text)
            boilerplate = []
        pieces.append(line)
        length += len(line)
    if boilerplate:
        before = "\n\n" if length else ""
        text, own = _boilerplate(blocks, others, boilerplate, length, before, after=False)
        pieces.append(text)
        spans += own
    return "".join(pieces), spans


def _boilerplate(
    blocks: Blocks, lines: _Lines, indices: list[int], start: int, separator: str, after: bool
) -> tuple[str, list[Span]]:
    """Adjacent blocks outside the main text; `separator` is theirs, so that a cut leaves none."""
    lines.begin()
    text, spans = "" if after else separator, []
    pieces = [text]
    length, begun, label = len(text), 0, ""
    for index in indices:
        between, line = lines.next(index)
        own = label_for(blocks, index)
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
    return "".join(pieces), spans


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
        """The separator before the block, and its line."""
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


def _topic_bits(*names: str) -> int:
    return sum(1 << TOPICS.index(name) for name in names)


def _place_bits(*names: str) -> int:
    return sum(PLACE_BIT[name] for name in names)


_LABEL_RULES = (
    ("cookie", 0, _topic_bits("cookie")),
    ("comments", 0, _topic_bits("comments")),
    ("navigation", _place_bits("nav"), _topic_bits("navigation")),
    ("footer", _place_bits("footer"), _topic_bits("footer")),
    ("form", _place_bits("form"), _topic_bits("form")),
    ("related", 0, _topic_bits("related")),
    ("sidebar", _place_bits("aside"), _topic_bits("sidebar")),
    ("header", _place_bits("header"), _topic_bits("header")),
)


def label_for(blocks: Blocks, index: int) -> str:
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


def trafilatura_text(html: str, markup: str = "plain") -> str:
    """Main text by trafilatura (comments off, tables on); empty where it finds none.

    It reads pages with lxml and in places by recursion: callers bound nesting and nodes before, and
    still it raises what it likes.
    """
    from trafilatura import extract

    kind = "markdown" if markup == "markdown" else "txt"
    text = extract(html, include_comments=False, include_tables=True, output_format=kind)
    return (text or "").strip()


def resiliparse_text(html: str) -> str:
    """Main text by resiliparse.

    The settings are those with the highest F1 on hand-made article texts among the ones that keep
    lists: links, forms, comments and alternative texts of images off.
    """
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    text: str = extract_plain_text(
        HTMLTree.parse(html),
        preserve_formatting=True,
        main_content=True,
        list_bullets=True,
        alt_texts=False,
        links=False,
        form_fields=False,
        comments=False,
    )
    return text.strip()


_SURE_CHARACTERS = 400  # less main text than this counts as doubtful in itself


@dataclass(frozen=True, slots=True)
class MainText:
    """The main text of a page and what was measured on the way."""

    text: str
    """A paragraph, heading, list item or table row a line."""
    boilerplate: list[Span]
    """Parts of the text that are not main text, where they are kept."""
    extractor: str
    """What found the text: blocks, resiliparse, trafilatura."""
    doubt: float | None
    """Doubt of the block classifier in its own result, 0 to 1; None where it was not asked."""
    nodes: int
    main_share: float
    """Share of the page's visible characters in the main text."""
    link_share: float | None
    """Share of the main text's characters inside links; None where blocks were not asked."""
    head: Head


@dataclass(frozen=True, slots=True)
class Classification:
    """Which blocks are main text, the doubt in that (0 to 1000), characters, those in links."""

    main: list[bool] = field(default_factory=list)
    doubt: int = 1000
    characters: int = 0
    linked: int = 0


def extract(html: str, config: IngestConfig, headers: Mapping[str, str] | None = None) -> MainText:
    """The main text of a page; empty where it has none.

    `headers` are those of its response, for what they declare. Raises `PageTooLarge` for a page
    that nests too deep or has too many nodes, and what another's extractor raises.
    """
    check_nesting(html, config.max_depth, config.max_nodes)
    tree = LexborHTMLParser(html)
    blocks = segment(tree, config.max_nodes, text_nodes=config.markup == "markdown")
    depth = max(blocks.containers.depth, default=0)
    if depth > config.max_depth:
        raise PageTooLarge("too_deep", f"block elements are nested {depth:,} deep")
    head = read_head(tree, headers or {})
    visible = sum(map(len, blocks.text))
    doubt: float | None = None
    by, text = config.extractor, ""
    if by == "blocks":
        verdict = classify(blocks)
        doubt = verdict.doubt / 1000
        if verdict.doubt >= config.careful_from and config.boilerplate == "cut":
            with suppress(Exception):  # It raises what it likes; then the blocks decide.
                text = trafilatura_text(html, config.markup)
        if not text:
            text, spans = _write_text(tree, blocks, verdict, config)
            return MainText(
                text,
                spans,
                by,
                doubt,
                blocks.nodes,
                main_share=verdict.characters / max(visible, 1),
                link_share=verdict.linked / max(verdict.characters, 1),
                head=head,
            )
        by = "trafilatura"
    elif by == "trafilatura":
        text = trafilatura_text(html, config.markup)
    else:
        text = resiliparse_text(html)
    share = min(len(text) / max(visible, 1), 1.0)
    return MainText(text, [], by, doubt, blocks.nodes, share, None, head)


def _write_text(
    tree: LexborHTMLParser, blocks: Blocks, verdict: Classification, config: IngestConfig
) -> tuple[str, list[Span]]:
    if config.markup == "markdown":
        kept = {
            node
            for nodes, is_main in zip(blocks.text_nodes, verdict.main, strict=True)
            if is_main
            for node in nodes
        }
        return to_markdown(tree, kept).strip(), []
    return render(blocks, verdict.main, keep=config.boilerplate == "keep")


def classify(blocks: Blocks, model: BlockModel | None = None) -> Classification:
    """Which blocks are main text by a model (else the shipped one), and how doubtful that is."""
    if not blocks.text:
        return Classification()
    model = model or block_model()
    return judge(blocks, *model.scores(blocks), model.threshold)


def judge(blocks: Blocks, first: Ints, second: Ints, threshold: int) -> Classification:
    """The same by the scores of both passes, 0 to 1000 for each block."""
    main = smooth(second >= threshold, second, blocks)
    sizes = np.array([len(text) for text in blocks.text], np.int64)
    linked = np.array(blocks.link_characters, np.int64)
    largest = int(sizes.argmax())
    if (
        not main.any()
        and 2 * sizes[largest] >= sizes.sum()
        and 4 * linked[largest] < sizes[largest]
    ):
        main[largest] = True  # a plain text in one element, with nothing to tell it from
    return Classification(
        main=main.tolist(),
        doubt=_doubt(sizes, first, second, main),
        characters=int(sizes[main].sum()),
        linked=int(linked[main].sum()),
    )


def _doubt(sizes: Ints, first: Ints, second: Ints, main: np.ndarray) -> int:
    """Doubt in thousandths: characters in undecided blocks against those of the main text.

    A block is undecided by as much as its score is near the middle, and as both passes differ.
    """
    weights = np.minimum(sizes, 2000)
    unsure = 2 * np.minimum(second, 1000 - second) + np.abs(second - first)
    held = int(weights[main].sum())
    undecided = int((unsure * weights).sum())
    return min(undecided // max(held, _SURE_CHARACTERS), 1000)
