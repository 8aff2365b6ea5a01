"""The automaton finds what a search for each phrase would find."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.signals.c4 import KELVIN, PHRASES, build_automaton


def found(phrases: dict[str, int], text: str) -> int:
    next_states, bits = build_automaton(phrases)
    state = result = 0
    for char in text:
        state = next_states[state, min(ord(char), 128)]
        result |= int(bits[state])
    return result


@settings(max_examples=300)
@given(
    st.lists(st.text("abc ", min_size=1, max_size=4), min_size=1, max_size=6, unique=True),
    st.text("abcAB ä", max_size=30),
)
def test_any_phrases_in_any_text(phrases: list[str], text: str) -> None:
    numbered = {phrase: 1 << i for i, phrase in enumerate(phrases)}
    expected = sum(bit for phrase, bit in numbered.items() if phrase in text.lower())
    assert found(numbered, text) == expected


def test_phrases_that_overlap_in_a_text() -> None:
    assert found(PHRASES, "we uses coolorem ipsum") == PHRASES["lorem ipsum"]
    assert found(PHRASES, "Privacy poliCookie Policy") == PHRASES["cookie policy"]
    assert (
        found(PHRASES, "terms of use cookies") == PHRASES["terms of use"] | PHRASES["use cookies"]
    )


def test_one_character_beyond_ascii_alone_has_an_ascii_lower_case() -> None:
    others = [code for code in range(128, 0x110000) if chr(code).lower().isascii()]
    assert others == [KELVIN]
    # The dotted capital I becomes an i and a mark, which is in no phrase.
    assert "\u0130".lower() == "i\u0307"


def test_too_many_phrases_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 256"):
        build_automaton({"a" * 200: 1, "b" * 60: 2})
