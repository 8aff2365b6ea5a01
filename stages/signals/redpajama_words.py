"""The words of RedPajama-V2's signals, raw and normalised, found and counted by compiled code.

Normalised words are never written down: a word is its hash, its length and what it matched. Marks
that stand together come in canonical order in NFD, that is sorted by combining class; so they enter
the hash as a sum over the classes of the marks in each, which ignores the order of classes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.signals.counting import (
    CASED,
    CODE_BITS,
    CODE_MASK,
    IGNORABLE,
    NOT_UPPER,
    NUMERIC,
    SPACE,
    UPPER,
    WORD,
    classify,
    extend_hash,
    find_first,
    find_slot,
    make_table,
    mix,
    most_entries,
    slot_mask,
)
from stages.text.batch import Batch

_FEED, _STOP, _MARK, _QUESTION, _HASH, _ELLIPSIS, _OPEN, _CLOSE, _SIGMA = map(ord, "\n.!?#…{}Σ")
_LOREM, _IPSUM = (int.from_bytes(word, "big") for word in (b"lorem", b"ipsum"))
_FIVE = (1 << 40) - 1
_FINAL_SIGMA, _SMALL_SIGMA = 0x3C2, 0x3C3


class NormalisedWords(NamedTuple):
    """Words of each text, by their hashes and lengths in characters after NFD.

    Of each text `matches` counts the words that equal a given one, `lorem` the places of "lorem
    ipsum"; `numeric` is the sum over its lines of their share of numeric characters.
    """

    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    lengths: NDArray[np.int64]
    matches: NDArray[np.int64]
    lorem: NDArray[np.int64]
    numeric: NDArray[np.float64]


def hash_word(word: str) -> np.uint64:
    """The hash of an ASCII word, raw or normalised."""
    return np.uint64(_hash_codes(np.array([ord(char) for char in word], dtype=np.uint32)))


def count_raw_words(batch: Batch, stops: NDArray[np.uint64]) -> NDArray[np.int64]:
    """[texts, 7] raw words, those with a letter of ASCII, those in capitals, those in the hash set
    `stops`; symbols, braces and sentences."""
    counts = np.zeros((len(batch.texts), 7), dtype=np.int64)
    _count_raw_words(batch.codes, batch.offsets, classify(batch).classes, stops, counts)
    return counts


def find_normalised_words(batch: Batch, match: np.uint64) -> NormalisedWords:
    """The normalised words of each text; `match` is the hash of the word to count."""
    codes, offsets = batch.codes, batch.offsets
    texts, most_words = len(offsets) - 1, len(codes) // 2 + len(offsets)
    word_offsets = np.zeros(len(offsets), dtype=np.int64)
    hashes = np.empty(most_words, dtype=np.uint64)
    lengths = np.empty(most_words, dtype=np.int64)
    counts = np.zeros((texts, 2), dtype=np.int64)
    numeric = np.zeros(texts, dtype=np.float64)
    _normalise(
        codes, offsets, *classify(batch), match, word_offsets, hashes, lengths, counts, numeric
    )
    words = int(word_offsets[-1])
    matches, lorem = counts.T
    return NormalisedWords(word_offsets, hashes[:words], lengths[:words], matches, lorem, numeric)


def count_vocabulary(
    offsets: NDArray[np.int64], hashes: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Different words of each text, and the entropy of their distribution in nats."""
    unique = np.zeros(len(offsets) - 1, dtype=np.int64)
    entropy = np.zeros(len(offsets) - 1, dtype=np.float64)
    _count_vocabulary(offsets, hashes, unique, entropy)
    return unique, entropy


@kernel
def _hash_codes(codes: Any) -> Any:
    value = np.uint64(0)
    for code in codes:
        value = extend_hash(value, code)
    return mix(value)


