"""The ten edits do what they say, by hand and in any text."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.benchmarks.text_edits import (
    EDITS,
    add_boilerplate,
    change_case,
    change_numbers,
    cut_prefix,
    fill_template,
    move_paragraph,
    reorder_sentences,
    split_sentences,
    translate_digits,
)

TEXT = "One man came. Two men went away. Three of 1,200 stayed!\n\nFour sat. Five of 37 stood."
LONG = "\n\n".join(f"{n} cats slept here. They had {n * n} mice. A dog came." for n in range(20))
WORDS = [f"w{n}" for n in range(100)]


@pytest.mark.parametrize("kind", EDITS)
def test_an_edit_follows_from_text_strength_and_draws(kind: str) -> None:
    edit = EDITS[kind]
    assert list(edit.levels) == sorted(edit.levels)
    for strength in edit.levels:
        first, again = (edit.change(LONG, random.Random(5), strength) for _ in range(2))
        assert first == again
    assert edit.change(LONG, random.Random(6), edit.levels[2]) != LONG


@pytest.mark.parametrize("kind", EDITS)
@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=60), seed=st.integers(0, 99), strength=st.sampled_from([0.01, 0.3, 1]))
def test_any_text_can_be_edited(kind: str, text: str, seed: int, strength: float) -> None:
    assert isinstance(EDITS[kind].change(text, random.Random(seed), strength), str)


def test_what_moves_is_kept() -> None:
    moved = move_paragraph("a\n\nb\n\nc\n\nd", random.Random(1), 0.25)
    assert sorted(moved.split("\n\n")) == ["a", "b", "c", "d"]
    assert moved != "a\n\nb\n\nc\n\nd"
    assert sorted(TEXT.split()) == sorted(reorder_sentences(TEXT, random.Random(2), 1).split())
    assert split_sentences("Er kam. Sie ging! 彼は来た。彼女は行った。") == [
        *("Er kam.", " Sie ging!", " 彼は来た。", "彼女は行った。")
    ]


def test_numbers_are_translated_or_changed_and_nothing_else() -> None:
    translated = translate_digits(TEXT, random.Random(3), 1)
    assert not any(digit in translated for digit in "0123456789")
    back = {ord(char): str(int(char)) for char in translated if char.isdecimal()}
    assert translated.translate(back) == TEXT
    changed = change_numbers(TEXT, random.Random(4), 1)
    assert changed.split()[:9] == TEXT.split()[:9]
    assert "1,200" not in changed
    assert "37" not in changed


def test_a_template_keeps_its_frame_and_no_order_within() -> None:
    """Of 100 words 60 are the frame, at both ends; those between are in another order."""
    other = fill_template(" ".join(WORDS), random.Random(5), 0.6).split()
    assert sorted(other) == sorted(WORDS)
    kept = [word == first for word, first in zip(other, WORDS, strict=True)]
    front = kept.index(False)
    assert sum(kept) < 70
    assert all(kept[:front])
    assert all(kept[front + 41 :])


def test_cut_boilerplate_and_case_by_arithmetic() -> None:
    text = " ".join(WORDS)
    cut = cut_prefix(text, random.Random(6), 0.5)
    assert text.endswith(cut)
    assert abs(len(cut) - len(text) / 2) <= 4
    added = add_boilerplate(text, random.Random(7), 1)
    assert text in added
    assert 2 * len(text) <= len(added) < 2 * len(text) + 200
    assert change_case(TEXT, random.Random(8), 1).casefold() == TEXT.casefold()
