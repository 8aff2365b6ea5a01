from __future__ import annotations

import numpy as np
import pytest
from datasketch import MinHash as Datasketch
from numpy.typing import NDArray

from stages.dedup.minhash import MinHash, band_keys, candidate_probability


@pytest.mark.parametrize(
    ("bands", "rows", "expected"),
    [
        # 1 - (1 - s^r)^b at s = .5, .7, .75, .8, .9, to three places: FineWeb, RefinedWeb, NeMo
        # Curator, marin and RedPajama-V2 at 0.8.
        (14, 8, (0.053, 0.565, 0.772, 0.924, 1.000)),
        (450, 20, (0.000, 0.302, 0.761, 0.995, 1.000)),
        (20, 13, (0.002, 0.177, 0.382, 0.677, 0.997)),
        (26, 11, (0.013, 0.405, 0.674, 0.903, 1.000)),
        (9, 13, (0.001, 0.084, 0.195, 0.399, 0.929)),
    ],
)
def test_candidate_probability_is_the_s_curve_of_published_settings(
    bands: int, rows: int, expected: tuple[float, ...]
) -> None:
    found = [candidate_probability(s, bands, rows) for s in (0.5, 0.7, 0.75, 0.8, 0.9)]
    assert found == pytest.approx(expected, abs=0.0006)


def pair(similarity: float, size: int, seed: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Two sets of `size` random numbers whose Jaccard similarity is `similarity`, or just below."""
    shared = int(2 * size * similarity / (1 + similarity))
    drawn = np.random.default_rng(seed).integers(0, 2**64, 2 * size - shared, dtype=np.uint64)
    return drawn[:size], drawn[size - shared :]


@pytest.mark.parametrize("similarity", [0.2, 0.5, 0.8])
def test_estimates_are_as_close_as_datasketch_s(similarity: float) -> None:
    hashes, trials, size = 112, 60, 300
    own = MinHash(hashes, seed=1)
    own_error, peer_error = [], []
    for trial in range(trials):
        one, two = pair(similarity, size, trial)
        exact = len(np.intersect1d(one, two)) / len(np.union1d(one, two))
        own_error.append((own.signature(one) == own.signature(two)).mean() - exact)
        peers = []
        for values in (one, two):
            peer = Datasketch(num_perm=hashes, seed=trial)
            peer.update_batch([value.tobytes() for value in values])
            peers.append(peer)
        peer_error.append(peers[0].jaccard(peers[1]) - exact)
    deviation = np.sqrt(similarity * (1 - similarity) / hashes)
    # An unbiased estimate strays by the binomial deviation, a mean of 60 by a √60th of it.
    assert abs(np.mean(own_error)) < 4 * deviation / np.sqrt(trials)
    assert np.std(own_error) < 1.35 * deviation
    assert np.std(own_error) < 1.35 * np.std(peer_error)


def test_pairs_share_a_band_as_often_as_the_curve_says() -> None:
    trials, similarity = 600, 0.75
    minhash = MinHash(14 * 8, seed=1)
    hits = 0
    for trial in range(trials):
        signatures = np.array([minhash.signature(s) for s in pair(similarity, 200, trial)])
        keys = band_keys(signatures, 14, 8)
        hits += bool((keys[0] == keys[1]).any())
    expected = candidate_probability(similarity, 14, 8)
    assert hits / trials == pytest.approx(expected, abs=4 * np.sqrt(expected * 0.23 / trials))


def test_signature_is_the_least_hash_in_plain_arithmetic() -> None:
    shingles = [0, 1 << 32, 2**64 - 1, 0x0123456789ABCDEF, 0xFEDCBA9876543210]
    constants = [int(c) for c in np.random.PCG64(5).random_raw(6)]
    expected = [
        min((a * (x >> 32) + b) % 2**64 for x in shingles) >> 32
        for a, b in zip(constants[:3], constants[3:], strict=True)
    ]
    assert MinHash(3, seed=5).signature(np.array(shingles, np.uint64)).tolist() == expected


def test_signature_depends_on_the_set_and_the_seed_alone() -> None:
    shingles = pair(0.5, 5000, 7)[0]
    signature = MinHash(112, seed=1).signature(shingles)
    assert (MinHash(112, seed=1).signature(shingles[::-1]) == signature).all()
    assert (MinHash(112, seed=2).signature(shingles) != signature).all()
    halves = [MinHash(112, seed=1).signature(part) for part in np.array_split(shingles, 2)]
    assert (np.minimum(*halves) == signature).all()


def test_band_keys_differ_where_any_row_differs() -> None:
    signatures = np.arange(24, dtype=np.uint32).reshape(1, 24).repeat(25, axis=0)
    for changed in range(24):
        signatures[changed + 1, changed] += 1
    keys = band_keys(signatures, bands=6, rows=4)
    for changed in range(24):
        assert (keys[0] != keys[changed + 1]).tolist() == [b == changed // 4 for b in range(6)]
