"""The default word splitter: expected tokens follow from its stated rules."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_words import reference_spans
from zstandard import ZstdDecompressor

from stages.text.words import find_words, split_words

ODD = st.text(
    alphabet=st.one_of(
        st.sampled_from("aA1_.,-'’ \n\x1c\x00\ud800éß日のテไนั้ကြहि़ٱ١１ª²ͅ‿\u200d\u0301😀"),
        st.characters(),
    ),
    max_size=40,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\n\u3000\u00a0", []),
        ("Don't stop.", ["Don't", "stop", "."]),
        ("it’s well-known", ["it’s", "well", "-", "known"]),
        ("3.14 and 1,000,000", ["3.14", "and", "1,000,000"]),
        ("one,two", ["one", ",", "two"]),
        ("e.g. U.S.A. example.com", ["e.g", ".", "U.S.A", ".", "example.com"]),
        ("The end.Next one", ["The", "end", ".", "Next", "one"]),
        ("wait... what -- really!!", ["wait", "...", "what", "--", "really", "!", "!"]),
        ("snake_case __init__", ["snake_case", "__init__"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("日本語のテスト", ["日", "本", "語", "の", "テスト"]),
        ("ไทยนี้", ["ไ", "ท", "ย", "นี้"]),
        ("мир 한국어 😀", ["мир", "한국어", "😀"]),
        ("１,０ a１.Ｂ", ["１,０", "a１.Ｂ"]),
        ("a\x00b \ud800x", ["a", "\x00", "b", "\ud800", "x"]),
        ("a'' 'b' c'd'", ["a", "'", "'", "'", "b", "'", "c'd", "'"]),
    ],
)
def test_splits_by_the_stated_rules(text: str, tokens: list[str]) -> None:
    assert split_words(text) == tokens


@given(ODD)
@settings(deadline=None, max_examples=300)
def test_tokens_are_those_of_the_rules_as_one_regular_expression(text: str) -> None:
    assert find_words(text) == reference_spans(text)
    assert split_words(text) == [text[start:end] for start, end in reference_spans(text)]
    assert "".join(split_words(text)) == "".join(text.split())


def test_every_character_is_classed_as_in_the_regular_expression() -> None:
    # Each between letters, digits and stops, so that whatever joins to a neighbour shows.
    for first in range(0, sys.maxunicode + 1, 1 << 16):
        chars = map(chr, range(first, min(first + (1 << 16), sys.maxunicode + 1)))
        rare = (c for c in chars if unicodedata.category(c) not in ("Cn", "Co", "Lo") or c < "\xff")
        text = " ".join(f"a{c}1.{c}A" for c in rare)
        assert find_words(text) == reference_spans(text)


@pytest.mark.full
def test_real_text_of_every_language_is_split_as_by_the_regular_expression(
    shared_data: Path,
) -> None:
    for path in sorted((shared_data / "text").glob("*.jsonl.zst")):
        text = ZstdDecompressor().decompress(path.read_bytes(), 1 << 30).decode()
        assert find_words(text) == reference_spans(text), path.name
