"""All signals of a text: arithmetic by hand, datatrove's verdicts, and what no text may break."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.signals.columns import TEXT_SIGNALS, choose_text_signals
from stages.signals.config import GROUPS, LINE_VIEWS
from stages.signals.measure import Measured, measure


def signals(text: str) -> dict[str, Any]:
    return {name: values[0] for name, values in measure([text]).columns.items()}


def test_a_text_counted_by_hand() -> None:
    text = "The cat... the dog!\n- that # 12\n\nThe cat... the dog!"
    found = signals(text)
    # Tokens: The cat ... the dog ! | - that # 12 | The cat ... the dog !  = 16
    # Words (not punctuation only): The cat the dog that 12 The cat the dog = 10
    assert found["characters"] == found["bytes"] == len(text) == 52
    assert (found["word_tokens"], found["words"], found["lines"]) == (16, 10, 4)
    assert found["mean_word_length"] == (4 * 3 + 4 + 2 + 4 * 3) / 10
    assert found["hash_to_word_ratio"] == 1 / 16
    assert found["ellipsis_to_word_ratio"] == 2 / 16
    assert found["newline_to_word_ratio"] == 3 / 16
    assert found["alphabetic_word_share"] == 9 / 16
    assert found["stop_words"] == 2  # "the" and "that"; "The" is written otherwise
    assert found["bullet_line_share"] == 1 / 4
    assert found["ellipsis_line_share"] == 0
    assert found["duplicate_line_share"] == 1 / 3  # runs of line feeds part three lines
    assert found["duplicate_line_character_share"] == 19 / 52
    assert found["duplicate_paragraph_share"] == 0  # two paragraphs, different
    assert found["terminal_punctuation_line_share"] == 2 / 3
    assert found["short_line_share"] == 1
    assert found["duplicate_filled_line_character_share"] == 19 / 49
    assert found["top_2_gram_character_share"] == 2 * len("The cat") / 52
    assert found["top_4_gram_character_share"] == 2 * len("The cat ... the") / 52
    # The third line repeats the first: its first five tokens are skipped whole.
    assert found["duplicate_5_gram_character_share"] == len("Thecat...thedog") / 52
    assert found["duplicate_6_gram_character_share"] == len("Thecat...thedog!") / 52
    assert found["duplicate_7_gram_character_share"] == 0
    assert (found["script"], found["script_share"]) == ("Latin", 1)


def test_marks_that_rules_look_for() -> None:
    found = signals("Lorem Ipsum {x} {y} JavaScript \ufffd\ufffd e@mail.org 7.7.7.7 6.6.6.6")
    assert found["lorem_ipsum_count"] == 1
    assert found["curly_brace_count"] == 2
    assert found["javascript_count"] == 1
    assert found["replacement_character_share"] == 2 / found["characters"]
    assert (found["email_count"], found["ip_count"]) == (1, 2)


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\u3000\t"])
def test_blank_text_has_zero_in_every_share(text: str) -> None:
    found = signals(text)
    shares = {s.name for s in TEXT_SIGNALS if s.unit == "share"} - {
        "duplicate_line_share",  # blank lines are lines to Gopher: "\n\n\n" has two empty ones
    }
    nonzero = {name for name in shares if found[name]} - {"newline_to_word_ratio"}
    assert nonzero == set()
    assert found["words"] == 0
    assert found["script"] is None


ODD = st.text(
    alphabet=st.sampled_from("aA.#…- \n\r\u2028é日ไ١１@:8\x00\ud800\u200f\u0301😀\ufffd{"),
    max_size=60,
)


@pytest.mark.full
@given(st.lists(st.text(max_size=40) | ODD, max_size=5), st.integers(1, 100))
@example(["\u20280\r0"], 1)  # refinedweb cuts the separator, so it counts a word more
@example(["x " * 40, "", "same line\n" * 30, "." * 50, "@" * 50, "a-" * 40], 50)
@settings(deadline=None, max_examples=200)
def test_any_text_gives_finite_values_that_no_neighbour_changes(
    texts: list[str], batch_characters: int
) -> None:
    together = measure(texts, batch_characters=batch_characters)
    for place, text in enumerate(texts):
        alone = measure([text])
        assert together.views[place] == alone.views[0]
        assert _cuts_of(together, place) == _cuts_of(alone, 0)
        for signal in choose_text_signals(GROUPS, LINE_VIEWS):
            value = together.columns[signal.name][place]
            assert value == alone.columns[signal.name][0], signal.name
            if signal.type == "float64":
                assert math.isfinite(value)
                assert value >= 0
                # Overlapping occurrences of an n-gram are all counted, so its share has no bound.
                bounded = signal.unit == "share" and "_ratio" not in signal.name
                assert value <= 1 or not bounded or "top_" in signal.name, signal.name


def _cuts_of(measured: Measured, place: int) -> set[tuple[str, int, int]]:
    """View, start and end of the cuts of one text."""
    return {
        (cuts.view, start, end)
        for cuts in measured.cuts
        for text, start, end in zip(
            cuts.text_of.tolist(), cuts.starts.tolist(), cuts.ends.tolist(), strict=True
        )
        if text == place
    }
