"""Mixtures: shares are exact at block ends, ordinals have no gap, a seek equals a walk."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.training.mixture import BLOCK, Mixture

WEIGHTS = st.lists(st.floats(0, 1e6), min_size=1, max_size=9).filter(any)


@settings(max_examples=60, deadline=None)
@given(weights=WEIGHTS, block=st.integers(0, 10**9))
def test_counts_never_fall_and_stay_within_rounding_of_the_shares(weights, block):
    mixture = Mixture(weights, b"key")
    counts = mixture.counts(block)
    assert counts.sum() == block * mixture.block
    assert (mixture.counts(block + 1) >= counts).all()
    shares = np.array(weights) / sum(weights)
    off = np.abs(counts - shares * block * mixture.block)
    rounding = 1e-12 * block * mixture.block  # of `shares` in this test's floats
    largest = int(np.argmax(weights))
    assert (np.delete(off, largest) <= 0.5 + rounding).all()
    assert off[largest] <= 0.5 * (len(weights) - 1) + rounding


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.5], [0.001, 0.999], [0.7, 0.0, 0.2, 0.1]])
def test_ordinals_of_a_source_run_without_gap_or_repeat_at_any_length(weights):
    mixture = Mixture(weights, b"key")
    for length in (1, 37, BLOCK - 1, BLOCK, 3 * BLOCK + 11):
        sources, ordinals = mixture.place(np.arange(length))
        used = np.bincount(sources, minlength=len(weights))
        assert mixture.used(length).tolist() == used.tolist()
        for source in range(len(weights)):
            assert ordinals[sources == source].tolist() == list(range(used[source]))


def test_a_seek_gives_what_a_walk_gives():
    walk = Mixture([0.3, 0.7], b"key")
    sources, ordinals = walk.place(np.arange(5 * BLOCK))
    places = np.array([4 * BLOCK + 5, 17, 2 * BLOCK, 4 * BLOCK + 6])
    seek_sources, seek_ordinals = Mixture([0.3, 0.7], b"key").place(places)
    assert seek_sources.tolist() == sources[places].tolist()
    assert seek_ordinals.tolist() == ordinals[places].tolist()


def test_a_share_far_below_one_sequence_a_block_is_still_met():
    """1e-6 of 10^9 positions is 1,000 sequences."""
    mixture = Mixture([1e-6, 1 - 1e-6], b"key")
    block = 10**9 // mixture.block
    assert mixture.counts(block)[0] == round(1e-6 * block * mixture.block)


def test_order_inside_a_block_is_shuffled_and_differs_from_block_to_block():
    sources, _ = Mixture([0.5, 0.5], b"key").place(np.arange(2 * BLOCK))
    first, second = sources[:BLOCK], sources[BLOCK:]
    assert abs(int((np.diff(first) != 0).sum()) - BLOCK / 2) < 5 * np.sqrt(BLOCK) / 2
    assert not np.array_equal(first, second)


def test_many_sources_get_blocks_long_enough_for_all():
    mixture = Mixture([1.0] * 100, b"key")
    assert mixture.block >= 100 * 99
    assert (mixture.counts(1) > 0).all()


@pytest.mark.parametrize("weights", [[], [0.0], [-0.1, 1.1], [float("nan")], [float("inf"), 1.0]])
def test_weights_without_meaning_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        Mixture(weights, b"key")
