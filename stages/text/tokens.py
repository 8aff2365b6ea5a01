"""The words of a batch of texts as arrays: split once, looked up once, shared by every signal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from stages.text.punctuation import SYMBOLS
from stages.text.shingles import mix, powers_of

_BASE = 0x9E3779B97F4A7C15
"""Odd base of the polynomial string hash modulo 2^64."""


class _Numbers(dict[str, int]):
    """Numbers words in the order of their first appearance."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


@dataclass(frozen=True)
class Tokens:
    """The tokens of several texts, one after the other.

    Text d has the tokens from offsets[d] to offsets[d + 1]. For each token there are `ids` (equal
    exactly where the words are equal), `lengths` in characters, `symbols` (punctuation only),
    `alphabetic` (holds a letter), and `hashes` and `powers`, by which strings without spaces are
    compared: hash(ab) = hash(a) * power(b) + hash(b), modulo 2^64.
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.uint64]
    lengths: NDArray[np.int64]
    symbols: NDArray[np.bool_]
    alphabetic: NDArray[np.bool_]
    hashes: NDArray[np.uint64]
    powers: NDArray[np.uint64]

    @property
    def texts(self) -> int:
        """Number of texts."""
        return len(self.offsets) - 1

    def sums(self, values: NDArray[np.int64] | NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each text, the sum of `values` (one for each token) over its tokens."""
        total = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
        return total[self.offsets[1:]] - total[self.offsets[:-1]]


class Vocabulary:
    """Words seen so far with what is known of each. Forgets all of them beyond `limit` words.

    What it answers depends on the words alone, never on what it saw before.
    """

    def __init__(self, limit: int = 1 << 20) -> None:
        self._limit = limit
        self._clear()

    def _clear(self) -> None:
        self._numbers = _Numbers()
        self._lengths = np.zeros(0, dtype=np.int64)
        self._symbols = np.zeros(0, dtype=np.bool_)
        self._alphabetic = np.zeros(0, dtype=np.bool_)
        self._hashes = np.zeros(0, dtype=np.uint64)
        self._powers = np.zeros(0, dtype=np.uint64)

    def tokens(self, texts: Sequence[Sequence[str]]) -> Tokens:
        """The words of each text, looked up."""
        if len(self._numbers) > self._limit:
            self._clear()
        counts = [len(words) for words in texts]
        numbers = np.fromiter(
            (number for words in texts for number in map(self._numbers.__getitem__, words)),
            dtype=np.int64,
            count=sum(counts),
        )
        self._learn(list(islice(self._numbers, len(self._lengths), None)))
        return Tokens(
            offsets=np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
            ids=numbers.astype(np.uint64),
            lengths=self._lengths[numbers],
            symbols=self._symbols[numbers],
            alphabetic=self._alphabetic[numbers],
            hashes=self._hashes[numbers],
            powers=self._powers[numbers],
        )

    def _learn(self, words: list[str]) -> None:
        if not words:
            return
        lengths = _array(map(len, words), np.int64)
        powers = powers_of(_BASE, int(lengths.max()) + 1)
        self._lengths = np.append(self._lengths, lengths)
        self._symbols = np.append(self._symbols, _array(map(SYMBOLS.issuperset, words), np.bool_))
        self._alphabetic = np.append(self._alphabetic, _array(map(_has_letter, words), np.bool_))
        self._hashes = np.append(self._hashes, _string_hashes(words, lengths, powers))
        self._powers = np.append(self._powers, powers[lengths])


def _array(values: Iterable[int], dtype: type) -> NDArray:  # type: ignore[type-arg]
    return np.fromiter(values, dtype=dtype)


def _has_letter(word: str) -> bool:
    return word.isalpha() or any(map(str.isalpha, word))


def _string_hashes(
    words: list[str], lengths: NDArray[np.int64], powers: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Polynomial hash of each (non-empty) word: sum of mixed code points times falling powers."""
    codes = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    # NUL would add nothing to a sum, so code points count from one.
    mixed = mix(codes.astype(np.uint64) + np.uint64(1))
    ends = np.cumsum(lengths)
    exponents = np.repeat(ends, lengths) - 1 - np.arange(len(codes))
    return np.add.reduceat(mixed * powers[exponents], ends - lengths)
