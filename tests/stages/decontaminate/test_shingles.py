"""Shingles: expected sets are those of the word n-grams themselves."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.decontaminate.shingles import mix, ngram_hashes, word_hashes

WORDS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "", "naïve", "日"]), max_size=40)


@given(WORDS, st.integers(1, 6))
@settings(deadline=None, max_examples=200)
def test_numbers_are_equal_exactly_where_ngrams_are(words: list[str], n: int) -> None:
    hashes = ngram_hashes(word_hashes(words), n)
    ngrams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    assert len(hashes) == len(ngrams)
    assert len(set(zip(ngrams, hashes.tolist(), strict=True))) == len(set(ngrams))
    assert len(set(hashes.tolist())) == len(set(ngrams))


def test_word_order_and_word_borders_count() -> None:
    pairs = [["a", "b"], ["b", "a"], ["ab", ""], ["", "ab"], ["a", "b", ""]]
    numbers = {int(ngram_hashes(word_hashes(words), len(words))[0]) for words in pairs}
    assert len(numbers) == len(pairs)


def test_a_place_in_a_long_text_does_not_bear_on_the_number() -> None:
    filler = [f"w{i}" for i in range(5000)]
    alone = ngram_hashes(word_hashes(["x", "y", "z"]), 3)[0]
    assert alone in ngram_hashes(word_hashes([*filler, "x", "y", "z", *filler]), 3)


def test_mixing_is_a_bijection() -> None:
    values = np.arange(1 << 16, dtype=np.uint64)
    assert len(np.unique(mix(values))) == len(values)


def test_numbers_are_the_same_in_a_process_with_another_hash_seed() -> None:
    program = (
        "from stages.decontaminate.shingles import ngram_hashes, word_hashes;"
        "print(ngram_hashes(word_hashes('to be or not to be'.split()), 2).tolist())"
    )
    words = ["to", "be", "or", "not", "to", "be"]
    expected = ngram_hashes(word_hashes(words), 2).tolist()
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{expected}\n"}


def test_lone_surrogates_have_a_number() -> None:
    assert len(word_hashes(["\ud800"])) == 1


def test_ngrams_without_words_are_refused() -> None:
    with pytest.raises(ValueError, match="0"):
        ngram_hashes(word_hashes(["a"]), 0)
