"""Where digits run, and places in bytes as places in characters."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from stages.signals.outputs import to_character_offsets
from stages.signals.personal_data import find_number_runs, fold_digits, mark_bytes

LETTERS = st.sampled_from([*"aé€😀１٣०-+( .\u00a0\u2013\u2019x", "12", "1234567", "\ud800", "\0"])
TEXTS = st.lists(LETTERS, max_size=40).map("".join)


@given(TEXTS)
@settings(deadline=None, max_examples=300)
def test_places_in_bytes_are_places_in_characters(text: str) -> None:
    encoded = text.encode("utf-8", "surrogatepass")
    starts = [len(text[:place].encode("utf-8", "surrogatepass")) for place in range(len(text) + 1)]
    assert list(to_character_offsets(text, encoded, starts)) == list(range(len(text) + 1))
    assert list(to_character_offsets(text, encoded, starts[::3])) == list(
        range(0, len(text) + 1, 3)
    )


@given(TEXTS)
@settings(deadline=None, max_examples=300)
def test_runs_are_those_that_a_search_of_the_characters_finds(text: str) -> None:
    between = r"[0-9+()./ \u00a0\u2009\u202f\u2010-\u2014\u2212-]"
    expected = [
        match.span()
        for match in re.finditer(rf"[0-9]{between}*", text)
        if len(re.findall("[0-9]", match[0])) >= 7
    ]
    encoded = text.encode("utf-8", "surrogatepass")
    found = find_number_runs(text, encoded, mark_bytes(encoded))
    assert [end for _, end in found] == [end for _, end in expected]
    for (start, _), (digit, _) in zip(found, expected, strict=True):
        assert text[start:digit] in ("", "+", "+ ", "(", "(+", "(+ ")


@given(TEXTS)
@settings(deadline=None, max_examples=200)
def test_plain_digits_keep_the_length_and_everything_else(text: str) -> None:
    plain = fold_digits(text)
    assert len(plain) == len(text)
    changed = {a for a, b in zip(text, plain, strict=True) if a != b}
    assert changed <= set("１٣०")


def test_one_such_digit_alone_changes_nothing() -> None:
    assert fold_digits("第３回（東京）") == "第３回（東京）"
    assert fold_digits("第３１回（東京）") == "第31回(東京)"
