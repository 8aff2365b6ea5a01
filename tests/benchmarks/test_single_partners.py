"""Corpora of documents with one partner: each pair lies where it should, and none beside it."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace

import pytest

from tests.benchmarks.single_partners import HIGH, LOW, pairs, similarity, truth


@pytest.fixture(scope="module")
def prose():
    """Sentences of ten words each, drawn from 5,000 words."""
    draw = random.Random(3)
    words = ["".join(draw.choices("abcdefghijklmnop", k=7)) for _ in range(5_000)]
    return SimpleNamespace(sentences=[" ".join(draw.choices(words, k=10)) for _ in range(9_000)])


def test_each_copy_lies_between_080_and_088_and_has_no_other_partner(prose, tmp_path):
    made = list(pairs(prose, 30, seed=5))
    assert all(LOW <= similarity(a.split(), b.split()) <= HIGH for a, b in made)
    file = tmp_path / "corpus.jsonl"
    file.write_text("\n".join(json.dumps({"text": one}) for pair in made for one in pair))
    only, documents = truth([file], tmp_path / "shingles")
    assert documents == 60
    assert set(only) == {(n, n ^ 1) for n in range(60)}
    by_hand = [similarity(a.split(), b.split()) for a, b in made]
    assert [only[2 * n, 2 * n + 1] for n in range(30)] == pytest.approx(by_hand)


def test_a_corpus_follows_from_its_seed(prose):
    first, again, other = (list(pairs(prose, 3, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_similarity_is_that_of_the_sets_of_5_grams():
    """Six 5-grams; the last word is part of one of them: 5 in common, 7 in all."""
    words = list("abcdefghij")
    assert similarity(words, [*words[:-1], "z"]) == 5 / 7
