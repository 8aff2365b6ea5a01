"""Mixtures: shares are exact at block ends, ordinals have no gap, a seek equals a walk."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.training.sample_clock import BLOCK, Mixture

WEIGHTS = st.lists(st.floats(0, 1e6), min_size=1, max_size=9).filter(any)
PAIRS = st.lists(st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)), min_size=1, max_size=40).filter(
    lambda pairs: any(a for a, _ in pairs) and any(b for _, b in pairs)
)


def changing(pairs, span):
    begin, end = zip(*pairs, strict=True)
    return Mixture(begin, 7, end=end, span=span)


def integral(pairs, span, position):
    """The share of each source up to `position`, by the trapezoid rule on straight lines."""
    begin, end = ([Fraction(repr(w)) for w in side] for side in zip(*pairs, strict=True))
    at, total, total_end = min(position, span), sum(begin), sum(end)
    shares = []
    for a, b in zip(begin, end, strict=True):
        first, final = a / total, b / total_end
        here = first + (final - first) * Fraction(at, span)
        shares.append((first + here) / 2 * at + final * (position - at))
    return shares


def check_step(mixture, block, shares):
    """The counts of a block: whole numbers below the shares but for one source; none falls."""
    counts, following = mixture.counts(block), mixture.counts(block + 1)
    assert counts.sum() == block * mixture.block
    assert (following >= counts).all()
    above = [int(count) - int(share) for count, share in zip(counts, shares, strict=True)]
    assert min(above) == 0
    assert sum(one > 0 for one in above) <= 1
    assert max(above) <= max(0, len(shares) - 1)


@settings(max_examples=100, deadline=None)
@given(weights=WEIGHTS, block=st.integers(0, 10**9))
def test_counts_never_fall_and_are_the_whole_parts_of_the_shares(weights, block):
    mixture = Mixture(weights, 7)
    exact = [Fraction(repr(weight)) for weight in weights]
    shares = [weight * block * mixture.block / sum(exact) for weight in exact]
    check_step(mixture, block, shares)


@settings(max_examples=150, deadline=None)
@given(pairs=PAIRS, span=st.integers(1, 10**12), data=st.data())
def test_counts_of_changing_weights_are_the_integral_of_straight_lines(pairs, span, data):
    mixture = changing(pairs, span)
    last = span // mixture.block + 2
    block = data.draw(st.one_of(st.integers(0, 3), st.integers(0, last), st.just(last)))
    check_step(mixture, block, integral(pairs, span, block * mixture.block))


@settings(max_examples=40, deadline=None)
@given(pairs=PAIRS, span=st.integers(1, 20_000))
def test_counts_never_fall_from_begin_to_end_of_a_phase(pairs, span):
    """Every block of it, where the source that takes the rest changes hands, and two beyond."""
    mixture = changing(pairs, span)
    counts = np.stack([mixture.counts(b) for b in range(span // mixture.block + 3)])
    assert (np.diff(counts, axis=0) >= 0).all()
    assert counts.sum(axis=1).tolist() == [b * mixture.block for b in range(len(counts))]


def test_a_source_that_fades_out_while_another_fades_in_gets_half_of_all():
    """Weights 1 -> 0 and 0 -> 1: 3/4 of the first half of 10^6 positions, 1/2 of all of them."""
    mixture = changing([(1.0, 0.0), (0.0, 1.0)], 2**20)
    assert mixture.counts(2**19 // mixture.block).tolist() == [3 * 2**17, 2**17]
    assert mixture.counts(2**20 // mixture.block).tolist() == [2**19, 2**19]
    beyond = mixture.counts(2**20 // mixture.block + 5) - [2**19, 2**19]
    assert beyond.tolist() == [0, 5 * mixture.block]


def test_a_short_phase_of_changing_weights_still_changes_them():
    """100 sequences, 1 -> 0: a block is shorter than the phase, so 3/4 of the first half."""
    mixture = changing([(1.0, 0.0), (0.0, 1.0)], 100)
    assert abs(mixture.used(50)[0] - 37.5) <= 2
    assert abs(mixture.used(100)[0] - 50) <= 2


@pytest.mark.parametrize(
    "mixture",
    [
        Mixture([1.0], 7),
        Mixture([0.5, 0.5], 7),
        Mixture([0.001, 0.999], 7),
        Mixture([0.7, 0.0, 0.2, 0.1], 7),
        changing([(0.9, 0.0), (0.1, 0.5), (0.0, 0.5)], 700),
    ],
)
def test_ordinals_of_a_source_run_without_gap_or_repeat_at_any_length(mixture):
    for length in (1, 37, BLOCK - 1, BLOCK, 3 * BLOCK + 11):
        sources, ordinals = mixture.place(0, length)
        used = np.bincount(sources, minlength=len(mixture.counts(0)))
        assert mixture.used(length).tolist() == used.tolist()
        for source in range(len(used)):
            assert ordinals[sources == source].tolist() == list(range(used[source]))


@settings(max_examples=50, deadline=None)
@given(first=st.integers(0, 6 * BLOCK), count=st.integers(1, 3 * BLOCK))
def test_a_seek_gives_what_a_walk_gives(first, count):
    whole = changing([(0.3, 0.6), (0.7, 0.4)], 5 * BLOCK).place(0, 9 * BLOCK)
    part = changing([(0.3, 0.6), (0.7, 0.4)], 5 * BLOCK).place(first, count)
    for all_of_it, some in zip(whole, part, strict=True):
        assert some.tolist() == all_of_it[first : first + count].tolist()


@settings(max_examples=60, deadline=None)
@given(pairs=PAIRS, span=st.integers(1, 10**12), position=st.integers(0, 10**12))
def test_the_position_of_a_sequence_is_found_from_its_source_and_ordinal(pairs, span, position):
    mixture = changing(pairs, span)
    (source,), (ordinal,) = mixture.place(position, 1)
    assert mixture.position(int(source), int(ordinal)) == position
    constant = Mixture([a for a, _ in pairs], 7)
    (source,), (ordinal,) = constant.place(position, 1)
    assert constant.position(int(source), int(ordinal)) == position


def test_a_sequence_that_never_comes_has_no_position():
    mixture = changing([(1.0, 0.0), (0.0, 1.0)], 2**10)
    assert mixture.position(0, 2**9 - 1) < 2**10
    with pytest.raises(ValueError, match="no sequence 512"):
        mixture.position(0, 2**9)
    with pytest.raises(ValueError, match="no sequence"):
        Mixture([1.0, 0.0], 7).position(1, 0)


def test_a_share_far_below_one_sequence_a_block_is_still_met():
    """1e-6 of 10^9 positions is 1,000 sequences."""
    mixture = Mixture([1e-6, 1 - 1e-6], 7)
    block = 10**9 // mixture.block
    assert mixture.counts(block)[0] == 10**3 * block * mixture.block // 10**9


def test_weights_are_the_decimals_that_they_are_written_as():
    """0.1 + 0.2 + 0.7 of 2,560 sequences; in binary 0.1 * 2560 / sum is not 256."""
    assert Mixture([0.1, 0.2, 0.7], 7).counts(80).tolist() == [256, 512, 1792]
    assert Mixture([1, 2, 7], 7).counts(80).tolist() == [256, 512, 1792]


def test_order_inside_a_block_is_shuffled_and_differs_from_block_to_block():
    blocks = 300
    sources, _ = Mixture([0.5, 0.5], 7).place(0, blocks * BLOCK)
    rows = sources.reshape(blocks, BLOCK)
    assert (rows.sum(axis=1) == BLOCK / 2).all()
    assert len({row.tobytes() for row in rows}) == blocks
    changes = (np.diff(rows, axis=1) != 0).sum()
    # Two neighbours without replacement differ with probability (n/2) / (n - 1).
    expected = blocks * (BLOCK / 2)
    assert abs(changes - expected) < 5 * np.sqrt(blocks * BLOCK) / 2


def test_every_source_is_at_every_place_of_a_block_alike():
    """Fisher and Yates without bias: a quarter of 4,000 blocks has the rare source in each part."""
    blocks = 4000
    sources, _ = Mixture([0.25, 0.75], 7).place(0, blocks * BLOCK)
    share = (sources.reshape(blocks, BLOCK) == 0).mean(axis=0)
    deviation = np.sqrt(0.25 * 0.75 / blocks)
    assert np.abs(share - 0.25).max() < 5 * deviation
    assert 0.7 < (share - 0.25).std() / deviation < 1.3


def test_a_stream_that_ends_inside_a_block_is_near_its_shares():
    """Half a block of 32 is within 5 deviations (hypergeometric: sqrt(2) each) of its share."""
    mixture = Mixture([0.5, 0.3, 0.2], 7)
    off = [
        np.abs(mixture.used(length) - np.array([0.5, 0.3, 0.2]) * length).max()
        for length in range(1, 2000)
    ]
    assert max(off) < 7 + 2
    assert np.mean(off) < 2


def test_many_sources_get_blocks_long_enough_for_all():
    mixture = Mixture([1.0] * 100, 7)
    assert mixture.block >= 100 * 100
    assert (mixture.counts(1) > 0).all()
    assert Mixture([1.0] * 4 + [0.0] * 100, 7).block == BLOCK


def test_another_seed_is_another_order():
    one, other = (Mixture([0.5, 0.5], seed).place(0, BLOCK)[0] for seed in (1, 2))
    assert not np.array_equal(one, other)


def test_stored_orders_do_not_change():
    """A changed value would reorder the data of every run that is under way."""
    assert Mixture([0.5, 0.3, 0.2], 7).place(1000, 12)[0].tolist() == PINNED


@pytest.mark.parametrize("weights", [[], [0.0], [-0.1, 1.1], [float("nan")], [float("inf"), 1.0]])
def test_weights_without_meaning_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        Mixture(weights, 7)
    if weights:
        with pytest.raises(ValueError, match="weights"):
            Mixture([1.0] * len(weights), 7, end=weights, span=5)


@pytest.mark.parametrize(("end", "span"), [([1.0], 5), ([0.5, 0.5], 0)])
def test_weights_that_change_need_an_end_for_each_and_a_span(end, span):
    with pytest.raises(ValueError, match="end"):
        Mixture([0.5, 0.5], 7, end=end, span=span)


PINNED = [1, 1, 0, 2, 0, 1, 0, 0, 0, 1, 0, 0]
