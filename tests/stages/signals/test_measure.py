"""All signals of a text: arithmetic by hand, datatrove's verdicts, and what no text may break."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.signals.columns import SIGNALS
from stages.signals.measure import measure
from stages.signals.stage import STOP_WORDS
from stages.text.words import words

GOPHER_RULES = {
    "dup_para_frac": ("duplicate_paragraph_share", 0.3),
    "dup_para_char_frac": ("duplicate_paragraph_character_share", 0.2),
    "dup_line_frac": ("duplicate_line_share", 0.3),
    "dup_line_char_frac": ("duplicate_line_character_share", 0.2),
    "top_2_gram": ("top_2_gram_character_share", 0.2),
    "top_3_gram": ("top_3_gram_character_share", 0.18),
    "top_4_gram": ("top_4_gram_character_share", 0.16),
    "duplicated_5_n_grams": ("duplicate_5_gram_character_share", 0.15),
    "duplicated_6_n_grams": ("duplicate_6_gram_character_share", 0.14),
    "duplicated_7_n_grams": ("duplicate_7_gram_character_share", 0.13),
    "duplicated_8_n_grams": ("duplicate_8_gram_character_share", 0.12),
    "duplicated_9_n_grams": ("duplicate_9_gram_character_share", 0.11),
    "duplicated_10_n_grams": ("duplicate_10_gram_character_share", 0.10),
}
"""Reasons in datatrove's order; each fires above its threshold (Rae et al. 2021, table A1)."""


