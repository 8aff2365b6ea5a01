"""A batch of texts as arrays: code points, lines and tokens, found once and shared by every signal.

All arrays are those of the whole batch, end to end, so that a compiled kernel walks them without a
Python object for each word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SYMBOL, LETTER, PUNCTUATION, SENTENCE_END = 1, 2, 4, 8
"""Bits of a token's `kinds`: made of `SYMBOLS` alone; holds a letter (`str.isalpha`); Unicode
punctuation throughout (categories P*, as spaCy's `is_punct`); a mark that ends a sentence (one of
the sentencizer's `punct_chars`)."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a batch, in order.

    Text d has the tokens [offsets[d], offsets[d + 1]). Token t holds the characters
    [starts[t], ends[t]) of `Batch.codes`. `hashes` and `powers` name its string:
    hash(ab) = hash(a) * power(b) + hash(b) modulo 2^64, equal strings have equal hashes, and
    different ones different hashes but for a chance of 2^-64 a pair.
    """

    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    powers: NDArray[np.uint64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Characters of each token."""
        return self.ends - self.starts


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts, their code points (text d: [offsets[d], offsets[d + 1]) of `codes`), their tokens."""

    texts: Sequence[str]
    codes: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    tokens: Tokens


def batches(sizes: Sequence[int], limit: int) -> Iterator[slice]:
    """Consecutive places of at most `limit` together, and at least one; so memory is bounded."""
    start = total = 0
    for place, size in enumerate(sizes):
        if place > start and total + size > limit:
            yield slice(start, place)
            start, total = place, 0
        total += size
    if start < len(sizes):
        yield slice(start, len(sizes))
