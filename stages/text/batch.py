"""A batch of texts as arrays: code points, tokens and sentences, computed once for every signal.

All arrays are those of the whole batch, end to end, so that a kernel walks them without a Python
object for each word. Sentences are those of spaCy's sentencizer, by their marks, without a model:
after a mark, punctuation still belongs to the sentence; the next token that is none, or white space
other than a single space, begins a new one. White space alone is no sentence. Counted over tokens
of the splitter `spacy_english`, it is the number of sentences that datatrove's filters see
(`split_into_sentences`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.text.characters import SYMBOLS, TERMINAL_PUNCTUATION, CharacterTable, Table, code_points
from stages.text.spacy_english import find_spacy_tokens
from stages.text.splitters import Splitter
from stages.text.words import Spans, find_unicode_tokens

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


def sum_before(values: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """[offsets] the sum of all `values` before each offset; its differences are sums by text."""
    if values.dtype == np.bool_:
        return np.searchsorted(np.flatnonzero(values), offsets)
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64)))[offsets]


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


SENTENCE_MARKS = TERMINAL_PUNCTUATION - frozenset(
    "\u061d\u061e\u0837\u0839\u083d\u083e\u17d4\u17d5\u17d6\u17d9\u17da\u1b7d\u1b7e\u2e53\u2e54"
    "\U00010f55\U00010f56\U00010f57\U00010f58\U00010f59\U00010f86\U00010f87\U00010f88\U00010f89"
    "\U00011944\U00011946\U00011ef7\U00011ef8\U00011f43\U00011f44\U00016e98"
)
"""The sentencizer's `default_punct_chars`: it knows fewer marks than today's Unicode."""

_SPACE = ord(" ")


def count_sentences(batch: Batch) -> NDArray[np.int64]:
    """[texts] sentences of each text."""
    return count_line_sentences(batch, batch.offsets[:-1], batch.offsets[1:])


def count_line_sentences(
    batch: Batch, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """[lines] sentences of each line on its own, as if it were a text.

    Line i has the code points [starts[i], ends[i]) of the batch. Lines are in order, do not
    overlap, and cut no token.
    """
    tokens = batch.tokens
    first = np.searchsorted(tokens.starts, starts)
    last = np.searchsorted(tokens.starts, ends)
    return _count_sentences(batch.codes, tokens.starts, tokens.ends, tokens.kinds, first, last)


@kernel
def _count_sentences(
    codes: NDArray[np.uint32],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> NDArray[np.int64]:
    counts = np.zeros(len(first), dtype=np.int64)
    for line in range(len(first)):
        ended = False
        for token in range(first[line], last[line]):
            kind = kinds[token]
            if token == first[line]:
                counts[line] = 1
            elif ended:
                gap = starts[token] - ends[token - 1]
                space = gap > 1 or (gap == 1 and codes[ends[token - 1]] != _SPACE)
                if space or not kind & (PUNCTUATION | SENTENCE_END):
                    counts[line] += 1
                    ended = False
            if kind & SENTENCE_END:
                ended = True
    return counts


_SPLITTERS = {"unicode": find_unicode_tokens, "spacy_english": find_spacy_tokens}

_BASE, _MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_ONE, _HALF = np.uint64(1), np.uint64(32)


def split_texts(texts: Sequence[str], splitter: Splitter = "unicode") -> Batch:
    """The code points and tokens of `texts`, any strings, as many and as long as memory holds."""
    codes, offsets = _join(texts)
    return _describe(texts, codes, offsets, _SPLITTERS[splitter](codes, offsets))


def place_tokens(texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> Batch:
    """The texts with the tokens of another splitter: `spans` of each text, [start, end) in it.

    Tokens come in the order of the spans, and each holds at least one character; they may overlap.
    """
    codes, offsets = _join(texts)
    counts = list(map(len, spans))
    places = np.array([span for own in spans for span in own], dtype=np.int64).reshape(-1, 2)
    places += np.repeat(offsets[:-1], counts)[:, None]
    token_offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    starts, ends = np.ascontiguousarray(places.T)
    return _describe(texts, codes, offsets, (token_offsets, starts, ends))


def _join(texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return code_points("".join(texts)), offsets


def _describe(
    texts: Sequence[str], codes: NDArray[np.uint32], offsets: NDArray[np.int64], spans: Spans
) -> Batch:
    token_offsets, starts, ends = spans
    kinds, hashes, powers = _describe_tokens(codes, _token_table.covering(codes), starts, ends)
    return Batch(texts, codes, offsets, Tokens(token_offsets, starts, ends, kinds, hashes, powers))


def _token_flags(chars: str) -> Iterator[tuple[int, Iterable[int]]]:
    def places(test: Callable[[str], bool]) -> Iterable[int]:
        return (place for place, char in enumerate(chars) if test(char))

    yield SYMBOL, places(SYMBOLS.__contains__)
    yield LETTER, places(str.isalpha)
    yield PUNCTUATION, places(lambda char: unicodedata.category(char)[0] == "P")
    yield SENTENCE_END, places(SENTENCE_MARKS.__contains__)


_token_table = CharacterTable(_token_flags)


@kernel
def _describe_tokens(
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
