"""Headings and short gaps amid main text are main text."""

from __future__ import annotations

import numpy as np
import pytest
from selectolax.lexbor import LexborHTMLParser

from stages.ingest.extraction.blocks import segment
from stages.ingest.extraction.classifier import GAP_CHARACTERS, LEAST_SCORE, smooth


def smoothed_of(html: str, main: str, score: int = LEAST_SCORE) -> str:
    """`main` has a letter for each block: m for main text, - for what is not."""
    blocks = segment(LexborHTMLParser(html))
    assert len(blocks.text) == len(main)
    kept = np.array([letter == "m" for letter in main])
    scores = np.where(kept, 900, score)
    return "".join("m" if is_main else "-" for is_main in smooth(kept, scores, blocks))


@pytest.mark.parametrize(
    ("html", "main", "expected"),
    [
        ("<h2>a</h2><p>b</p>", "-m", "mm"),
        ("<h1>a</h1><p>b</p>", "-m", "-m"),  # the title of the page
        ("<h2>a</h2><h3>b</h3><div><div><p>c</p></div></div>", "--m", "mmm"),
        ("<div><h2>a</h2></div><p>b</p>", "-m", "-m"),  # of a section of its own
        ("<h2>a</h2><p>b</p>", "--", "--"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "mm-m", "mmmm"),
        ("<p>a</p><p>b</p><p>c</p><p>d</p>", "m--m", "mmmm"),
        ("<p>a</p><p>b</p><p>c</p><p>d</p><p>e</p>", "m---m", "m---m"),
        ("<p>a</p><div><p>b</p></div><p>c</p>", "m-m", "m-m"),  # beside them, not of them
        ("<p>a</p><p><a href=x>more</a></p><p>c</p>", "m-m", "m-m"),
        (f"<p>a</p><p>{'b' * (GAP_CHARACTERS + 1)}</p><p>c</p>", "m-m", "m-m"),
        ("<p>a</p><p>b</p>", "m-", "m-"),
    ],
)
def test_what_stands_amid_main_text_is_kept(html: str, main: str, expected: str) -> None:
    assert smoothed_of(html, main) == expected


def test_what_the_classifier_is_sure_of_stays_out() -> None:
    assert smoothed_of("<h2>a</h2><p>b</p><p>c</p><p>d</p>", "-m-m", LEAST_SCORE - 1) == "-m-m"
