"""Lines and paragraphs as datatrove's regular expressions split them."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from stages.text.lines import extra_copies, filled_lines, lines, paragraphs

TEXTS = st.text(alphabet="ab \n\r", max_size=30)


@given(TEXTS)
@settings(deadline=None, max_examples=300)
def test_splits_equal_the_published_expressions(text: str) -> None:
    assert lines(text) == re.split(r"\n+", text)
    assert paragraphs(text) == re.split(r"\n{2,}", text.strip())
    assert filled_lines(text) == [line for line in text.split("\n") if line.strip() != ""]


def test_the_first_copy_is_free() -> None:
    # Three of "xx": two extra copies of two characters; two of "y": one of one character.
    assert extra_copies(["xx", "y", "xx", "z", "y", "xx"]) == (3, 5)
    assert extra_copies(["a", "b"]) == (0, 0)
    assert extra_copies([]) == (0, 0)
