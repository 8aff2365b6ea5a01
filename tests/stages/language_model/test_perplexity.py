"""Normalisation and perplexity as cc_net (bda555b) has them, and buckets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.language_model.perplexity import (
    NgramModel,
    WordTokens,
    bucket,
    line_and_text_scores,
    line_scores,
    normalise_lines,
    normalise_text,
    perplexities,
)

MODEL = NgramModel.load(Path(__file__).parent / "toy_order_5.arpa")
TOKENS = WordTokens("ccnet", "unicode")

WIKIPEDIA = "[u] Écoutez: il a 40 000 € – «Où?» … １２"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The outputs of cc_net's `normalize`.
        (WIKIPEDIA, '[u] ecoutez: il a 00 000 € - "ou?" ... 00'),
        ("A\tTAB and\x07 BELL\x85", "atab and bell"),
        (
            "，。、„”“«»」「《》´∶：？！（）；–—．～’…━〈〉【】％►",
            ',.,"""""""""\'::?!();- - . ~\'...-<>[]%-',
        ),
        ("ΣΑΣ İ", "σας i"),
        ("٣ ৪", "0 0"),
        ("", ""),
    ],
)
def test_normalises_as_cc_net(text: str, expected: str) -> None:
    assert normalise_lines(text) == expected


def test_lines_stay_or_run_together() -> None:
    assert normalise_lines("One.\nTWO\n") == "one.\ntwo\n"
    assert normalise_text(" One.\nTWO\n") == "one.two"


def test_perplexity_is_that_of_cc_net_by_line_and_of_the_text_as_one() -> None:
    """kenlm's scores of the lines; a blank line is scored too, as in cc_net's `DocLM`."""
    text = "The cat sat on the mat\n\nzebra ZEBRA"
    lines = [(-2.506259, 7), (-0.861073, 1), (-1.434108 - 1.386683 - 0.938833, 3)]
    scores = line_scores(MODEL, TOKENS, [text, "", "zebra zebra"])
    assert scores.offsets.tolist() == [0, 3, 3, 4]
    assert scores.log10[:3].tolist() == pytest.approx([score for score, _ in lines], abs=2e-6)
    assert scores.lengths.tolist() == [7, 1, 3, 3]
    expected = 10 ** (-sum(score for score, _ in lines) / 11)
    first, empty, last = scores.perplexities()
    assert first == pytest.approx(expected, rel=1e-5)
    assert np.isnan(empty)
    assert last == pytest.approx(10 ** (3.759624 / 3), rel=1e-5)
    _, whole = line_and_text_scores(MODEL, TOKENS, [text])
    one_line = line_scores(MODEL, TOKENS, [text.replace("\n", " ")])
    assert whole.perplexities().tolist() == one_line.perplexities().tolist()
    assert whole.lengths.tolist() == [9]


@settings(max_examples=30, deadline=None)
@example(texts=["\x1f", "", "a"])
@given(texts=st.lists(st.text(), max_size=5))
def test_any_strings_score_the_same_together_and_alone(texts: list[str]) -> None:
    alone_by_text = [line_and_text_scores(MODEL, TOKENS, [text]) for text in texts]
    for way, scores in enumerate(line_and_text_scores(MODEL, TOKENS, texts)):
        together = scores.perplexities()
        alone = [both[way].perplexities()[0] for both in alone_by_text]
        np.testing.assert_array_equal(together, alone)
        assert np.isnan(together).tolist() == [text == "" for text in texts]


@pytest.mark.parametrize("text", ["\n" * 100_000, "\0\udfff😀\u200b", "x" * 1_000_000, "١ " * 9])
def test_hostile_texts_have_finite_perplexities(text: str) -> None:
    assert np.isfinite(line_scores(MODEL, TOKENS, [text]).perplexities()).all()


def test_perplexities_are_finite_however_unlikely() -> None:
    assert perplexities(np.array([-1e9]), np.array([1])).tolist() == [1e300]


def test_buckets_have_their_cutoffs_at_their_lower_end() -> None:
    # cc_net's English cut-offs (data/cutoff.csv).
    named = [bucket(value, [340, 520]) for value in (339.9, 340.0, 519.9, 520.0)]
    assert named == ["head", "middle", "middle", "tail"]
    assert bucket(1.0, None) == bucket(np.nan, [1, 2]) == "all"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet="ab c\n\r\x00é日\ud800.", max_size=12), max_size=5))
@example(["", "\n", "the cat\nsat", "", " \n \n"])
def test_texts_score_by_line_and_as_one_line(texts: list[str]) -> None:
    by_line, whole = line_and_text_scores(MODEL, TOKENS, texts)
    flat = line_scores(MODEL, TOKENS, [text.replace("\n", " ") for text in texts])
    for one, other in ((by_line, line_scores(MODEL, TOKENS, texts)), (whole, flat)):
        assert one.offsets.tolist() == other.offsets.tolist()
        assert one.lengths.tolist() == other.lengths.tolist()
        assert one.log10.tolist() == other.log10.tolist()
