"""MinHash signatures and their bands (Broder 1997; Leskovec, Rajaraman, Ullman, ch. 3).

The share of equal positions in two signatures estimates the Jaccard similarity of the two shingle
sets. Signatures are cut into bands of a few rows; two documents become a candidate pair when they
agree on a whole band.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stages.dedup.presets import Settings
from stages.engine.kernels import kernel

_TOGETHER = 8
"""Shingles of one pass over the functions, so that a pass computes more than it loads."""

_BLOCK_BYTES = 1 << 18
"""Signatures held while they become keys: they stay in a core's cache."""

_MERSENNE = np.uint64((1 << 61) - 1)
_EXPONENT = np.uint64(61)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


class MinHash:
    """A family of `bands * rows` hash functions, drawn by `seed`.

    Ingot's own family: function k maps the upper half x of a shingle to a_k * x + b_k mod 2^32,
    where a_k (made odd) and b_k are the halves of the k-th number of PCG64's raw stream, which
    NumPy keeps stable (NEP 19). With an odd factor that is a permutation of the 32-bit numbers
    (Dietzfelbinger et al. 1997), the shape whose use for min-wise hashing Broder et al. (1998)
    and Bohman, Cooper and Frieze (2000) studied. It is not strongly universal: low bits of a value
    depend on low bits of x alone. Nor would that help, since pairwise independence does not bound
    the bias of a minimum (Pătraşcu and Thorup 2010). It is sound here because x is itself a mixed
    hash: a permutation of values that a random function gave to the shingles gives again what a
    random function would, so each position agrees with the chance J; whole values are compared, so
    low bits decide nothing; and positions depend on one another only where a_i is a simple multiple
    of a_j. What remains is the chance of 2^-32 that two shingles share x, and verification.

    datatrove's family, for `sha1` and `xxh64`: (a_k * x + b_k mod 2^64) mod 2^61 - 1 of the whole
    shingle, a and b drawn by RandomState(seed) (datatrove 0.10.1, `pipeline/dedup/minhash.py`).
    The product wraps before it is reduced; so do ours, since signatures are to be the same bits.
    """

    def __init__(self, settings: Settings) -> None:
        """Raises ValueError for a seed that the family cannot be drawn with."""
        self.bands, self.rows = settings.bands, settings.rows
        self._own = settings.hash == "ingot"
        draw: Callable[[int, int], tuple[NDArray, NDArray]]
        draw = _own_functions if self._own else _datatrove_functions
        drawn = draw(settings.bands * settings.rows, settings.seed)
        self._factors: NDArray = drawn[0]
        self._addends: NDArray = drawn[1]

    def signatures(self, hashes: NDArray[np.uint64], offsets: NDArray[np.int64]) -> NDArray:
        """The least value of each function over each document's shingles.

        Document d has hashes[offsets[d]:offsets[d + 1]], in any order, repeats included. Returns
        [documents, bands * rows], uint32 of Ingot's family and uint64 of datatrove's. A document
        without shingles has the greatest value everywhere, which means nothing.
        """
        least = np.full(
            (len(offsets) - 1, len(self._factors)),
            np.iinfo(self._factors.dtype).max,
            dtype=self._factors.dtype,
        )
        lower: Callable[..., None] = _lower_own if self._own else _lower_datatrove
        lower(hashes, offsets, self._factors, self._addends, least)
        return least

    def keys(self, hashes: NDArray[np.uint64], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """One 64-bit number for each band of each document: [documents, bands].

        Equal numbers of one band mean equal rows, but for a chance of 2^-64 a pair, which
        verification would catch. Documents without shingles have zeros, not to be compared.
        """
        keys = np.empty((len(offsets) - 1, self.bands), dtype=np.uint64)
        block = max(_BLOCK_BYTES // self._factors.nbytes, 1)
        for start in range(0, len(keys), block):
            some = offsets[start : start + block + 1]
            keys[start : start + block] = band_keys(self.signatures(hashes, some), self.bands)
        keys[offsets[1:] == offsets[:-1]] = 0
        return keys


def band_keys(signatures: NDArray, bands: int) -> NDArray[np.uint64]:
    """One 64-bit number for each band of each signature: [documents, bands].

    `signatures` is [documents, bands * rows], uint32 or uint64.
    """
    keys = np.empty((len(signatures), bands), dtype=np.uint64)
    _fold_bands(signatures, signatures.shape[1] // bands, keys)
    return keys


def shingle_sets(
    hashes: NDArray[np.uint64], offsets: NDArray[np.int64], most: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Each document's distinct shingles in ascending order, of more than `most` the least ones.

    Returns (sets, set_offsets, sizes): document d keeps sets[set_offsets[d]:set_offsets[d + 1]],
    and had sizes[d] distinct ones before the cut. The least k values of a hash are a sample of the
    set that two documents draw alike (bottom-k sketches, Beyer et al. 2007).
    """
    ordered = hashes.copy()
    # NumPy's sort is vectorised: faster, document by document, than any that numba compiles.
    for start, end in pairwise(offsets.tolist()):
        ordered[start:end].sort()
    set_offsets = np.zeros(len(offsets), dtype=np.int64)
    sizes = np.empty(len(offsets) - 1, dtype=np.int64)
    kept = _keep_distinct(ordered, offsets, most, set_offsets, sizes)
    # A copy where much was dropped, so that a batch of repeats does not stay in memory.
    sets = ordered[:kept] if 2 * kept > len(ordered) else ordered[:kept].copy()
    return sets, set_offsets, sizes


def _own_functions(count: int, seed: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    drawn = np.random.PCG64(seed).random_raw(count)
    factors = (drawn >> _HALF).astype(np.uint32) | np.uint32(1)
    return factors, drawn.astype(np.uint32)


def _datatrove_functions(count: int, seed: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    generator = np.random.RandomState(seed)
    factors = generator.randint(1, _MERSENNE, dtype=np.uint64, size=count)
    return factors, generator.randint(0, _MERSENNE, dtype=np.uint64, size=count)


@kernel
def _lower_own(
    hashes: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    factors: NDArray[np.uint32],
    addends: NDArray[np.uint32],
    least: NDArray[np.uint32],
) -> None:
    """Lower `least` [documents, functions] to the values of the documents' shingles."""
    values = np.empty(_TOGETHER, dtype=np.uint32)
    for document in range(len(offsets) - 1):
        last = offsets[document + 1] - 1
        for first in range(offsets[document], last + 1, _TOGETHER):
            for i in range(_TOGETHER):
                # The last one again, where fewer are left, changes no minimum.
                values[i] = np.uint32(hashes[min(first + i, last)] >> _HALF)
            for k in range(len(factors)):
                value = least[document, k]
                for i in range(_TOGETHER):
                    value = min(value, np.uint32(factors[k] * values[i] + addends[k]))
                least[document, k] = value


@kernel
def _lower_datatrove(
    hashes: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    factors: NDArray[np.uint64],
    addends: NDArray[np.uint64],
    least: NDArray[np.uint64],
) -> None:
    """As `_lower_own`, by datatrove's functions."""
    values = np.empty(_TOGETHER, dtype=np.uint64)
    for document in range(len(offsets) - 1):
        last = offsets[document + 1] - 1
        for first in range(offsets[document], last + 1, _TOGETHER):
            for i in range(_TOGETHER):
                values[i] = hashes[min(first + i, last)]
            for k in range(len(factors)):
                value = least[document, k]
                for i in range(_TOGETHER):
                    wide = factors[k] * values[i] + addends[k]
                    # 2^61 = 1 modulo 2^61 - 1; what is still too large by one modulus wraps to the
                    # greater of the two numbers when it is not.
                    folded = (wide & _MERSENNE) + (wide >> _EXPONENT)
                    value = min(value, min(folded, folded - _MERSENNE))
                least[document, k] = value


@kernel
def _fold_bands(signatures: NDArray, rows: int, keys: NDArray[np.uint64]) -> None:
    documents, bands = keys.shape
    for document in range(documents):
        for band in range(bands):
            key = _MULTIPLIER
            for k in range(band * rows, (band + 1) * rows):
                key = (key ^ np.uint64(signatures[document, k])) * _MULTIPLIER
                key ^= key >> _HALF
            keys[document, band] = key


@kernel
def _keep_distinct(
    ordered: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    most: int,
    set_offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> int:
    """Move the first `most` distinct values of each sorted run to the front; how many there are."""
    kept, before = 0, np.uint64(0)
    for document in range(len(sizes)):
        distinct = 0
        for i in range(offsets[document], offsets[document + 1]):
            value = ordered[i]
            if distinct == 0 or value != before:
                if distinct < most:
                    ordered[kept] = value
                    kept += 1
                distinct += 1
            before = value
        sizes[document] = distinct
        set_offsets[document + 1] = kept
    return kept
