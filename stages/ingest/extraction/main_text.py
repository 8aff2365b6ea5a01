"""From the HTML of a page to its main text: budgets, one parse, blocks, verdicts, the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from stages.ingest.extraction.blocks import Blocks, segment
from stages.ingest.extraction.careful import Markup, resiliparse_text, trafilatura_text
from stages.ingest.extraction.errors import PageTooLarge
from stages.ingest.extraction.features import Ints
from stages.ingest.extraction.model import block_model
from stages.ingest.extraction.nesting import check_nesting
from stages.ingest.extraction.render import Span, render
from stages.ingest.extraction.smooth import smoothed

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

    from stages.ingest.declared.head import Head

Extractor = Literal["blocks", "resiliparse", "trafilatura"]
NEVER = 1001
_SURE_CHARACTERS = 400  # less main text than this counts as doubtful in itself


@dataclass(frozen=True, slots=True)
class ExtractionRules:
    """What decides the text of a page."""

    extractor: Extractor = "blocks"
    markup: Markup = "plain"
    boilerplate: Literal["cut", "keep"] = "cut"
    max_nodes: int = 250_000
    max_depth: int = 1_000
    careful_from: int = NEVER
    """Doubt in thousandths from which trafilatura decides instead of the blocks; 1001 is never."""


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
class _Verdict:
    main: list[bool] = field(default_factory=list)
    doubt: int = 1000
    characters: int = 0
    linked: int = 0


def extract(
    html: str, rules: ExtractionRules, headers: Mapping[str, str] | None = None
) -> MainText:
    """The main text of a page; empty where it has none.

    `headers` are those of its response, for what they declare. Raises `PageTooLarge` for a page
    that nests too deep or has too many nodes, and what another's extractor raises.
    """
    from selectolax.lexbor import LexborHTMLParser

    from stages.ingest.declared.head import read_head

    check_nesting(html, rules.max_depth, rules.max_nodes)
    tree = LexborHTMLParser(html)
    blocks = segment(tree, rules.max_nodes, text_nodes=rules.markup == "markdown")
    depth = max(blocks.containers.depth, default=0)
    if depth > rules.max_depth:
        raise PageTooLarge("too_deep", f"block elements are nested {depth:,} deep")
    head = read_head(tree, headers or {})
    visible = sum(map(len, blocks.text))
    doubt: float | None = None
    if rules.extractor == "blocks":
        verdict = judge(blocks)
        doubt = verdict.doubt / 1000
        careful = verdict.doubt >= rules.careful_from and rules.boilerplate == "cut"
        text = _careful_text(html, rules.markup) if careful else ""
        if not text:
            rendered = _written(tree, blocks, verdict, rules)
            return MainText(
                text=rendered[0],
                boilerplate=rendered[1],
                extractor="blocks",
                doubt=doubt,
                nodes=blocks.nodes,
                main_share=verdict.characters / max(visible, 1),
                link_share=verdict.linked / max(verdict.characters, 1),
                head=head,
            )
        by = "trafilatura"
    else:
        by = rules.extractor
        careful_text = rules.extractor == "trafilatura"
        text = trafilatura_text(html, rules.markup) if careful_text else resiliparse_text(html)
    share = min(len(text) / max(visible, 1), 1.0)
    return MainText(text, [], by, doubt, blocks.nodes, share, None, head)


def _careful_text(html: str, markup: Markup) -> str:
    """What trafilatura makes of a page; empty where it fails, so that the blocks decide."""
    try:
        return trafilatura_text(html, markup)
    except Exception:  # It raises what it likes on a hostile page.
        return ""


def _written(
    tree: LexborHTMLParser, blocks: Blocks, verdict: _Verdict, rules: ExtractionRules
) -> tuple[str, list[Span]]:
    if rules.markup == "markdown":
        from stages.ingest.markdown.render import to_markdown

        kept = {
            node
            for nodes, is_main in zip(blocks.text_nodes, verdict.main, strict=True)
            if is_main
            for node in nodes
        }
        return to_markdown(tree, kept).strip(), []
    rendered = render(blocks, verdict.main, keep=rules.boilerplate == "keep")
    return rendered.text, rendered.boilerplate


def judge(blocks: Blocks) -> _Verdict:
    """Which blocks are main text, and how doubtful that is."""
    if not blocks.text:
        return _Verdict()
    model = block_model()
    first, second = model.scores(blocks)
    main = smoothed(second >= model.threshold, second, blocks)
    sizes = np.array([len(text) for text in blocks.text], np.int64)
    linked = np.array(blocks.link_characters, np.int64)
    largest = int(sizes.argmax())
    if (
        not main.any()
        and 2 * sizes[largest] >= sizes.sum()
        and 4 * linked[largest] < sizes[largest]
    ):
        main[largest] = True  # a plain text in one element, with nothing to tell it from
    return _Verdict(
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


__all__ = ["NEVER", "ExtractionRules", "MainText", "PageTooLarge", "extract", "judge"]
