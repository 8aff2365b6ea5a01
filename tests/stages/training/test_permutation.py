"""The keyed permutation is a bijection at every size, and mixes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.training.permutation import LARGEST, Permutation, key_of, round_keys, shuffle_ordinals


@pytest.mark.parametrize("size", [*range(1, 70), 255, 256, 257, 1000, 4096, 4097, 65_537])
def test_every_element_is_hit_exactly_once(size):
    permutation = Permutation(size, key_of("test", size))
    shuffled = permutation(np.arange(size))
    assert np.array_equal(np.sort(shuffled), np.arange(size))
    assert np.array_equal(permutation.inverse(shuffled), np.arange(size))


SIZES = st.one_of(
    st.integers(1, 10**12),
    st.integers(1, LARGEST),
    st.integers(0, 61).flatmap(lambda bits: st.integers(2**bits, min(2**bits + 2, LARGEST))),
)
"""Any size, and those just above a power of two, where most of the domain lies outside."""


@settings(max_examples=200, deadline=None)
@given(size=SIZES, seed=st.integers(0, 2**32), epoch=st.none() | st.integers(0, 99), data=st.data())
def test_inverse_undoes_it_at_any_size(size, seed, epoch, data):
    """Both ways inside the range: so no two indices share an image, at any size."""
    indices = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=20)), dtype=np.int64)
    permutation = Permutation(size, key_of(seed), epoch)
    for there, back in (
        (permutation, permutation.inverse),
        (permutation.inverse, permutation),
    ):
        moved = there(indices)
        assert ((moved >= 0) & (moved < size)).all()
        assert np.array_equal(back(moved), indices)


@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 3000), epoch=st.integers(0, 2**40), seed=st.integers(0, 99))
def test_every_epoch_is_a_bijection_of_its_own(size, epoch, seed):
    indices = np.arange(size)
    found = Permutation(size, key_of(seed), epoch)(indices)
    assert np.array_equal(np.sort(found), indices)
    if size > 100:
        assert not np.array_equal(found, Permutation(size, key_of(seed), epoch + 1)(indices))


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 10**12), min_size=1, max_size=5),
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4 * 10**12)), max_size=50),
)
def test_rows_of_many_sources_and_epochs_are_shuffled_as_each_alone(sizes, rows):
    keys = [key_of("source", number) for number in range(len(sizes))]
    sources = np.array([source % len(sizes) for source, _ in rows], dtype=np.int64)
    ordinals = np.array([ordinal for _, ordinal in rows], dtype=np.int64)
    table = np.stack([round_keys(key) for key in keys])
    found = shuffle_ordinals(sources, ordinals, np.array(sizes, dtype=np.int64), table)
    for source, ordinal, sequence in zip(sources, ordinals.tolist(), found.tolist(), strict=True):
        epoch, within = divmod(ordinal, sizes[source])
        assert Permutation(sizes[source], keys[source], epoch)([within]).tolist() == [sequence]


def test_one_element_of_a_trillion_needs_no_other():
    permutation = Permutation(10**12, key_of("large"))
    alone = [int(permutation([i])[0]) for i in (0, 1, 10**12 - 1)]
    assert permutation([0, 1, 10**12 - 1]).tolist() == alone
    assert permutation.inverse(alone).tolist() == [0, 1, 10**12 - 1]


def test_keys_give_unrelated_orders():
    """Two random permutations of n agree in one place on average (Poisson, mean 1)."""
    orders = [Permutation(1000, key_of("seed", seed))(np.arange(1000)) for seed in range(40)]
    agreements = [
        int((a == b).sum()) for i, a in enumerate(orders) for b in orders[:i]
    ]  # 780 pairs: the mean's standard deviation is 0.036
    assert 0.8 < np.mean(agreements) < 1.2
    assert max(agreements) < 10


@pytest.mark.full
@pytest.mark.parametrize("size", [3, 7, 100, 1000])
def test_first_place_is_taken_by_any_element_equally_often(size):
    """Chi-square of the image of 0 over many keys; its mean is size-1, deviation sqrt(2 size)."""
    keys = 20 * size
    images = [int(Permutation(size, key_of("fair", k))([0])[0]) for k in range(keys)]
    counts = np.bincount(images, minlength=size)
    chi_square = float(((counts - 20) ** 2 / 20).sum())
    assert chi_square < size - 1 + 5 * np.sqrt(2 * size)


def cells(a, b, size, bins=16):
    """Chi-square of pairs over bins x bins, against all cells alike; bins² - 1 on average."""
    counts, _, _ = np.histogram2d(a, b, bins=bins, range=[[0, size], [0, size]])
    expected = len(a) / bins**2
    return float(((counts - expected) ** 2 / expected).sum())


BOUND = 255 + 5 * np.sqrt(2 * 255)
"""Five deviations above the mean of chi-square with 255 degrees of freedom."""


@pytest.mark.parametrize("size", [50_000, 2**16, 2**16 + 1, 99_991])
def test_neighbours_tell_nothing_of_each_other(size):
    """At any distance, so that neither a batch nor a rank reads related sequences."""
    order = Permutation(size, key_of("scatter"), 3)(np.arange(size))
    for lag in (1, 2, 3, 8, 64, 256, 1000, size // 2):
        assert cells(order[:-lag], order[lag:], size) < BOUND


@pytest.mark.parametrize("size", [50_000, 2**16, 99_991])
def test_epochs_and_sources_have_unrelated_orders(size):
    """No cell of (order in one, order in the other) is fuller; nor is their difference a shift.

    Two linear congruential shuffles fail both: they differ by little more than a shift.
    """
    indices = np.arange(size)
    orders = [Permutation(size, key_of("epoch", s), e)(indices) for s in "ab" for e in (0, 1, 2)]
    for number, one in enumerate(orders):
        for other in orders[:number]:
            assert cells(one, other, size) < BOUND
            shift = (one - other) % size
            assert np.bincount(shift, minlength=size).max() < 15  # Poisson of mean 1
            assert cells(shift[:-1], shift[1:], size) < BOUND


def test_a_linear_congruential_shuffle_would_be_seen():
    """The tests above fail for i -> (a i + c) mod n, the shuffle that Marin gave up."""
    size, indices = 50_000, np.arange(50_000)
    one, other = (48271 * indices + 11) % size, (48271 * indices + 20_011) % size
    assert cells(one[:-1], one[1:], size) > BOUND
    assert np.bincount((one - other) % size, minlength=size).max() == size


def test_neighbours_are_scattered():
    """Mean distance of two random places in range(n) is n/3."""
    n = 100_000
    shuffled = Permutation(n, key_of("scatter"))(np.arange(n))
    assert abs(np.abs(np.diff(shuffled)).mean() / (n / 3) - 1) < 0.02


def test_stored_values_do_not_change():
    """A changed value would reorder the data of every run that is under way."""
    assert Permutation(10, key_of("pinned"))(np.arange(10)).tolist() == PINNED_10
    assert Permutation(10**9, key_of("pinned"))([0, 1, 2]).tolist() == PINNED_BILLION


@pytest.mark.parametrize("size", [0, -1, LARGEST + 1])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ValueError, match="1 to 2\\^62"):
        Permutation(size, key_of("x"))


@pytest.mark.parametrize("index", [-1, 10])
def test_an_index_outside_the_range_is_refused(index):
    with pytest.raises(ValueError, match="outside"):
        Permutation(10, key_of("x"))([index])


def test_key_depends_on_every_part_and_their_borders():
    assert len({key_of("a", "b"), key_of("ab"), key_of("b", "a"), key_of("a", 1), key_of(1)}) == 5


PINNED_10 = [5, 4, 2, 6, 0, 3, 8, 7, 1, 9]
PINNED_BILLION = [578447284, 246463837, 78478559]
