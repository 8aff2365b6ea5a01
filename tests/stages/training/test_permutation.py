"""The keyed permutation is a bijection at every size, and mixes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.training.permutation import LARGEST, Permutation, key_of


@pytest.mark.parametrize("size", [*range(1, 70), 255, 256, 257, 1000, 4096, 4097, 65_537])
def test_every_element_is_hit_exactly_once(size):
    permutation = Permutation(size, key_of("test", size))
    shuffled = permutation(np.arange(size))
    assert np.array_equal(np.sort(shuffled), np.arange(size))
    assert np.array_equal(permutation.inverse(shuffled), np.arange(size))


@settings(max_examples=60, deadline=None)
@given(size=st.integers(1, LARGEST), seed=st.integers(0, 2**32), data=st.data())
def test_inverse_undoes_it_at_any_size(size, seed, data):
    indices = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=20)), dtype=np.int64)
    permutation = Permutation(size, key_of(seed))
    shuffled = permutation(indices)
    assert ((shuffled >= 0) & (shuffled < size)).all()
    assert np.array_equal(permutation.inverse(shuffled), indices)


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


@pytest.mark.parametrize("size", [3, 7, 100, 1000])
def test_first_place_is_taken_by_any_element_equally_often(size):
    """Chi-square of the image of 0 over many keys; its mean is size-1, deviation sqrt(2 size)."""
    keys = 20 * size
    images = [int(Permutation(size, key_of("fair", k))([0])[0]) for k in range(keys)]
    counts = np.bincount(images, minlength=size)
    chi_square = float(((counts - 20) ** 2 / 20).sum())
    assert chi_square < size - 1 + 5 * np.sqrt(2 * size)


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
