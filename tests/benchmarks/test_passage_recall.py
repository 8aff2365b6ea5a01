"""Planted passages: they stand in the earlier document that they name, and have their length."""

from __future__ import annotations

import random

from stages.text.words import find_words
from tests.benchmarks.passage_recall import KINDS, VIEWS, Planted, snapshots


def test_planted_passages_stand_in_their_holder_and_are_as_long_as_they_say():
    draw = random.Random(3)
    words = ["".join(draw.choices("abcdefghijklmnop", k=7)) for _ in range(5_000)]
    sentences = [" ".join([*draw.choices(words, k=12), "end."]) for _ in range(3 * 16 * 24)]
    made = list(snapshots(sentences, seed=5, documents=16))
    texts = [[getattr(one, "text", one) for one in listed] for listed in made]
    assert not any(isinstance(one, Planted) for one in made[0])
    for number in (1, 2):
        assert [one.kind for one in made[number]] == [*KINDS, *KINDS]
        for one in made[number]:
            copied = one.text[one.start : one.end]
            assert copied in one.holder
            assert any(one.holder in earlier for earlier in texts[:number])
            if one.kind not in VIEWS:
                assert len(list(find_words(copied))) == int(one.kind.split()[0])
    assert list(snapshots(sentences, seed=5, documents=16)) == made
