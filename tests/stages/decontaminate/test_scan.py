"""The index and the search, against n-grams compared as words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.decontaminate.config import DecontaminateConfig
from stages.decontaminate.passages import item_texts, row_texts
from stages.decontaminate.search import (
    Index,
    Passage,
    find_matches,
    normalised_word_places,
)
from stages.decontaminate.shingles import normalise_words, plain_words, strip_markup

WORDS = st.lists(st.sampled_from(["a", "b", "c", "0"]), max_size=12)


def grams(words: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


@given(st.lists(WORDS, max_size=5), st.lists(WORDS, max_size=4), st.integers(2, 5))
@settings(deadline=None, max_examples=200)
def test_matches_are_the_ngrams_that_both_hold(
    items: list[list[str]], documents: list[list[str]], n: int
) -> None:
    least = 2
    index = Index.build([Passage(i, words, least) for i, words in enumerate(items)], n)
    owners: dict[tuple[str, ...], set[int]] = {}
    for item, words in enumerate(items):
        if len(words) >= least:
            for gram in grams(words, min(n, len(words))):
                if 2 * sum(map(str.isalpha, gram)) >= len(gram):
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
    index = Index.build([], 13)
    counts, matches = find_matches(["some text of no use", ""], index)
    assert counts.tolist() == [1, 0]
    assert len(matches.texts) == 0


def test_ngrams_of_numbers_by_half_are_no_evidence() -> None:
    numbers = ["0"] * 20
    assert len(Index.build([Passage(0, numbers)], 13).hashes) == 0
    assert len(Index.build([Passage(0, [*numbers, "apples"])], 13).hashes) == 0
    assert len(Index.build([Passage(0, [*numbers[:6], *"abcdefg"])], 13).hashes) == 1


@pytest.mark.parametrize(
    ("passages", "expected"),
    [
        ("prompt", [("Q?", 8)]),
        ("answer", [("Q? yes", 5)]),
        ("prompt_and_answer", [("Q?", 8), ("Q? yes", 5)]),
        ("choices", [("Q? no", 5), ("Q? yes", 5)]),
        ("all", [("Q?", 8), ("no", 13), ("yes", 13), ("Q? yes", 5)]),
    ],
)
def test_what_of_an_item_counts(passages: str, expected: list[tuple[str, int]]) -> None:
    config = DecontaminateConfig.parse({"passages": passages}, where="decontaminate")
    assert item_texts("Question: Q?\nAnswer:", ["no", "yes"], 1, config) == expected
    assert item_texts("A whole text.", [], None, config) == [("A whole text.", 5)]


@pytest.mark.parametrize(
    ("passages", "expected"),
    [
        ("prompt", [("Q?", 8)]),
        ("answer", [("Q? 7", 5), ("Q? seven", 5)]),
        ("prompt_and_answer", [("Q?", 8), ("Q? 7", 5), ("Q? seven", 5)]),
        ("choices", [("Q? 7", 5), ("Q? seven", 5)]),
        ("all", [("Q?", 8), ("7", 13), ("seven", 13), ("Q? 7", 5), ("Q? seven", 5)]),
    ],
)
def test_each_reference_of_a_free_item_counts_as_a_right_answer(passages, expected) -> None:
    config = DecontaminateConfig.parse({"passages": passages}, where="decontaminate")
    requests = [
        {"formulation": "free", "shots": shots, "references": ["7", "seven", " "]}
        for shots in (0, 5)
    ]
    row = {"benchmark": "sums", "form": "free", "prompt": "Question: Q?\nAnswer:",
           "choices": [], "answer": None, "requests": requests}  # fmt: skip
    assert row_texts(row, config) == expected
    # Of code the references are test programs.
    assert row_texts(row, config, {"sums"}) == [("Q?", 8)]


def test_the_question_of_a_text_of_two_lines_counts_alone() -> None:
    config = DecontaminateConfig()
    assert item_texts("Who?\nHe", [], None, config) == [("Who?", 8), ("Who?\nHe", 5)]
    assert item_texts("", ["", "b"], 0, config) == [("", 8), ("", 13), ("b", 13), (" ", 5)]


@pytest.mark.parametrize(
    "copy",
    [
        "Don\u2019t the 40 waters of the Rh\u00edne \u2014 meet here",
        "dont the 1,200.50 waters of the rhine meet here",
        "<p>Don&#39;t the <b>7</b> waters</p> of the Rh&iacute;ne meet&nbsp;here",
        "> **Don't** the 3.5\n> waters of\n> the _Rhine_ meet here!",
    ],
)
def test_edits_that_change_no_word_change_no_ngram(copy: str) -> None:
    item = "Don't the 12 waters of the Rh\u00edne meet here?"
    index = Index.build([Passage(0, plain_words(item))], 13)
    text = f"before {copy} after"
    _, matches = find_matches([text], index)
    assert matches.texts.tolist() == [0]
    start, length = matches.starts[0], matches.lengths[0]
    places = normalised_word_places(text)
    whole = text[places[start][0] : places[start + length - 1][1]]
    assert whole.lower().startswith("don")
    assert whole.endswith("here")


@pytest.mark.parametrize(
    "item",
    [
        "ما هي عاصمة هذه البلاد الجميلة القديمة",
        "Какая река течет через старую столицу страны",
        "日本の首都はどこですか東京です",
        "นี่คือคำถามที่ไม่มีใครเคยถามมาก่อน",
    ],
)
def test_items_of_other_scripts_and_right_to_left_are_found(item: str) -> None:
    words = plain_words(item)
    assert len(words) >= 5
    index = Index.build([Passage(0, words)], 13)
    for text in (item, f"abc {item}. def", f"\u202b{item}\u202c"):
        assert set(find_matches([text], index)[1].texts.tolist()) == {0}


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=300)
def test_every_normalised_word_has_its_place(text: str) -> None:
    places = normalised_word_places(text)
    words = plain_words(text)
    assert len(places) == len(words)
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert places == sorted(places)
    plain = strip_markup(text)
    for (start, end), word in zip(places, words, strict=True):
        assert word in normalise_words(plain[start:end])


def test_places_are_those_of_the_original_spelling() -> None:
    text = "  The CAFÉ, open 24.5 hours—daily"
    words = [text[start:end] for start, end in normalised_word_places(text)]
    assert words == ["The", "CAFÉ", "open", "24.5", "hours", "daily"]
    assert normalised_word_places("٣٫٥ اختبار")[0] == (0, 3)


def test_hashes_are_sorted_and_items_ascending() -> None:
    passages = [Passage(i, list("abcdef")) for i in (2, 0, 1)]
    index = Index.build(passages, 3)
    assert (np.diff(index.hashes.astype(object)) > 0).all()
    assert [index.items_with(row).tolist() for row in range(4)] == [[0, 1, 2]] * 4
