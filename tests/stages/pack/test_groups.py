"""What is packed together: shards in order, enough of them, by counts alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.pack import shard
from stages.pack.shard import make_groups


@dataclass
class Encoded:
    """Stands in for the result of an encoded shard."""

    number: int
    value: dict[str, Any]

    def left(self, output: None, path: str) -> tuple[int, str]:
        return self.number, path


def encoded(tokens, documents=5, source="web", split="train"):
    """A shard for each number of tokens."""
    return [
        Encoded(
            number,
            {
                "groups": [
                    {
                        "source": source,
                        "split": split,
                        "first": 7,
                        "documents": documents,
                        "tokens": many,
                    }
                ]
            },
        )
        for number, many in enumerate(tokens)
    ]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(shard, "TOKENS", 1_000)
    monkeypatch.setattr(shard, "SEQUENCES", 10)
    monkeypatch.setattr(shard, "DOCUMENTS_AT_ONCE", 100)
    monkeypatch.setattr(shard, "PARTS", 8)


@settings(max_examples=100, deadline=None)
@given(tokens=st.lists(st.integers(1, 900), max_size=60), length=st.sampled_from([8, 150]))
def test_every_shard_is_in_one_group_and_a_group_is_enough(tokens, length):
    found = make_groups(encoded(tokens, documents=1), length)
    parts = [part for group in found for part in group.parts]
    assert [part.ids[0] for part in parts] == list(range(len(tokens)))
    enough = max(1_000, 10 * length)
    for group in found:
        total = sum(part.tokens for part in group.parts)
        assert total >= enough or len(group.parts) >= 8 or len(found) == 1
        assert total < 2 * enough + 900, "what is left over is less than a group"
    assert [group.number for group in found] == list(range(len(found)))
    assert len({group.id for group in found}) == len(found)


def test_many_documents_are_enough():
    found = make_groups(encoded([10] * 9, documents=40), 8)
    assert [len(group.parts) for group in found] == [3, 3, 3]


def test_sources_and_splits_are_packed_apart_and_in_a_fixed_order():
    results = [
        *encoded([2_000], source="web", split="held_out"),
        *encoded([2_000], source="code"),
        *encoded([2_000, 2_000], source="web"),
    ]
    told = [(group.source, group.split, group.number) for group in make_groups(results, 8)]
    assert told == [
        ("code", "train", 0),
        ("web", "train", 0),
        ("web", "train", 1),
        ("web", "held_out", 0),
    ]


def test_nothing_encoded_is_no_group():
    assert make_groups([], 8) == []
