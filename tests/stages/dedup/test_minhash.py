from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from datasketch import MinHash as Datasketch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stages.dedup.minhash import MinHash, band_keys, shingle_sets
from stages.dedup.presets import PRESETS, Hash, Settings, candidate_probability

Shingles = NDArray[np.uint64]
MERSENNE = 2**61 - 1
SHINGLES = st.integers(0, 2**64 - 1)


def family(bands: int = 14, rows: int = 8, seed: int = 1, hash: Hash = "ingot") -> MinHash:
    return MinHash(Settings("word", 5, "fold", hash, bands, rows, seed, most=8192))


def batch(*documents: Shingles | list[int]) -> tuple[Shingles, NDArray[np.int64]]:
    parts = [np.array(document, dtype=np.uint64) for document in documents]
    offsets = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)
    return np.concatenate([np.empty(0, np.uint64), *parts]), offsets


def pair(similarity: float, size: int, rng: np.random.Generator) -> tuple[Shingles, Shingles]:
    """Two sets of `size` random numbers whose Jaccard similarity is `similarity`, or just below."""
    shared = int(2 * size * similarity / (1 + similarity))
    drawn = rng.integers(0, 2**64, 2 * size - shared, dtype=np.uint64)
    return drawn[:size], drawn[size - shared :]


def jaccard(one: Shingles, two: Shingles) -> float:
    return len(np.intersect1d(one, two)) / len(np.union1d(one, two))


def own_values(shingle: int, count: int, seed: int) -> list[int]:
    """The values of Ingot's functions in plain arithmetic."""
    drawn = np.random.PCG64(seed).random_raw(count).tolist()
    return [(((n >> 32) | 1) * (shingle >> 32) + n) % 2**32 for n in drawn]


def datatrove_values(shingle: int, count: int, seed: int) -> list[int]:
    """Those of datatrove's, drawn as it draws them."""
    rng = np.random.RandomState(seed)
    factors = rng.randint(1, MERSENNE, dtype=np.uint64, size=(1, count))[0].tolist()
    addends = rng.randint(0, MERSENNE, dtype=np.uint64, size=(1, count))[0].tolist()
    return [(a * shingle + b) % 2**64 % MERSENNE for a, b in zip(factors, addends, strict=True)]


@settings(deadline=None)
@given(st.lists(st.lists(SHINGLES, max_size=20), max_size=5), st.integers(0, 2**32 - 1))
def test_signatures_are_the_least_values_in_plain_arithmetic(
    documents: list[list[int]], seed: int
) -> None:
    for hash, values in (("ingot", own_values), ("sha1", datatrove_values)):
        found = family(2, 3, seed, hash).signatures(*batch(*documents))
        greatest = 2**32 - 1 if hash == "ingot" else 2**64 - 1
        expected = [
            [min(of) for of in zip(*(values(x, 6, seed) for x in document), strict=True)]
            or [greatest] * 6
            for document in documents
        ]
        assert found.tolist() == expected
        assert found.dtype == (np.uint32 if hash == "ingot" else np.uint64)


def test_datatrove_s_functions_wrap_and_reduce_exactly_at_the_edges() -> None:
    # x such that a * x + b is m - 1, m, m + 1, 2m, 7m + 7, 8m + 7 = 2^64 - 1 (m the modulus).
    hashes = family(1, 4, 1, "xxh64")
    rng = np.random.RandomState(1)
    factor = next(
        int(a) for a in rng.randint(1, MERSENNE, dtype=np.uint64, size=(1, 4))[0] if a % 2
    )
    place = [int(a) for a in hashes._factors].index(factor)
    addend = int(hashes._addends[place])
    edges = [MERSENNE - 1, MERSENNE, MERSENNE + 1, 2 * MERSENNE, 7 * MERSENNE + 7, 2**64 - 1]
    shingles = [(edge - addend) * pow(factor, -1, 2**64) % 2**64 for edge in edges]
    found = hashes.signatures(*batch(*([shingle] for shingle in shingles)))[:, place]
    assert found.tolist() == [MERSENNE - 1, 0, 1, 0, 7, 7]


@pytest.mark.parametrize("sizes", [(5, 40), (100, 1000)])
def test_agreement_estimates_jaccard_with_the_binomial_error_and_as_well_as_datasketch(
    sizes: tuple[int, int],
) -> None:
    hashes, trials = 112, 1000
    rng = np.random.default_rng(sizes[0])
    pairs = [pair(rng.uniform(0.1, 0.95), rng.integers(*sizes), rng) for _ in range(trials)]
    exact = np.array([jaccard(*two) for two in pairs])
    some = (exact > 0) & (exact < 1)
    signatures = family(14, 8).signatures(*batch(*(side for two in pairs for side in two)))
    agreed = (signatures[::2] == signatures[1::2]).mean(axis=1)
    error = (agreed - exact)[some]
    deviation = np.sqrt(exact * (1 - exact) / hashes)[some]
    assert (agreed == exact)[~some].all()
    # n normalised errors: their mean strays by 1/√n, the mean of their squares by √(2/n).
    assert abs(np.mean(error / deviation)) < 4 / np.sqrt(some.sum())
    assert abs(np.mean((error / deviation) ** 2) - 1) < 4 * np.sqrt(2 / some.sum())
    theirs = np.array([datasketch(one).jaccard(datasketch(two)) for one, two in pairs])[some]
    root = np.sqrt(np.mean(error**2))
    assert root < 1.13 * np.sqrt(np.mean((theirs - exact[some]) ** 2))


