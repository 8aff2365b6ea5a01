"""The main script of a text: shares counted by hand."""

from __future__ import annotations

import pytest

from stages.text.characters import find_main_script


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (None, 0.0)),
        ("123 !? 😀", (None, 0.0)),
        ("plain text", ("Latin", 1.0)),
        ("абв ab", ("Cyrillic", 3 / 5)),
        ("ab аб", ("Latin", 0.5)),  # a tie: Latin is named first
        ("日本語の", ("Han", 3 / 4)),
        ("हिन्दी", ("Devanagari", 1.0)),
        ("ⴰⴱ", ("Other", 1.0)),  # Tifinagh is not told apart
    ],
)
def test_main_script(text: str, expected: tuple[str | None, float]) -> None:
    assert find_main_script(text) == pytest.approx(expected)
    assert find_main_script(text) == find_main_script(text)  # the second time from the filled table
