from __future__ import annotations

import numpy as np

from stages.dedup.exact import comparable, exact_classes, text_digest
from stages.text.normalise import normalise


def digest(text: str) -> bytes:
    return text_digest(text, normalise(text))


def test_texts_are_equal_when_only_case_and_punctuation_differ() -> None:
    assert digest("It’s a Test, isn't it?") == digest("it's a test — isn’t it")
    assert digest("one two") != digest("two one")


def test_texts_without_words_are_equal_only_as_they_stand() -> None:
    assert digest("***") == digest("***")
    assert digest("***") != digest("!!!")


def test_a_class_is_named_by_its_first_document() -> None:
    halves = np.array([[1, 1], [2, 2], [1, 1], [1, 2], [2, 2], [1, 1]], dtype=np.uint64)
    assert exact_classes(halves).tolist() == [0, 1, 0, 3, 1, 0]
    assert exact_classes(halves[:0]).tolist() == []


def test_a_hundred_thousand_equal_documents_are_one_class_and_one_document_to_compare() -> None:
    first = exact_classes(np.full((100_000, 2), 7, dtype=np.uint64))
    assert not first.any()
    assert comparable(first, np.full(100_000, 5)).tolist() == [0]


def test_documents_without_shingles_are_not_compared() -> None:
    assert comparable(np.array([0, 1, 1]), np.array([3, 0, 0])).tolist() == [0]