def datasketch(shingles: Shingles) -> Datasketch:
    # Numbers of 32 bits as they are, as a hash of them would be: the functions are compared.
    sketch = Datasketch(num_perm=112, seed=3, hashfunc=lambda x: int(x) >> 32)
    sketch.update_batch(shingles)
    return sketch


@pytest.mark.parametrize("hash", ["ingot", "sha1"])
@pytest.mark.parametrize("similarity", [0.6, 0.75, 0.85])
def test_pairs_share_a_band_as_often_as_the_curve_says(similarity: float, hash: Hash) -> None:
    trials, rng = 2000, np.random.default_rng(7)
    pairs = [pair(similarity, 200, rng) for _ in range(trials)]
    keys = family(14, 8, 1, hash).keys(*batch(*(side for two in pairs for side in two)))
    met = (keys[::2] == keys[1::2]).any(axis=1).mean()
    exact = jaccard(*pairs[0])
    expected = candidate_probability(exact, 14, 8)
    assert met == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / trials))


def test_no_factor_of_a_preset_is_a_simple_multiple_of_another() -> None:
    # With p * a_i = ± q * a_j for small p and q, the two minima would be found together too often.
    small = np.array([(p, q) for p in range(1, 9) for q in range(-8, 9) if q], dtype=np.int64)
    for name, preset in PRESETS.items():
        if preset.hash == "ingot" and preset.hashes <= 300:
            minhash = family(preset.bands, preset.rows, preset.seed)
            first, second = np.array(list(combinations(minhash._factors.tolist(), 2))).T
            for p, q in small.tolist():
                assert ((p * first - q * second) % 2**32 != 0).all(), name


def test_signature_depends_on_the_set_and_the_seed_alone() -> None:
    shingles = pair(0.5, 5000, np.random.default_rng(7))[0]
    signature = family(seed=1).signatures(*batch(shingles))
    repeated = np.concatenate([shingles[::-1], shingles[:100]])
    assert (family(seed=1).signatures(*batch(repeated)) == signature).all()
    assert (family(seed=2).signatures(*batch(shingles)) != signature).all()
    halves = family(seed=1).signatures(*batch(*np.array_split(shingles, 2)))
    assert (halves.min(axis=0) == signature).all()


def test_nine_thousand_hashes_of_refinedweb() -> None:
    one, two = pair(0.8, 300, np.random.default_rng(5))
    minhash = family(450, 20)
    signatures, keys = minhash.signatures(*batch(one, two)), minhash.keys(*batch(one, two))
    assert signatures.shape == (2, 9000)
    assert keys.shape == (2, 450)
    exact = jaccard(one, two)
    error = 4 * np.sqrt(exact * (1 - exact) / 9000)
    assert (signatures[0] == signatures[1]).mean() == pytest.approx(exact, abs=error)
    bands = (signatures[0] == signatures[1]).reshape(450, 20).all(axis=1)
    assert ((keys[0] == keys[1]) == bands).all()
    assert bands.any()


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_band_keys_differ_where_any_row_differs(dtype: type) -> None:
    signatures = np.arange(24, dtype=dtype).reshape(1, 24).repeat(25, axis=0)
    for changed in range(24):
        # The highest bit too: none may be lost.
        signatures[changed + 1, changed] ^= np.iinfo(dtype).max // 2 + 1
    keys = band_keys(signatures, bands=6)
    for changed in range(24):
        assert (keys[0] != keys[changed + 1]).tolist() == [b == changed // 4 for b in range(6)]


@pytest.mark.parametrize("hash", ["ingot", "xxh64"])
def test_keys_are_those_of_the_signatures_in_any_batch(hash: Hash) -> None:
    rng = np.random.default_rng(3)
    documents = [rng.integers(0, 2**64, size, dtype=np.uint64) for size in rng.integers(0, 9, 1500)]
    minhash = family(seed=3, hash=hash)
    keys = minhash.keys(*batch(*documents))
    expected = band_keys(minhash.signatures(*batch(*documents)), 14)
    empty = np.array([len(document) == 0 for document in documents])
    assert empty.any()
    assert (keys[~empty] == expected[~empty]).all()
    assert (keys[empty] == 0).all()
    # Offsets that do not begin at 0: a part of a batch.
    hashes, offsets = batch(*documents)
    assert (minhash.keys(hashes, offsets[700:]) == keys[700:]).all()


def test_no_documents_give_no_rows() -> None:
    assert family().signatures(*batch()).shape == (0, 112)
    assert family().keys(*batch()).shape == (0, 14)
    sets, offsets, sizes = shingle_sets(*batch(), 64)
    assert (len(sets), offsets.tolist(), len(sizes)) == (0, [0], 0)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 30) | SHINGLES, max_size=40), max_size=6), st.integers(1, 12)
)
def test_sets_are_the_least_distinct_shingles(documents: list[list[int]], most: int) -> None:
    hashes, offsets = batch(*documents)
    given = hashes.copy()
    sets, set_offsets, sizes = shingle_sets(hashes, offsets, most)
    assert (hashes == given).all()
    assert sizes.tolist() == [len(set(document)) for document in documents]
    found = [part.tolist() for part in np.split(sets, set_offsets[1:-1])] if documents else []
    assert found == [sorted(set(document))[:most] for document in documents]
    assert len(sets) == set_offsets[-1]


def test_a_document_of_one_shingle_repeated_is_a_set_of_one() -> None:
    sets, offsets, sizes = shingle_sets(*batch([7] * 1_000_000, [5, 3]), 64)
    assert (sets.tolist(), offsets.tolist(), sizes.tolist()) == ([7, 3, 5], [0, 1, 3], [1, 2])
    assert sets.base is None or sets.base.nbytes < 1000
