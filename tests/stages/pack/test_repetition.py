"""Sequences that repeat themselves: against counting by hand, and what the stage does with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.pack.shard import repetitive


def repeats(row: list[int], period: int) -> int:
    """How often an n-gram of `period` tokens comes in a row at most."""
    most = 0
    for start in range(len(row) - period + 1):
        gram, times = row[start : start + period], 1
        while row[start + times * period : start + (times + 1) * period] == gram:
            times += 1
        most = max(most, times)
    return most


@settings(max_examples=300, deadline=None)
@given(
    parts=st.lists(
        st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=5), st.integers(1, 9)),
        max_size=6,
    ),
    max_period=st.integers(1, 6),
    least=st.integers(2, 7),
    dtype=st.sampled_from([np.uint16, np.uint32]),
    beyond=st.lists(st.integers(0, 2), min_size=20, max_size=20),
)
def test_a_sequence_is_repetitive_as_counted_by_hand(parts, max_period, least, dtype, beyond):
    row = [token for gram, times in parts for token in gram * times]
    more = (row[-max_period:] or [0]) * 20  # What lies beyond would go on with the last n-gram.
    padded = np.array([[*row, *more, *beyond]], dtype=dtype)
    expected = any(repeats(row, period) >= least for period in range(1, max_period + 1))
    assert repetitive(padded, np.array([len(row)]), max_period, least).tolist() == [expected]


@pytest.mark.parametrize(
    ("row", "period", "times"),
    [
        ("5000007", 1, 5),
        ("501010127", 2, 3),
        ("5301040104010401", 4, 3),
    ],
)
def test_cases_of_the_dolma_toolkit(row, period, times):
    """`test_find_periodic_sequences` of allenai/dolma (tests/python/test_repetitions.py)."""
    tokens = np.array([[int(digit) for digit in row]], dtype=np.uint16)
    used = np.array([len(row)])
    assert repetitive(tokens, used, period, times).all()
    assert not repetitive(tokens, used, period, times + 1).any()


@pytest.mark.parametrize("period", range(1, 15))
def test_the_published_limits_hold_to_the_token(period):
    """An n-gram of up to 13 tokens 32 times is too much; with one token less it is not."""
    draw = np.random.default_rng(period)
    for start in (0, 1, 100, 1500):
        row = 1000 + np.arange(2048)
        row[start : start + 32 * period] = np.tile(np.arange(period), 32)
        one_short = row.copy()
        one_short[start + draw.choice([0, 32 * period - 1])] = 900
        rows, used = np.stack([row, one_short]).astype(np.uint16), np.array([2048, 2048])
        assert repetitive(rows, used, 13, 32).tolist() == [period <= 13, False]


def test_padding_is_no_repetition():
    rows = np.full((1, 64), 2, dtype=np.uint16)
    rows[0, :3] = [0, 9, 1]
    assert not repetitive(rows, np.array([3]), 13, 4).any()
    assert not repetitive(rows, np.array([6]), 13, 4).any()
    assert repetitive(rows, np.array([7]), 13, 4).all()


def many(text, documents=40):
    """A German document among English ones."""
    others = [f"the cat sat on {n} dogs and ran {n}" for n in range(documents)]
    return [{"text": one, "language": "en"} for one in others] + [{"text": text, "language": "de"}]


def test_a_repetitive_sequence_is_left_out_and_its_documents_are_accounted_for(
    pack, read_shards, read_pieces
):
    rows = many("dog cat " * 400)
    manifest = pack([rows], held_out_share=0.0)
    source = read_shards(manifest, "train")["sources"]["web"]
    left = {
        name: sum(map(len, parts.values()))
        for name, parts in read_pieces(manifest, "train").items()
    }
    assert source["repetitive"] == manifest.counts["train_repetitive"] > 10
    assert source["dropped_tokens"]["repetitive"] == manifest.counts["train_repetitive_tokens"]
    assert source["tokens"] == sum(left.values())
    whole = pack([rows], held_out_share=0.0, repetition=None)
    everything = read_shards(whole, "train")["sources"]["web"]
    assert everything["tokens"] == source["tokens"] + source["dropped_tokens"]["repetitive"]
    assert everything["sequences"] == source["sequences"] + source["repetitive"]
    assert everything["repetitive"] == 0
    conserved = manifest.conservation
    assert conserved.out + conserved.dropped.get("repetitive", 0) == 41
    assert conserved.out == len(left) == source["documents"]
    assert sum(source["languages"].values()) == source["tokens"]


def test_a_source_that_only_repeats_itself_is_in_no_shard(pack, read_shards):
    rows = [*many("the end"), {"text": "dog " * 4000, "source": "noise"}]
    manifest = pack([rows], held_out_share=0.0)
    assert set(read_shards(manifest, "train")["sources"]) == {"web"}
    assert manifest.conservation.dropped == {"repetitive": 1}
    assert manifest.counts["train_repetitive"] > 60


def test_other_limits_leave_more_or_less(pack):
    rows = [{"text": f"{n} " + "dog cat ran " * 8, "source": "web"} for n in range(30)]
    settings = ({"max_period": 3, "min_repeats": 6}, {"max_period": 2, "min_repeats": 6})
    strict, loose = (pack([rows], repetition=one, held_out_share=0.0) for one in settings)
    assert strict.conservation.dropped["repetitive"] > 0
    assert loose.conservation.dropped == {}
