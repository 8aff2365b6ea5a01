"""The pretraining guide's rules: symbols by Unicode category, runs of equal lines by hand."""

from __future__ import annotations

import unicodedata
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.signals.groups import GUIDE_SIGNALS, measure_guide
from stages.text.batch import split_texts


def measured(text: str) -> tuple[float, int]:
    columns = measure_guide(split_texts(["other\nother\nother", text]))
    assert list(columns) == [signal.name for signal in GUIDE_SIGNALS]
    symbols, lines = (column[1] for column in columns.values())
    return symbols, lines


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0),
        (" \n\t\u3000\x1c", 0),
        ("abc 12", 0),
        ("a#b!", 2 / 4),
        ("½²Ⅳ", 0),  # numbers, though no digits
        ("é日ไ\u0301", 0),  # letters and marks
        ("_-€😀\u200d\x00\ud800\ufffd", 1),  # punctuation, symbols, joiner, control, surrogate
    ],
)
def test_special_symbols(text: str, share: float) -> None:
    assert measured(text)[0] == share


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("", 0),
        ("\n \n", 0),
        ("a", 1),
        ("a\nb\na\nb", 1),
        ("a\na", 2),
        ("a\nb\nb\nb\nc\nc", 3),
        ("a\n\n  a\t\n \na", 3),  # blank lines left out, ends stripped
        ("a\na\nA", 2),
        ("a b\na  b", 1),
        ("a\r\na\r\n", 2),
    ],
)
def test_equal_lines_in_a_row(text: str, run: int) -> None:
    assert measured(text)[1] == run


@given(
    st.text(max_size=40) | st.lists(st.sampled_from(["a", "b", " a", "\n", "\n\n"])).map("".join)
)
@settings(deadline=None, max_examples=200)
def test_any_text_equals_the_definitions(text: str) -> None:
    special = [
        char for char in text if not char.isspace() and unicodedata.category(char)[0] not in "LNM"
    ]
    filled = [line.strip() for line in text.split("\n") if line.strip()]
    runs = [len(list(run)) for _, run in groupby(filled)]
    assert measured(text) == (len(special) / len(text) if text else 0, max(runs, default=0))
