"""The index and the search, against n-grams compared as words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.decontaminate.search import (
    Index,
    Passage,
    find_matches,
    item_texts,
    normalised_word_places,
)
from stages.decontaminate.shingles import normalise_words

WORDS = st.lists(st.sampled_from(["a", "b", "c", "0"]), max_size=12)


def grams(words: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


@given(st.lists(WORDS, max_size=5), st.lists(WORDS, max_size=4), st.integers(2, 5))
@settings(deadline=None, max_examples=200)
def test_matches_are_the_ngrams_that_both_hold(
    items: list[list[str]], documents: list[list[str]], n: int
) -> None:
    least = 2
    index = Index.build([Passage(i, words) for i, words in enumerate(items)], n, least)
    owners: dict[tuple[str, ...], set[int]] = {}
    for item, words in enumerate(items):
        if len(words) >= least:
            for gram in grams(words, min(n, len(words))):
                if any(map(str.isalpha, gram)):
                    owners.setdefault(gram, set()).add(item)
    counts, matches = find_matches([" ".join(words) for words in documents], index)
    assert counts.tolist() == [max(len(words) - n + 1, min(len(words), 1)) for words in documents]
    expected = sorted(
        (row, start, len(gram), sorted(owners[gram]))
        for row, words in enumerate(documents)
        for length in {len(gram) for gram in owners}
        for start, gram in enumerate(grams(words, length))
        if gram in owners
    )
    found = [
        (row, start, length, index.items_with(ngram).tolist())
        for row, start, length, ngram in zip(
            matches.texts.tolist(),
            matches.starts.tolist(),
            matches.lengths.tolist(),
            matches.ngrams.tolist(),
            strict=True,
        )
    ]
    assert found == expected


def test_an_empty_index_finds_nothing() -> None:
    index = Index.build([], 13, 8)
    counts, matches = find_matches(["some text of no use", ""], index)
    assert counts.tolist() == [1, 0]
    assert len(matches.texts) == 0


def test_ngrams_of_numbers_alone_are_no_evidence() -> None:
    numbers = ["0"] * 20
    assert len(Index.build([Passage(0, numbers)], 13, 8).hashes) == 0
    assert len(Index.build([Passage(0, [*numbers, "apples"])], 13, 8).hashes) == 1


@pytest.mark.parametrize(
    ("passages", "expected"),
    [
        ("prompt", ["Q?"]),
        ("answer", ["Q? yes"]),
        ("prompt_and_answer", ["Q?", "Q? yes"]),
        ("choices", ["Q? no", "Q? yes"]),
    ],
)
def test_what_of_an_item_counts(passages: str, expected: list[str]) -> None:
    assert item_texts("Q?", ["no", "yes"], 1, passages) == expected
    assert set(item_texts("A whole text.", [], None, passages)) == {"A whole text."}


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=300)
def test_every_normalised_word_has_its_place(text: str) -> None:
    places = normalised_word_places(text)
    words = normalise_words(text)
    assert len(places) == len(words)
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert places == sorted(places)
    for (start, end), word in zip(places, words, strict=True):
        assert word in normalise_words(text[start:end])


def test_places_are_those_of_the_original_spelling() -> None:
    text = "  The CAFÉ, open 24.5 hours—daily"
    words = [text[start:end] for start, end in normalised_word_places(text)]
    assert words == ["The", "CAFÉ", "open", "24.5", "hours", "daily"]
    assert normalised_word_places("٣٫٥ اختبار")[0] == (0, 3)


def test_hashes_are_sorted_and_items_ascending() -> None:
    passages = [Passage(i, list("abcdef")) for i in (2, 0, 1)]
    index = Index.build(passages, 3, 2)
    assert (np.diff(index.hashes.astype(object)) > 0).all()
    assert [index.items_with(row).tolist() for row in range(4)] == [[0, 1, 2]] * 4
