"""MinHash signatures and their bands (Broder 1997; Leskovec, Rajaraman, Ullman, ch. 3).

The share of equal positions in two signatures estimates the Jaccard similarity of the two shingle
sets. Signatures are cut into bands of a few rows; two documents become a candidate pair when they
agree on a whole band.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1024
"""Shingles hashed at once: [hashes, block] of uint64 stays in a core's cache."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """Chance that a pair of this Jaccard similarity agrees on a band: 1 - (1 - s^rows)^bands."""
    return float(1.0 - (1.0 - similarity**rows) ** bands)


class MinHash:
    """A family of `count` hash functions drawn by `seed`.

    Each is Dietzfelbinger's multiply-add-shift (1996), strongly universal: the upper half of
    a*x + b mod 2^64, where x is the upper half of a shingle. The constants come from PCG64's raw
    stream, which NumPy keeps stable (NEP 19), so a seed names the same functions everywhere.
    """

    def __init__(self, count: int, seed: int) -> None:
        constants = np.random.PCG64(seed).random_raw(2 * count).astype(np.uint64)
        self._factors_K1 = constants[:count, None]
        self._addends_K1 = constants[count:, None]
        self._hashes_KS = np.empty((count, _BLOCK), dtype=np.uint64)

    def signature(self, shingles: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """The least value of each function over the shingles: uint32 [count].

        No shingles give the greatest value everywhere; such signatures mean nothing and must not be
        compared.
        """
        least_K = np.full(len(self._factors_K1), np.iinfo(np.uint64).max, dtype=np.uint64)
        short_S = shingles >> _HALF
        for start in range(0, len(short_S), _BLOCK):
            block_S = short_S[start : start + _BLOCK]
            hashes_KS = self._hashes_KS[:, : len(block_S)]
            np.multiply(self._factors_K1, block_S, out=hashes_KS)
            hashes_KS += self._addends_K1
            np.minimum(least_K, hashes_KS.min(axis=1), out=least_K)
        return (least_K >> _HALF).astype(np.uint32)


def band_keys(signatures: NDArray[np.uint32], bands: int, rows: int) -> NDArray[np.uint64]:
    """One 64-bit number for each band of each signature: [documents, bands].

    `signatures` is [documents, bands * rows]. Equal numbers of one band mean equal rows, but for a
    chance of 2^-64 a pair, which verification would catch.
    """
    grouped = signatures.reshape(len(signatures), bands, rows).astype(np.uint64)
    keys = np.full((len(signatures), bands), _MULTIPLIER, dtype=np.uint64)
    for row in range(rows):
        keys = (keys ^ grouped[:, :, row]) * _MULTIPLIER
        keys ^= keys >> _HALF
    return keys