def signals(text: str) -> dict[str, Any]:
    columns, _ = measure([text], STOP_WORDS)
    return {name: values[0] for name, values in columns.items()}


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
    found = signals("Lorem Ipsum {x} {y} JavaScript \ufffd\ufffd e@mail.org 8.8.8.8 1.1.1.1")
    assert found["lorem_ipsum_count"] == 1
    assert found["curly_brace_count"] == 2
    assert found["javascript_count"] == 1
    assert found["replacement_character_share"] == 2 / found["characters"]
    assert (found["email_count"], found["ip_count"]) == (1, 2)


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\u3000\t"])
def test_blank_text_has_zero_in_every_share(text: str) -> None:
    found = signals(text)
    shares = {s.name for s in SIGNALS if s.unit == "share"} - {
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


@given(st.lists(st.text(max_size=40) | ODD, max_size=5), st.integers(1, 100))
@example(["x " * 40, "", "same line\n" * 30, "." * 50, "@" * 50, "a-" * 40], 50)
@settings(deadline=None, max_examples=200)
def test_any_text_gives_finite_values_that_no_neighbour_changes(
    texts: list[str], batch_characters: int
) -> None:
    together, spans = measure(texts, STOP_WORDS, batch_characters=batch_characters)
    for place, text in enumerate(texts):
        alone, alone_spans = measure([text], STOP_WORDS)
        assert spans[place] == alone_spans[0]
        for signal in SIGNALS:
            value = together[signal.name][place]
            assert value == alone[signal.name][0]
            if signal.type == "float64":
                assert math.isfinite(value)
                assert value >= 0
                # Overlapping occurrences of an n-gram are all counted, so its share has no bound.
                bounded = (
                    not signal.name.endswith(("_ratio", "_length")) and "top" not in signal.name
                )
                assert value <= 1 or not bounded


@pytest.fixture(scope="module")
def datatrove() -> Any:
    """datatrove's three filters, reading our words instead of spaCy's."""
    pytest.importorskip("datatrove")
    from datatrove.pipeline.filters import (
        FineWebQualityFilter,
        GopherQualityFilter,
        GopherRepetitionFilter,
        fineweb_quality_filter,
        gopher_quality_filter,
        gopher_repetition_filter,
    )

    with pytest.MonkeyPatch.context() as patch:
        for module in (fineweb_quality_filter, gopher_quality_filter, gopher_repetition_filter):
            patch.setattr(module, "split_into_words", lambda text, language: words(text))
        yield {
            "repetition": GopherRepetitionFilter(),
            "quality": GopherQualityFilter(),
            "fineweb": FineWebQualityFilter(),
        }


def repetition_verdict(found: dict[str, Any]) -> str | None:
    failing = (why for why, (name, most) in GOPHER_RULES.items() if found[name] > most)
    return next(failing, None)


def quality_verdict(found: dict[str, Any]) -> str | None:
    checks = {
        "gopher_short_doc": found["words"] < 50,
        "gopher_long_doc": found["words"] > 100_000,
        "gopher_below_avg_threshold": found["mean_word_length"] < 3,
        "gopher_above_avg_threshold": found["mean_word_length"] > 10,
        "gopher_too_many_hashes": found["hash_to_word_ratio"] > 0.1,
        "gopher_too_many_ellipsis": found["ellipsis_to_word_ratio"] > 0.1,
        "gopher_too_many_bullets": found["bullet_line_share"] > 0.9,
        "gopher_too_many_end_ellipsis": found["ellipsis_line_share"] > 0.3,
        "gopher_below_alpha_threshold": found["alphabetic_word_share"] < 0.8,
        "gopher_enough_stop_words": found["stop_words"] < 2,
    }
    return next((reason for reason, fails in checks.items() if fails), None)


def fineweb_verdict(found: dict[str, Any]) -> str | None:
    checks = {
        "line_punct_ratio": found["terminal_punctuation_line_share"] < 0.12,
        "short_line_ratio": found["short_line_share"] > 0.67,
        "char_dup_ratio": found["duplicate_filled_line_character_share"] > 0.01,
        "list_ratio": found["newline_to_word_ratio"] > 0.3,
    }
    return next((reason for reason, fails in checks.items() if fails), None)


VERDICTS = {
    "repetition": repetition_verdict,
    "quality": quality_verdict,
    "fineweb": fineweb_verdict,
}


def datatrove_verdict(rule: Any, text: str) -> str | None:
    from datatrove.data import Document

    verdict = rule.filter(Document(text=text, id=""))
    return None if verdict is True else verdict[1]


QUOTE = (
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age "
    "of foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the "
    "season of Light, it was the season of Darkness, it was the spring of hope, and we have that."
)
CASES = [
    "I like to eat\n" * 4,
    "I like to eat\n\n" * 4,
    "one one\n\ntwo two\n\nthree three\n\n" + "x" * 30 + "\n\n" + "x" * 30,
    "one one\ntwo two\nthree three\n" + "x" * 40 + "\n" + "x" * 40,
    "I love it, I love it, I love it, that is all there is to say about that thing today",
    "the quick brown fox jumps " * 4 + QUOTE,
    QUOTE,
    "one two three four",
    "aa " * 60,
    "abcdefghijklmno " * 60,
    "# word " * 60,
    "... word " * 60,
    "./! *?& " * 60,
    "- a bullet here\n" * 30,
    "an open end …\n" * 30,
    "zebra yellow xylophone " * 30,
    "abc\n" * 5,
    "\n".join(f"{QUOTE} {i}." for i in range(5)),
]


@pytest.mark.parametrize("rule", VERDICTS)
@pytest.mark.parametrize("text", CASES, ids=range(len(CASES)))
def test_verdict_equals_datatroves_on_the_same_words(
    datatrove: dict[str, Any], rule: str, text: str
) -> None:
    assert VERDICTS[rule](signals(text)) == datatrove_verdict(datatrove[rule], text)


def test_the_cases_fire_most_rules() -> None:
    fired = {VERDICTS[rule](signals(text)) for rule in VERDICTS for text in CASES}
    assert len(fired) >= 15, sorted(map(str, fired))


def test_verdicts_equal_datatroves_on_real_text(
    datatrove: dict[str, Any], shared_data: Path
) -> None:
    import zstandard

    for name in ("en-web-c4-demo", "en-docs", "ja", "hi"):
        with zstandard.open(shared_data / "text" / f"{name}.jsonl.zst", "rt") as lines:
            texts = [json.loads(line)["text"] for line, _ in zip(lines, range(60), strict=False)]
        columns, _ = measure(texts, STOP_WORDS)
        for place, text in enumerate(texts):
            found = {name: values[place] for name, values in columns.items()}
            for rule, verdict in VERDICTS.items():
                assert verdict(found) == datatrove_verdict(datatrove[rule], text), (name, place)
