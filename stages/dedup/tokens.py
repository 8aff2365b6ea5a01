"""From the bytes of texts to the 64-bit numbers of their shingles, compiled.

A token is a word or a character of a text as it is read. A word's number depends on its bytes
alone, so it is the same wherever the word was met. A shingle's number is a polynomial in those of
its tokens, so that their order counts, mixed until every bit depends on all of them. Distinct
shingles share a number with a chance of about k²/2⁶⁵ among k of them.

All reads go eight or sixty-four bytes at a time, up to `PADDING` bytes past the end of a text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.dedup.folding import decode, fold_bytes
from stages.dedup.lanes import (
    load_eight,
    lowest_bit,
    multiply_halves,
    unspaced_bits,
    word_bits,
)
from stages.text.native import compiled

FOLDED, SPACED, RAW = range(3)
"""How bytes are read. Folded: ASCII letters (small for capital), digits and all beyond ASCII make
words. Spaced: all but the space does. Raw: every character counts; there are no words."""

DONE, NO_ROOM = -1, -2

BASE = 0xD1342543DE82EF95
"""Of a shingle's polynomial: a multiplier of Steele and Vigna (2021), odd and well spread."""
_BASE = np.uint64(BASE)
_LENGTH, _MIDDLE, _LAST, _OTHER = (
    np.uint64(secret)
    for secret in (0x9E3779B97F4A7C15, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3)
)
"""Odd random numbers: the golden ratio and three of wyhash's secrets."""

_SMALL, _HIGH = np.uint64(0x2020202020202020), np.uint64(0x8080808080808080)
_ZERO, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_SPACE = ord(" ")


class Form(NamedTuple):
    """What shingles are made of; `power` is BASE to the `ngram`, modulo 2^64."""

    reading: int
    characters: bool
    ngram: int
    power: np.uint64


class Fold(NamedTuple):
    """`entries` and `pool` of a FoldTable, and room for the fold of the longest text."""

    entries: NDArray[np.uint64]
    pool: NDArray[np.uint8]
    folded: NDArray[np.uint8]


class Room(NamedTuple):
    """Where results go: text d has the shingles [ends[d], ends[d + 1]) of `hashes`."""

    hashes: NDArray[np.uint64]
    ends: NDArray[np.int64]
    digests: NDArray[np.uint64]
    """[texts, 2] 128-bit hash of each text's tokens, in order."""


@compiled
def shingle_texts(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    first: int,
    last: int,
    form: Form,
    fold: Fold,
    room: Room,
) -> tuple[int, int]:
    """Shingle the UTF-8 texts `first` to `last`; text d is data[offsets[d] : offsets[d + 1]].

    Returns the text at which it stopped, and why: DONE; NO_ROOM in `hashes`; or a code point that
    the table must learn. Called again with that text as first, it goes on.
    """
    found = room.ends[first]
    for text in range(first, last):
        start, end = offsets[text], offsets[text + 1]
        source = data
        if form.reading == FOLDED and not is_ascii(data, start, end):
            end = fold_bytes(data, start, end, fold.entries, fold.pool, fold.folded)
            if end < 0:
                return text, -1 - end
            source, start = fold.folded, 0
        most = end - start if form.characters else (end - start + 1) // 2
        if found + most > len(room.hashes):
            return text, NO_ROOM
        if form.characters:
            count = _hash_characters(source, start, end, form.reading, room.hashes, found)
        else:
            count = _hash_words(source, start, end, form.reading, room.hashes, found)
        tokens = room.hashes[found : found + count]
        room.digests[text, 0], room.digests[text, 1] = _digest(tokens)
        found += _shingle(tokens, form.ngram, form.power)
        room.ends[text + 1] = found
    return last, DONE


@compiled
def is_ascii(data: NDArray[np.uint8], start: int, end: int) -> bool:
    """Whether no byte of [start, end) is above 0x7F."""
    seen = _ZERO
    for i in range(start, end - 7, 8):
        seen |= load_eight(data, i)
    left = (end - start) & 7
    if left:
        seen |= load_eight(data, end - left) & _lowest(left)
    return not seen & _HIGH


