"""Gopher's quality signals (Rae et al. 2021, appendix A.1.1), for a batch of texts at once.

The definitions are datatrove's, in `gopher_quality_filter.py`: tokens that are punctuation only are
no words for the count and the mean length, but are counted where something is divided by "words".
Lines end at every boundary of `str.splitlines`. A text without tokens or lines has 0 in every
share.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.signals.character_classes import SPACE, characters
from stages.signals.hashing import hash_set, slot_of
from stages.signals.signal import Signal, count, share
from stages.text.batch import LETTER, SYMBOL, Batch
from stages.text.native import compiled
from stages.text.split import Splitter, batch_of

GOPHER = "Rae et al. 2021 (arXiv 2112.11446), as datatrove computes it"
_OWN = "Ingot"

SIGNALS: tuple[Signal, ...] = (
    count("lines", "lines", _OWN, "Pieces between line boundaries of any sort."),
    count("word_tokens", "tokens", _OWN, "Tokens of the word splitter: words, and symbols."),
    count("words", "words", GOPHER, "Tokens that are not punctuation only."),
    Signal("mean_word_length", "float64", "characters", GOPHER, "Mean length of those words."),
    share("hash_to_word_ratio", GOPHER, "Hash signs over tokens."),
    share("ellipsis_to_word_ratio", GOPHER, "Occurrences of '...' and '…' over tokens."),
    share("bullet_line_share", GOPHER, "Lines that begin with a bullet or a hyphen."),
    share("ellipsis_line_share", GOPHER, "Lines that end with an ellipsis."),
    share("alphabetic_word_share", GOPHER, "Tokens that hold at least one letter."),
    count("stop_words", "words", GOPHER, "Different words of the stop list that occur."),
)

_FEED, _HASH, _HYPHEN, _STOP, _BULLET, _ELLIPSIS = map(ord, "\n#-.•…")
_RETURN, _NEXT_LINE, _LINE_SEPARATOR = ord("\r"), 0x85, 0x2028


def ratio(
    part: NDArray[np.int64] | NDArray[np.float64], whole: NDArray[np.int64]
) -> NDArray[np.float64]:
    """part / whole, and 0 where the whole is 0."""
    parts, wholes = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes != 0)


def quality_signals(
    batch: Batch, stop_words: Iterable[str], splitter: Splitter = "unicode"
) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of `SIGNALS`. `stop_words` are tokens as `splitter` makes them, case and all."""
    tokens = batch.tokens
    texts = len(batch.offsets) - 1
    marks = np.zeros((texts, 5), dtype=np.int64)
    _count_marks(batch.codes, batch.offsets, characters(batch.codes).classes, marks)
    hashes, ellipses, lines, bullets, ends = marks.T
    counted = np.zeros((texts, 4), dtype=np.int64)
    stops = hash_set(string_hashes(stop_words, splitter))
    _count_words(tokens.offsets, tokens.starts, tokens.ends, tokens.kinds, tokens.hashes, stops,
                 counted)  # fmt: skip
    words, word_characters, alphabetic, found = counted.T
    all_tokens = np.diff(tokens.offsets)
    return {
        "lines": lines,
        "word_tokens": all_tokens,
        "words": words,
        "mean_word_length": ratio(word_characters, words),
        "hash_to_word_ratio": ratio(hashes, all_tokens),
        "ellipsis_to_word_ratio": ratio(ellipses, all_tokens),
        "bullet_line_share": ratio(bullets, lines),
        "ellipsis_line_share": ratio(ends, lines),
        "alphabetic_word_share": ratio(alphabetic, all_tokens),
        "stop_words": found,
    }


def string_hashes(strings: Iterable[str], splitter: Splitter = "unicode") -> NDArray[np.uint64]:
    """The `Tokens.hashes` that tokens equal to `strings` have; none for those that no token equals,
    which are empty or hold white space."""
    whole = [string for string in strings if string and not any(map(str.isspace, string))]
    tokens = batch_of(whole, splitter).tokens
    parts = list(zip(tokens.hashes.tolist(), tokens.powers.tolist(), strict=True))
    hashes = []
    for begin, end in pairwise(tokens.offsets.tolist()):
        value = 0
        for part, power in parts[begin:end]:
            value = (value * power + part) % 2**64
        hashes.append(value)
    return np.array(hashes, dtype=np.uint64)


@compiled
def _count_words(
    offsets: Any, starts: Any, ends: Any, kinds: Any, hashes: Any, stops: Any, counted: Any
) -> None:
    """Words, their characters, tokens with a letter, and different stop words of each text."""
    met = np.zeros(stops.size, dtype=np.int64)
    for text in range(offsets.size - 1):
        words = characters = alphabetic = found = 0
        for token in range(offsets[text], offsets[text + 1]):
            alphabetic += (kinds[token] & LETTER) != 0
            if kinds[token] & SYMBOL == 0:
                words += 1
                characters += ends[token] - starts[token]
            slot = slot_of(stops, hashes[token])
            if slot >= 0 and met[slot] != text + 1:
                met[slot] = text + 1
                found += 1
        counted[text, 0] = words
        counted[text, 1] = characters
        counted[text, 2] = alphabetic
        counted[text, 3] = found


@compiled
def _count_marks(codes: Any, offsets: Any, classes: Any, marks: Any) -> None:
    """Hash signs, ellipses, lines, lines with a bullet and lines with an ellipsis of each text."""
    for text in range(offsets.size - 1):
        end = offsets[text + 1]
        start = place = offsets[text]
        hashes = ellipses = lines = bullets = trailing = stops = 0
        while place < end:
            code = codes[place]
            if code == _STOP:
                stops += 1
                ellipses += stops % 3 == 0
            else:
                stops = 0
                hashes += code == _HASH
                ellipses += code == _ELLIPSIS
            place += 1
            if is_boundary(code) or place == end:
                last = place - 1 if is_boundary(code) else place
                if code == _RETURN and place < end and codes[place] == _FEED:
                    place += 1
                lines += 1
                bullets += _begins_with_bullet(codes, start, last, classes)
                trailing += ends_with_ellipsis(codes, start, last, classes)
                start = place
        marks[text, 0] = hashes
        marks[text, 1] = ellipses
        marks[text, 2] = lines
        marks[text, 3] = bullets
        marks[text, 4] = trailing


@compiled
def is_boundary(code: int) -> bool:
    """Whether `str.splitlines` ends a line there."""
    if code > 0x1E:
        return code in (_NEXT_LINE, _LINE_SEPARATOR, _LINE_SEPARATOR + 1)
    return _FEED <= code <= _RETURN or code >= 0x1C


@compiled
def _begins_with_bullet(codes: Any, start: int, end: int, classes: Any) -> bool:
    """Whether the line begins, after white space, with a bullet or a hyphen."""
    while start < end and classes[codes[start]] & SPACE:
        start += 1
    return start < end and (codes[start] == _BULLET or codes[start] == _HYPHEN)


@compiled
def ends_with_ellipsis(codes: Any, start: int, end: int, classes: Any) -> bool:
    """Whether the line ends, before white space, with '…' or '...'."""
    while start < end and classes[codes[end - 1]] & SPACE:
        end -= 1
    if start < end and codes[end - 1] == _ELLIPSIS:
        return True
    return (
        end - start >= 3
        and codes[end - 1] == _STOP
        and codes[end - 2] == _STOP
        and codes[end - 3] == _STOP
    )
