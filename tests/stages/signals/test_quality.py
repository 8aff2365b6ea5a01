"""Gopher's quality signals: numbers by hand, and a plain-Python reading of datatrove's filter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.signals.quality import QUALITY_SIGNALS, hash_strings, measure_quality
from stages.text.batch import split_texts
from stages.text.characters import SYMBOLS
from stages.text.words import split_words as split

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")


def measured(texts: list[str], stop_words: tuple[str, ...] = STOP_WORDS) -> list[dict[str, float]]:
    columns = measure_quality(split_texts(texts), stop_words)
    assert list(columns) == [signal.name for signal in QUALITY_SIGNALS]
    return [{name: column[i] for name, column in columns.items()} for i in range(len(texts))]


def is_bullet(line: str) -> bool:
    return line.lstrip().startswith(("•", "-"))


def is_open(line: str) -> bool:
    return line.rstrip().endswith(("...", "…"))


def reference(text: str) -> dict[str, float]:
    words, lines = split(text), text.splitlines()
    wordlike = [word for word in words if not SYMBOLS.issuperset(word)]

    def over(part: int, whole: int) -> float:
        return part / whole if whole else 0.0

    return {
        "lines": len(lines),
        "word_tokens": len(words),
        "words": len(wordlike),
        "mean_word_length": over(sum(map(len, wordlike)), len(wordlike)),
        "hash_to_word_ratio": over(text.count("#"), len(words)),
        "ellipsis_to_word_ratio": over(text.count("...") + text.count("…"), len(words)),
        "bullet_line_share": over(sum(map(is_bullet, lines)), len(lines)),
        "ellipsis_line_share": over(sum(map(is_open, lines)), len(lines)),
        "alphabetic_word_share": over(sum(any(map(str.isalpha, w)) for w in words), len(words)),
        "stop_words": len(set(STOP_WORDS) & set(words)),
    }  # fmt: skip


BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
ODD = st.text(
    alphabet=st.sampled_from([*BREAKS, "\x1f", "\xa0", "\u3000", *"aB.#…-•日ไ１\x00\ud800\u0301"]),
    max_size=40,
) | st.lists(st.sampled_from(["the ", "The ", "of\n", "- a", "… ", "...", " . "])).map("".join)


@given(st.lists(ODD | st.text(max_size=30), max_size=4))
@example(["\r\n", "a\r\nb\r", "...." * 5, "a\x85b\x1cc", "  •", " \n - x\u2028…\xa0"])
@settings(deadline=None, max_examples=300)
def test_any_batch_equals_the_definitions_text_by_text(texts: list[str]) -> None:
    assert measured(texts) == [reference(text) for text in texts]


def test_every_line_boundary_that_python_knows_ends_a_line() -> None:
    texts = [f"a{mark}- b" for mark in BREAKS]
    assert [found["lines"] for found in measured(texts)] == [2] * len(BREAKS)
    assert {found["bullet_line_share"] for found in measured(texts)} == {0.5}
    assert measured(["a\x1f- b", "a\t- b"])[0]["lines"] == 1


def test_by_hand() -> None:
    (found,) = measured(["The cat... the dog!\n- that # 12\n\nThe cat... the dog!"])
    # Tokens: The cat ... the dog ! | - that # 12 | The cat ... the dog !  = 16
    # Words (not punctuation only): The cat the dog that 12 The cat the dog = 10
    assert (found["lines"], found["word_tokens"], found["words"]) == (4, 16, 10)
    assert found["mean_word_length"] == (4 * 3 + 4 + 2 + 4 * 3) / 10
    assert found["hash_to_word_ratio"] == 1 / 16
    assert found["ellipsis_to_word_ratio"] == 2 / 16
    assert found["alphabetic_word_share"] == 9 / 16
    assert found["stop_words"] == 2  # "the" and "that"; "The" is written otherwise
    assert found["bullet_line_share"] == 1 / 4
    assert found["ellipsis_line_share"] == 0


@pytest.mark.parametrize(
    ("text", "name", "low", "high"),
    [
        ("I am too small...", "words", 0, 9),
        ("I I am " * 20, "mean_word_length", 0, 2.9),
        ("interconnections " * 20, "mean_word_length", 10.1, 99),
        ("# comment " * 20, "hash_to_word_ratio", 0.11, 1),
        ("... comment " * 20, "ellipsis_to_word_ratio", 0.11, 1),
        ("./!*?& a " * 20, "alphabetic_word_share", 0, 0.79),
        ("- a bullet here\n" * 30, "bullet_line_share", 1, 1),
        ("an open end …\n" * 30, "ellipsis_line_share", 1, 1),
    ],
)
def test_datatroves_published_cases_fire_the_rules_they_are_for(
    text: str, name: str, low: float, high: float
) -> None:
    assert low <= measured([text])[0][name] <= high


def test_stop_words_are_those_that_are_given_each_counted_once() -> None:
    stop_words = (*(f"w{i}" for i in range(200)), "don't", "e.g", "日", "two words", "")
    text = " ".join(f"w{i}" for i in range(0, 200, 2)) + " w0 w0 don't e.g 日 two words"
    assert [found["stop_words"] for found in measured([text, "w1", "w1"], stop_words)] == [
        103,
        1,
        1,
    ]


def test_hashes_of_strings_are_those_of_the_tokens() -> None:
    batch = split_texts(["end.Next日本"])  # one string, several tokens
    assert len(batch.tokens.starts) > 1
    assert hash_strings(["end", "日", "a b", ""]).tolist() == batch.tokens.hashes[[0, -2]].tolist()
    assert np.array_equal(hash_strings(["end.Next"]), hash_strings(["end.Next"], "spacy_english"))
