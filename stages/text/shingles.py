"""Word n-grams as 64-bit numbers: equal on every machine, in every process and every run.

A word's number is XXH3-64 of its UTF-8 bytes; an n-gram's number is a polynomial in those of its
words, so word order counts, mixed so that every bit depends on all of them. Distinct n-grams share
a number with a chance of about k²/2⁶⁵ among k of them: 1e-6 for six million, so no caller compares
the words behind two equal numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

_BASE = 0x9E3779B97F4A7C15
_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


@lru_cache(maxsize=1 << 17)
def _word_hash(word: str) -> int:
    return xxh3_64_intdigest(word.encode("utf-8", "surrogatepass"))


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit numbers that spreads every bit over all (shift, multiply, twice)."""
    mixed = values ^ (values >> _HALF)
    mixed *= _MULTIPLIER
    mixed ^= mixed >> _HALF
    mixed *= _MULTIPLIER
    mixed ^= mixed >> _HALF
    return mixed


def word_hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    """The 64-bit number of each word, in order."""
    return np.fromiter(map(_word_hash, words), dtype=np.uint64, count=len(words))


def ngram_hashes(hashes: NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
    """The number of each n-gram of consecutive words, given the words' numbers.

    There are length − n + 1 of them, none where that is not positive. The cost does not depend on
    `n`: the polynomial over words i to i + n is a difference of two running sums, divided by the
    base to the power of i. Raises ValueError for n < 1.
    """
    if n < 1:
        raise ValueError(f"an n-gram has at least one word, not {n}")
    count = max(len(hashes) - n + 1, 0)
    powers, inverse_powers = _powers(_capacity(len(hashes)))
    sums = np.zeros(len(hashes) + 1, dtype=np.uint64)
    np.cumsum(hashes * powers[: len(hashes)], out=sums[1:])
    return mix((sums[n:] - sums[:count]) * inverse_powers[:count])


def _capacity(length: int) -> int:
    """The least power of two that is at least `length`, and at least 1024."""
    return max(1 << (length - 1).bit_length() if length else 0, 1024)


@lru_cache(maxsize=32)
def _powers(length: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The first `length` powers of the base and of its inverse, modulo 2^64."""
    return powers_of(_BASE, length), powers_of(pow(_BASE, -1, 1 << 64), length)


def powers_of(base: int, length: int) -> NDArray[np.uint64]:
    """base^0 to base^(length − 1), modulo 2^64."""
    factors = np.full(length, base, dtype=np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)


def shingle_hashes(words: Sequence[str], n: int) -> NDArray[np.uint64]:
    """The set of word n-grams of a text, as sorted distinct 64-bit numbers.

    A text with fewer than `n` words has one shingle, all its words; a text without words has none.
    """
    return np.unique(ngram_hashes(word_hashes(words), min(n, len(words)) or 1))