@kernel
def _count_raw_words(codes: Any, offsets: Any, classes: Any, stops: Any, counts: Any) -> None:
    for text in range(offsets.size - 1):
        words = alphabetic = capitals = stop_words = symbols = braces = sentences = 0
        end = offsets[text + 1]
        stop_run = 0
        before = SPACE
        union = 0
        lettered = spoken = False
        value = np.uint64(0)
        for place in range(offsets[text], end + 1):
            # The end of the text is a space, so that it ends the last word.
            code = codes[place] if place < end else _FEED
            bits = classes[code] if place < end else SPACE
            kind = bits & (WORD | SPACE)
            if kind != before:
                if before != SPACE:
                    words += 1
                    alphabetic += lettered
                    capitals += union & (UPPER | NOT_UPPER) == UPPER
                    stop_words += find_slot(stops, mix(value)) >= 0
                before = kind
                union = 0
                lettered = False
                value = np.uint64(0)
            union |= bits
            lettered |= 97 <= (code | 0x20) <= 122
            value = extend_hash(value, code)
            stop_run = stop_run + 1 if code == _STOP else 0
            symbols += code in (_HASH, _ELLIPSIS) or (stop_run > 0 and stop_run % 3 == 0)
            braces += code in (_OPEN, _CLOSE)
            if kind == WORD and not spoken:
                sentences += 1
            spoken = (spoken or kind == WORD) and code not in (_STOP, _MARK, _QUESTION)
        counts[text, 0] = words
        counts[text, 1] = alphabetic
        counts[text, 2] = capitals
        counts[text, 3] = stop_words
        counts[text, 4] = symbols
        counts[text, 5] = braces
        counts[text, 6] = sentences


@kernel
def _normalise(
    codes: Any, offsets: Any, classes: Any, folded: Any, match: Any,
    word_offsets: Any, hashes: Any, lengths: Any, counts: Any, numeric: Any,
) -> None:  # fmt: skip
    """Fill the last five."""
    marks = np.zeros(256, dtype=np.uint64)
    """Of the marks that stand together, the hash of those of each combining class."""
    words = 0
    for text in range(offsets.size - 1):
        words, numeric[text] = _normalise_text(
            codes, offsets[text], offsets[text + 1], classes, folded, match, marks,
            words, hashes, lengths, counts[text],
        )  # fmt: skip
        word_offsets[text + 1] = words


@kernel
def _normalise_text(
    codes: Any, begin: int, end: int, classes: Any, folded: Any, match: Any, marks: Any,
    words: int, hashes: Any, lengths: Any, counts: Any,
) -> tuple[int, float]:  # fmt: skip
    """Put a text's words after the first `words`; how many there are then, and `numeric`."""
    value = np.uint64(0)
    size = numbers = line_size = line_words = recent = pending = 0
    starts_ipsum = after_lorem = False
    shares = 0.0
    for place in range(begin, end + 1):
        code = codes[place] if place < end else _FEED
        if code < 0x80:
            if _is_punctuation(code):
                continue
            if not _is_ascii_space(code):
                code += 0x20 if 65 <= code <= 90 else 0
                if pending:
                    value, pending = extend_hash(value, _take_marks(marks, pending)), 0
                value = extend_hash(value, code)
                size += 1
                numbers += 48 <= code <= 57
                recent = (recent << 8 | int(code)) & _FIVE
                if size == 5:
                    starts_ipsum = recent == _IPSUM
                continue
        elif not classes[code] & SPACE:
            small = _lower_sigma(codes, begin, place, end, classes) if code == _SIGMA else 0
            value, size, numbers, recent, pending, starts_ipsum = _add_folded(
                folded[code], small, marks, value, size, numbers, recent, pending, starts_ipsum
            )
            continue
        if size:
            hashes[words] = mix(_add_marks(value, marks, pending))
            lengths[words] = size
            counts[0] += hashes[words] == match
            counts[1] += after_lorem and starts_ipsum
            after_lorem = size >= 5 and recent == _LOREM
            words, line_words, line_size = words + 1, line_words + 1, line_size + size
            value, size, recent, pending, starts_ipsum = np.uint64(0), 0, 0, 0, False
        if code == _FEED:
            if line_words:
                shares += numbers / (line_size + line_words - 1)
            numbers = line_size = line_words = 0
    return words, shares