@compiled
def _hash_words(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    reading: int,
    hashes: NDArray[np.uint64],
    found: int,
) -> int:
    """Write the number of each word of [start, end) from hashes[found] on; returns how many.

    Sixty-four bytes are told apart at once; then the bits at which words begin and end are walked.
    """
    first = found
    case = _SMALL if reading == FOLDED else _ZERO
    word, inside = start, _ZERO
    for base in range(start, end, 64):
        bits = word_bits(data, base) if reading == FOLDED else unspaced_bits(data, base)
        if end - base < 64:
            bits &= (_ONE << np.uint64(end - base)) - _ONE
        before = bits << _ONE | inside
        starts, stops = bits & ~before, before & ~bits
        if not inside:
            word = base + lowest_bit(starts)
            starts &= starts - _ONE
        while stops:
            hashes[found] = hash_word(data, word, base + lowest_bit(stops), case)
            found += 1
            stops &= stops - _ONE
            word = base + lowest_bit(starts)
            starts &= starts - _ONE
        inside = bits >> np.uint64(63)
    if inside:
        hashes[found] = hash_word(data, word, end, case)
        found += 1
    return found - first


@compiled
def hash_word(data: NDArray[np.uint8], start: int, end: int, case: np.uint64) -> np.uint64:
    """The number of the word data[start:end], of at least one byte.

    Its length and its bytes, eight at a time, go through the folded 128-bit product of wyhash. The
    bit 0x20 is set in ASCII bytes if `case` has it in every byte: capitals become small letters.
    """
    value = np.uint64(end - start) * _LENGTH
    while end - start > 8:
        value = multiply_halves(value ^ _lower(load_eight(data, start), case), _MIDDLE)
        start += 8
    eight = _lower(load_eight(data, start), case) & _lowest(end - start)
    return multiply_halves(value ^ eight, _LAST)


@compiled
def _lower(eight: np.uint64, case: np.uint64) -> np.uint64:
    """`eight` with the bits of `case` set in its ASCII bytes."""
    return eight | case & ~((eight & _HIGH) >> np.uint64(2))


@compiled
def _lowest(count: int) -> np.uint64:
    """The lowest `count` bytes of a word set, 1 to 8."""
    return _ALL >> np.uint64(64 - 8 * count)


@compiled
def _hash_characters(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    reading: int,
    hashes: NDArray[np.uint64],
    found: int,
) -> int:
    """Write the number of each character of [start, end) from hashes[found] on; returns how many.

    Unless read raw: of the words, with one space between two of them.
    """
    first, i, gap = found, start, False
    while i < end:
        code, size = decode(load_eight(data, i), end - i)
        i += size
        if reading == FOLDED and code < 0x80:
            parts = not (0x61 <= code | 0x20 <= 0x7A or 0x30 <= code <= 0x39)
            code |= 0x20
        else:
            parts = reading == SPACED and code == _SPACE
        if parts:
            gap = found > first
            continue
        if gap:
            hashes[found] = _hash_character(_SPACE)
            found, gap = found + 1, False
        hashes[found] = _hash_character(code)
        found += 1
    return found - first


@compiled
def _hash_character(code: int | np.int64) -> np.uint64:
    return multiply_halves(np.uint64(code) ^ _LENGTH, _LAST)


@compiled
def _digest(tokens: NDArray[np.uint64]) -> tuple[np.uint64, np.uint64]:
    """128 bits of the sequence of `tokens`: two sums of mixed numbers of token and place.

    Not a polynomial: a sum needs no token before the next, so processors add many at once.
    """
    left, right = _ZERO, _ZERO
    for i in range(len(tokens)):
        placed = tokens[i] + np.uint64(i) * _LENGTH
        left += mix(placed)
        right += mix(placed ^ _OTHER)
    length = np.uint64(len(tokens)) * _MIDDLE
    return mix(left + length), mix(right ^ length)


@compiled
def _shingle(tokens: NDArray[np.uint64], ngram: int, power: np.uint64) -> int:
    """Put the numbers of the shingles in the place of the tokens'; returns how many.

    Fewer than `ngram` tokens make one shingle. A token leaves the polynomial as the next one comes.
    """
    if len(tokens) == 0:
        return 0
    width = min(ngram, len(tokens))
    shingles, coming = tokens[: len(tokens) - width + 1], tokens[width:]
    polynomial = _ZERO
    for i in range(width):
        polynomial = polynomial * _BASE + tokens[i]
    for i in range(len(coming)):
        gone, shingles[i] = shingles[i], polynomial
        polynomial = polynomial * _BASE + (coming[i] - gone * power)
    shingles[-1] = polynomial
    for i in range(len(shingles)):
        shingles[i] = mix(shingles[i])
    return len(shingles)


@compiled
def mix(value: np.uint64) -> np.uint64:
    """A bijection of 64-bit numbers that spreads every bit over all: SplitMix64's last step.

    Steele, Lea and Flood (2014), with the constants of Stafford's variant 13.
    """
    value = (value ^ value >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ value >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return value ^ value >> np.uint64(31)
