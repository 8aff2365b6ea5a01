"""Lines and paragraphs as datatrove counts them: numbers by hand, and its own splitting beside."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.signals.quality import (
    DUPLICATE_SIGNALS,
    FILLED_LINE_SIGNALS,
    LINE_COUNTS,
    measure_lines,
)
from stages.text.batch import split_texts
from stages.text.characters import TERMINAL_PUNCTUATION
from stages.text.words import split_words


def measured(texts: list[str]) -> list[dict[str, float]]:
    columns = measure_lines(texts, np.diff(split_texts(texts).tokens.offsets))
    every = (*DUPLICATE_SIGNALS, *FILLED_LINE_SIGNALS, *LINE_COUNTS)
    assert list(columns) == [signal.name for signal in every]
    return [{name: column[i] for name, column in columns.items()} for i in range(len(texts))]


def copies(pieces: list[str]) -> tuple[int, int]:
    """Pieces that repeat an earlier one, and their characters."""
    repeated = [piece for place, piece in enumerate(pieces) if piece in pieces[:place]]
    return len(repeated), sum(map(len, repeated))


def reference(text: str) -> dict[str, float]:
    lines = re.split(r"\n+", text)
    paragraphs = re.split(r"\n{2,}", text.strip())
    filled = [line for line in text.split("\n") if line.strip() != ""]

    def over(part: int, whole: int) -> float:
        return part / whole if whole else 0.0

    return {
        "duplicate_line_share": over(copies(lines)[0], len(lines)),
        "duplicate_line_character_share": over(copies(lines)[1], len(text)),
        "duplicate_paragraph_share": over(copies(paragraphs)[0], len(paragraphs)),
        "duplicate_paragraph_character_share": over(copies(paragraphs)[1], len(text)),
        "terminal_punctuation_line_share": over(
            sum(line.endswith(tuple(TERMINAL_PUNCTUATION)) for line in filled), len(filled)
        ),
        "short_line_share": over(sum(len(line) <= 30 for line in filled), len(filled)),
        "duplicate_filled_line_character_share": over(
            copies(filled)[1], len(text.replace("\n", ""))
        ),
        "newline_to_word_ratio": over(text.count("\n"), len(split_words(text))),
        "filled_lines": len(filled),
        "lines_of_200_characters": sum(len(line) >= 200 for line in text.split("\n")),
    }


PIECES = st.sampled_from(
    [
        "\n",
        "\n\n",
        "\n\n\n",
        " ",
        "\t",
        "\xa0",
        "\r\n",
        "\u2028",
        "a",
        "b.",
        "a b",
        "日。",
        "x" * 30,
        "y" * 31,
        "z" * 199,
        "z" * 200,
    ]
)
TEXTS = st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=20)


@given(st.lists(TEXTS, max_size=4))
@example(["", "\n", "\n\n", "a\n\na", "\n\na\n\n \n\na\n\n", "a\n a\na\n", " \n \n "])
@settings(deadline=None, max_examples=300)
def test_any_batch_equals_the_definitions_text_by_text(texts: list[str]) -> None:
    assert measured(texts) == [reference(text) for text in texts]


def test_by_hand() -> None:
    (found,) = measured(["The cat... the dog!\n- that # 12\n\nThe cat... the dog!"])
    assert found["duplicate_line_share"] == 1 / 3  # runs of line feeds part three lines
    assert found["duplicate_line_character_share"] == 19 / 52
    assert found["duplicate_paragraph_share"] == 0  # two paragraphs, different
    assert found["terminal_punctuation_line_share"] == 2 / 3
    assert found["short_line_share"] == 1
    assert found["duplicate_filled_line_character_share"] == 19 / 49
    assert found["newline_to_word_ratio"] == 3 / 16


@pytest.mark.parametrize(
    ("text", "name", "share"),
    [
        ("I like to eat\n" * 4, "duplicate_line_share", 3 / 5),  # the fifth line is empty
        ("I like to eat\n\n" * 4, "duplicate_paragraph_share", 3 / 4),
        (
            "one one\n\ntwo two\n\nthree three\n\n" + "x" * 30 + "\n\n" + "x" * 30,
            "duplicate_paragraph_character_share",
            30 / 93,
        ),
        (
            "one one\ntwo two\nthree three\n" + "x" * 40 + "\n" + "x" * 40,
            "duplicate_line_character_share",
            40 / 109,
        ),
        ("abc\n" * 5, "short_line_share", 1),
        ("This line goes on long enough, and ends.\n" * 5, "terminal_punctuation_line_share", 1),
    ],
)
def test_datatroves_published_cases(text: str, name: str, share: float) -> None:
    assert measured([text])[0][name] == share


def test_lines_are_equal_when_all_characters_are() -> None:
    lines = ["ab", "ba", "abc", "cba", "a\x00", "a", "\x00a", "ａb", "ab ", " ab", "aab", "aba"]
    assert measured(["\n".join(lines)])[0]["duplicate_line_share"] == 0
    assert measured(["\n".join(lines * 2)])[0]["duplicate_line_share"] == 1 / 2


def test_a_million_equal_lines() -> None:
    (found,) = measured(["same line\n" * 1_000_000])
    assert found["duplicate_line_share"] == 999_999 / 1_000_001
    assert found["duplicate_filled_line_character_share"] == 999_999 / 1_000_000
