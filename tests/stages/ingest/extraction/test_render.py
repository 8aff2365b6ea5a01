"""Blocks as text, and boilerplate as spans."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from stages.ingest.extraction.blocks import segment
from stages.ingest.extraction.main_text import LABELS, Span, render

PAGE = """
<header><a href=/>Home</a></header><nav><ul><li>News<li>Sport</ul></nav>
<article><h1>Title</h1><p>First.</p><ul><li>one<li><p>two</p><p>more</ul>
<table><tr><th>a<th>b<tr><td>1<td>2</table><pre>x
  y</pre></article>
<div class="comment-list"><p>Nice!</p></div><aside>Ad</aside><footer>(c)</footer><p>loose</p>
"""


def rendered(html: str, keep: bool, main: object = None) -> tuple[str, list[Span]]:
    blocks = segment(LexborHTMLParser(html))
    chosen = main(blocks) if callable(main) else [True] * len(blocks.text)
    return render(blocks, chosen, keep)


def in_article(blocks) -> list[bool]:  # type: ignore[no-untyped-def]
    return [blocks.containers.article[container] >= 0 for container in blocks.container]


def without(text: str, spans: list[Span]) -> str:
    for span in reversed(spans):
        text = text[: span.start] + text[span.end :]
    return text


def test_headings_items_rows_and_code_have_their_lines() -> None:
    assert rendered(PAGE, False, in_article)[0].split("\n") == [
        "Title",
        "",
        "First.",
        "",
        "- one",
        "- two",
        "more",
        "",
        "a | b",
        "1 | 2",
        "",
        "x",
        "  y",
    ]


def test_kept_boilerplate_is_labelled_by_where_it_stands() -> None:
    text, spans = rendered(PAGE, True, in_article)
    assert [(span.label, text[span.start : span.end]) for span in spans] == [
        ("header", "Home"),
        ("navigation", "\n\n- News\n- Sport\n\n"),
        ("comments", "\n\nNice!"),
        ("sidebar", "\n\nAd"),
        ("footer", "\n\n(c)"),
        ("other", "\n\nloose"),
    ]


@given(st.lists(st.booleans(), min_size=18, max_size=18))
@settings(max_examples=100, deadline=None)
def test_cutting_the_spans_leaves_the_cut_text(main: list[bool]) -> None:
    blocks = segment(LexborHTMLParser(PAGE))
    chosen = (main * len(blocks.text))[: len(blocks.text)]
    kept, cut = render(blocks, chosen, True), render(blocks, chosen, False)
    text, spans = kept
    assert cut == (without(text, spans), [])
    assert all(span.start < span.end <= len(text) for span in spans)
    assert all(a.end <= b.start for a, b in itertools.pairwise(spans))
    assert {span.label for span in spans} <= set(LABELS)


def test_a_page_without_main_text_is_all_boilerplate() -> None:
    text, spans = rendered("<p>a<p>b", True, lambda blocks: [False] * len(blocks.text))
    assert text == "a\n\nb"
    assert [(span.start, span.end) for span in spans] == [(0, 4)]
