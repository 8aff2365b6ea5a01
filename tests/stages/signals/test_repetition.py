"""Gopher's repetition signals against the definitions, word by word, and against datatrove."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.signals.repetition import duplicate_ngram_characters, top_ngram_characters
from stages.text.tokens import Vocabulary

SIZES = (2, 3, 5, 10)
WORDS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "aab", "."]), max_size=60)


def top(words: list[str], n: int) -> int:
    """The definition: joined with spaces, the first of the most frequent, length times count."""
    ngrams = [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]
    if not ngrams:
        return 0
    ngram, count = Counter(ngrams).most_common(1)[0]
    return len(ngram) * count


def duplicates(words: list[str], n: int) -> int:
    """The definition: from left to right, joined without spaces, repeated ones skipped whole."""
    seen: set[str] = set()
    characters = place = 0
    while place + n <= len(words):
        ngram = "".join(words[place : place + n])
        if ngram in seen:
            characters += len(ngram)
            place += n
        else:
            seen.add(ngram)
            place += 1
    return characters


@given(st.lists(WORDS, max_size=5))
@settings(deadline=None, max_examples=200)
def test_a_batch_equals_the_definitions_text_by_text(texts: list[list[str]]) -> None:
    tokens = Vocabulary().tokens(texts)
    for n in SIZES:
        assert top_ngram_characters(tokens, n).tolist() == [top(words, n) for words in texts]
    found = duplicate_ngram_characters(tokens, SIZES)
    for n, counts in zip(SIZES, found, strict=True):
        assert counts.tolist() == [duplicates(words, n) for words in texts]


def test_worked_example() -> None:
    # "a b" occurs three times: 3 characters with the space, times 3. From the left, the second and
    # the third "ab" repeat the first: 2 characters each.
    tokens = Vocabulary().tokens([["a", "b", "x", "a", "b", "y", "a", "b"]])
    assert top_ngram_characters(tokens, 2).tolist() == [9]
    assert [counts.tolist() for counts in duplicate_ngram_characters(tokens, [2])] == [[4]]


def test_ngrams_that_differ_in_spaces_only_are_duplicates() -> None:
    tokens = Vocabulary().tokens([["ab", "c", "x", "a", "bc"]])
    assert [counts.tolist() for counts in duplicate_ngram_characters(tokens, [2])] == [[3]]
    assert top_ngram_characters(tokens, 2).tolist() == [4]  # the first of equals, "ab c"


@given(WORDS.filter(bool))
@settings(deadline=None, max_examples=100)
def test_equals_datatrove(words: list[str]) -> None:
    oracle = pytest.importorskip("datatrove.pipeline.filters.gopher_repetition_filter")
    tokens = Vocabulary().tokens([words])
    for n in (2, 3, 4):
        ngrams = oracle.get_n_grams(words, n)
        expected = oracle.find_top_duplicate(ngrams) if ngrams else 0
        assert top_ngram_characters(tokens, n).tolist() == [expected]
    for n in range(5, 11):
        expected = oracle.find_all_duplicate(words, n)
        assert duplicate_ngram_characters(tokens, [n])[0].tolist() == [expected]
