"""The default word splitter: expected tokens follow from its stated rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.text import words as module
from stages.text.words import word_spans, words


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
        ("a\x00b", ["a", "\x00", "b"]),
    ],
)
def test_splits_by_the_stated_rules(text: str, tokens: list[str]) -> None:
    assert words(text) == tokens


@given(st.text(max_size=80))
@settings(deadline=None, max_examples=200)
def test_tokens_hold_every_character_but_white_space(text: str) -> None:
    assert "".join(words(text)) == "".join(text.split())
    assert [text[start:end] for start, end in word_spans(text)] == words(text)


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=80))
@settings(deadline=None, max_examples=300)
def test_the_ascii_path_and_the_unicode_path_agree(text: str) -> None:
    assert module._ASCII_TOKEN.findall(text) == module._TOKEN.findall(text)
