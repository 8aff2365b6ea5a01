"""Normalisation: expected strings follow from its steps; datatrove's own is the oracle."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.decontaminate.shingles import normalise, normalise_words
from stages.text.characters import PUNCTUATION, SYMBOLS, TERMINAL_PUNCTUATION
from stages.text.words import split_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \n\t ", ""),
        ("?!…", ""),
        ("Hello,   World!\n", "hello world"),
        ("Rose by 1.5 – très CHER!", "rose by 0 tres cher"),
        ("$1,200.50", "0"),
        ("don't don’t dont", "dont dont dont"),
        ("２０２４ ٢٠٢٤", "0 0"),
        ("‘single’ “double” ‹angle›", "single double angle"),
        ("١٬٢٠٠٫٥ १,२००", "0 0"),
        ("İstanbul Straße", "istanbul straße"),
        ("Ｆｕｌｌ　Ｗｉｄｔｈ ｄｏｎ＇ｔ", "full width dont"),
        ("ﬁrst oﬃce", "first office"),
        ("soft\u00adhyphen zero\u200bwidth می\u200cخواهم", "softhyphen zerowidth میخواهم"),
    ],
)
def test_normal_forms(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(st.text(max_size=80))
@settings(deadline=None, max_examples=200)
def test_the_result_is_squeezed_and_free_of_capitals_where_ascii(text: str) -> None:
    plain = normalise(text)
    assert plain == " ".join(plain.split())
    if text.isascii():
        assert plain == plain.lower()
        assert not set(plain) & PUNCTUATION
        assert normalise(plain) == plain


@given(st.text(max_size=80))
@settings(deadline=None, max_examples=200)
def test_normalised_words_are_the_words_of_the_normal_form(text: str) -> None:
    assert normalise_words(text) == split_words(normalise(text))


def test_normal_form_of_a_text_is_that_of_its_pieces_between_white_space() -> None:
    text = "ΟΔΟΣ ΟΔΟΣ. naïve ca\u0301fe 1 .5 ５.５ İ I\u0307x \u0301 end"
    assert normalise(text).split() == [
        w for piece in text.split() for w in normalise(piece).split()
    ]


@given(st.text(max_size=80))
@settings(deadline=None, max_examples=200)
def test_equals_datatrove_but_for_the_characters_named(text: str) -> None:
    oracle = pytest.importorskip("datatrove.utils.text")
    text = "".join(char for char in text if char not in "１‘‹›'’" and _is_plain(char))
    text = regex.sub(r"(?<=[\p{Nd}.,،٫٬⎖⎗⎘])\p{Mn}+", "", text)
    text = regex.sub(r"(?<=\p{Nd})[.,،٫٬⎖⎗⎘](?=\p{Nd})", " ", text)
    assert normalise(text) == " ".join(oracle.simplify_text(text).split())


def _is_plain(char: str) -> bool:
    """Neither a format character nor a compatibility form of others, nor another punctuation's."""
    form = unicodedata.normalize("NFKD", char)
    is_other = form != char and (form[0] in PUNCTUATION or form[0].isspace())
    canonical = form == unicodedata.normalize("NFD", char)
    return canonical and not is_other and not regex.match(r"\p{Cf}", char)


def test_punctuation_equals_datatrove_but_for_the_digit() -> None:
    oracle = pytest.importorskip("datatrove.utils.text")
    assert set(oracle.PUNCTUATION) - PUNCTUATION == {"１"}
    assert set(oracle.PUNCTUATION) >= PUNCTUATION
    assert TERMINAL_PUNCTUATION == oracle.TERMINAL_PUNCTUATION
    assert {"１"} == oracle.PUNCTUATION_SET - SYMBOLS