@kernel
def _add_folded(
    entries: Any, small: int, marks: Any,
    value: Any, size: int, numbers: int, recent: int, pending: int, starts_ipsum: bool,
) -> Any:  # fmt: skip
    """A word so far with what one character is folded to; `small` is a sigma in lower case, or 0.

    Of the word: the hash but for the marks at its end, characters, numbers, the last five
    characters, a byte for each, the combining class of the marks at its end (0 without any, -1
    where they are of several), whether its first five characters are "ipsum".
    """
    for part in range(4):
        entry = entries[part]
        if entry == 0:
            break
        char = np.uint64(small if small else entry & CODE_MASK)
        combining = (entry >> CODE_BITS) & 0xFF
        if combining:
            marks[combining] = extend_hash(marks[combining], char)
            pending = combining if pending in (0, combining) else -1
        else:
            value = extend_hash(_add_marks(value, marks, pending), char)
            pending = 0
        size += 1
        numbers += entry & NUMERIC != 0
        recent = (recent << 8 | min(entry & CODE_MASK, 0xFF)) & _FIVE
        if size == 5:
            starts_ipsum = recent == _IPSUM
    return value, size, numbers, recent, pending, starts_ipsum


@kernel
def _add_marks(value: Any, marks: Any, pending: int) -> Any:
    """The hash of a word so far with the marks at its end, which are taken."""
    return extend_hash(value, _take_marks(marks, pending)) if pending else value


@kernel
def _is_punctuation(code: int) -> bool:
    """Whether it is in `string.punctuation`."""
    return 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126


@kernel
def _is_ascii_space(code: int) -> bool:
    return 9 <= code <= 13 or 28 <= code <= 32


@kernel
def _take_marks(marks: Any, pending: int) -> Any:
    """The hash of a run of marks, which ends there."""
    value = np.uint64(0)
    first, last = (pending, pending) if pending > 0 else (1, marks.size - 1)
    for combining in range(first, last + 1):
        if marks[combining]:
            value += mix(extend_hash(marks[combining], combining))
            marks[combining] = 0
    return value


@kernel
def _lower_sigma(codes: Any, begin: int, place: int, end: int, classes: Any) -> int:
    """A capital sigma in lower case, which differs at the end of a word (`str.lower`)."""
    before = place - 1
    while before >= begin and _is_skipped(codes[before], classes):
        before -= 1
    if before < begin or not classes[codes[before]] & CASED:
        return _SMALL_SIGMA
    after = place + 1
    while after < end and _is_skipped(codes[after], classes):
        after += 1
    return _SMALL_SIGMA if after < end and classes[codes[after]] & CASED else _FINAL_SIGMA


@kernel
def _is_skipped(code: int, classes: Any) -> bool:
    """Whether it is deleted, or case-ignorable."""
    return (code < 0x80 and _is_punctuation(code)) or classes[code] & IGNORABLE != 0


@kernel
def _count_vocabulary(offsets: Any, hashes: Any, unique: Any, entropy: Any) -> None:
    entries = most_entries(offsets)
    table = make_table(entries)
    counts = np.empty(entries, dtype=np.int64)
    """Occurrences of each word, in the order of their first."""
    for text in range(offsets.size - 1):
        begin, words = offsets[text], offsets[text + 1] - offsets[text]
        mask = slot_mask(words)
        different = 0
        for word in range(words):
            which = find_first(table, mask, text + 1, hashes[begin + word], different)
            if which == different:
                counts[which] = 0
                different += 1
            counts[which] += 1
        total = 0.0
        for which in range(different):
            share = counts[which] / words
            total -= share * math.log(share)
        unique[text] = different
        entropy[text] = total
