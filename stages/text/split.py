"""Texts split into words once, as arrays."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from stages.text.batch import LETTER, PUNCTUATION, SENTENCE_END, SYMBOL, Batch, Tokens
from stages.text.characters import CharacterTable, Table, code_points
from stages.text.native import compiled
from stages.text.punctuation import SYMBOLS
from stages.text.sentences import SENTENCE_MARKS
from stages.text.spacy_english import spacy_english_tokens
from stages.text.splitters import Splitter
from stages.text.words import unicode_tokens

__all__ = ["Splitter", "batch_of"]

_SPLITTERS = {"unicode": unicode_tokens, "spacy_english": spacy_english_tokens}

_BASE, _MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_ONE, _HALF = np.uint64(1), np.uint64(32)


def batch_of(texts: Sequence[str], splitter: Splitter = "unicode") -> Batch:
    """The code points and tokens of `texts`, any strings, as many and as long as memory holds."""
    codes = code_points("".join(texts))
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    token_offsets, starts, ends = _SPLITTERS[splitter](codes, offsets)
    kinds, hashes, powers = _described(codes, _table.covering(codes), starts, ends)
    return Batch(texts, codes, offsets, Tokens(token_offsets, starts, ends, kinds, hashes, powers))


def _flags(chars: str) -> Iterator[tuple[int, Iterable[int]]]:
    def places(test: Callable[[str], bool]) -> Iterable[int]:
        return (place for place, char in enumerate(chars) if test(char))

    yield SYMBOL, places(SYMBOLS.__contains__)
    yield LETTER, places(str.isalpha)
    yield PUNCTUATION, places(lambda char: unicodedata.category(char)[0] == "P")
    yield SENTENCE_END, places(SENTENCE_MARKS.__contains__)


_table = CharacterTable(_flags)


@compiled
def _described(
    codes: NDArray[np.uint32],
    table: Table,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]:
    """Kinds, hashes and powers of the tokens, each of at least one character."""
    kinds = np.empty(len(starts), dtype=np.uint8)
    hashes = np.empty(len(starts), dtype=np.uint64)
    powers = np.empty(len(starts), dtype=np.uint64)
    for token in range(len(starts)):
        all_bits, any_bits, value, power = (
            table[codes[starts[token]]],
            np.uint16(0),
            np.uint64(0),
            _ONE,
        )
        for i in range(starts[token], ends[token]):
            bits = table[codes[i]]
            all_bits &= bits
            any_bits |= bits
            # NUL must count too, so code points count from one; mixed, since they are small.
            mixed = (np.uint64(codes[i]) + _ONE) * _MULTIPLIER
            value = value * _BASE + (mixed ^ (mixed >> _HALF))
            power *= _BASE
        if ends[token] - starts[token] > 1:
            all_bits &= ~np.uint16(SENTENCE_END)
        kinds[token] = (all_bits & (SYMBOL | PUNCTUATION | SENTENCE_END)) | (any_bits & LETTER)
        hashes[token] = value
        powers[token] = power
    return kinds, hashes, powers
