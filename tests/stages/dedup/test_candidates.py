from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stages.dedup.candidates import candidate_pairs


def everybody(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    return np.arange(len(keys))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), max_size=12))
def test_pairs_are_those_that_share_a_key_with_the_first_band_they_share(
    rows: list[list[int]],
) -> None:
    keys = np.array(rows, dtype=np.uint64).reshape(-1, 3)
    found = candidate_pairs(keys, everybody(keys), max_bucket=100)
    expected = {
        (i, j): next(b for b in range(3) if rows[i][b] == rows[j][b])
        for i, j in combinations(range(len(rows)), 2)
        if any(rows[i][b] == rows[j][b] for b in range(3))
    }
    pairs = list(zip(found.left.tolist(), found.right.tolist(), strict=True))
    assert dict(zip(pairs, found.band.tolist(), strict=True)) == expected
    assert pairs == sorted(expected)


def test_in_a_huge_bucket_each_document_meets_the_first_ones_only() -> None:
    keys = np.zeros((10_000, 1), dtype=np.uint64)
    found = candidate_pairs(keys, everybody(keys), max_bucket=3)
    # Documents 1, 2 and 3 meet 1, 2 and 3 earlier ones, so do all after them with 3.
    assert len(found) == 1 + 2 + 3 * 9_997
    assert set(found.left.tolist()) == {0, 1, 2}
    assert set(found.right.tolist()) == set(range(1, 10_000))
    assert found.capped_buckets == 1


def test_only_members_are_paired_under_their_own_numbers() -> None:
    keys = np.zeros((6, 2), dtype=np.uint64)
    found = candidate_pairs(keys, np.array([1, 4, 5]), max_bucket=8)
    assert found.left.tolist() == [1, 1, 4]
    assert found.right.tolist() == [4, 5, 5]


def test_no_documents_give_no_pairs() -> None:
    keys = np.empty((0, 14), dtype=np.uint64)
    assert len(candidate_pairs(keys, everybody(keys), max_bucket=8)) == 0
