"""Runs of tokens that occur earlier, found exactly by way of a few of their n-grams.

Tokens are Ingot's words and symbols, compared as they stand: with case and accents, without the
white space between them. A row of one sign that is no letter ("=====", "````") is one token, as
rows of full stops and hyphens are to the splitter: else every rule of 50 signs would be a passage.
A window is `least` tokens in a row; what is repeated is the union of all windows that occur
earlier, so every run of at least `least` tokens that does, in its whole length. The meaning of
length is that of google-research/deduplicate-text-datasets (Lee et al. 2022), which counts bytes of
text or of a model's tokens, and marks the first copy too.

Hashing every window costs most where nothing is repeated. So each window names an anchor, the
n-gram in it whose hash is least, the last one of equals: winnowing (Schleimer, Wilkerson and Aiken
2003). With n-grams of least // 2 + 1 tokens about one n-gram in thirteen is an anchor (for 50).
Equal windows have their anchors at the same place, so a window can only be repeated if its anchor's
n-gram is an anchor twice; only such windows are hashed and compared. It is not enough to compare a
passage with the first place of its anchor and extend: a later place may agree further. Robust
winnowing, which keeps an anchor while it is among the least, would choose fewer where text is
periodic, but looks beyond the window, and equal windows could name different anchors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.dedup.passages.occurrences import Occurrences, occurrences
from stages.text.batch import LETTER, Batch
from stages.text.native import compiled
from stages.text.split import batch_of

VIEW = "duplicate_substrings"

_GRAM_BASE, _WINDOW_BASE = np.uint64(0xF1357AEA2E62A9C5), np.uint64(0xAF251AF3B0F025B5)
_MULTIPLIER, _HALF, _ONE = np.uint64(0xD6E8FEB86659FD93), np.uint64(32), np.uint64(1)


def gram_length(least: int) -> int:
    """Tokens of the n-grams among which a window of `least` tokens names its anchor."""
    return least // 2 + 1


def anchor_occurrences(texts: Sequence[str], first_row: int, least: int) -> tuple[Occurrences, int]:
    """The anchors of the texts, which are the rows from `first_row` on; how many windows there are.

    Of an anchor only hash and row are told.
    """
    tokens = tokens_of(batch_of(texts))
    keys = _rolled(tokens.hashes, tokens.offsets, gram_length(least), _GRAM_BASE)
    anchors = _anchors(keys, tokens.offsets, least, gram_length(least))
    rows, found = _distinct_anchors(anchors, tokens.offsets, least)
    windows = np.maximum(np.diff(tokens.offsets) - (least - 1), 0).sum()
    return occurrences(_mixed_all(keys[found]), rows + first_row, 0, 0, 0), int(windows)


def window_occurrences(
    texts: Sequence[str], first_row: int, least: int, repeated: NDArray[np.uint64]
) -> Occurrences:
    """The windows of the texts whose anchor is among `repeated`, sorted hashes of anchors."""
    batch = batch_of(texts)
    tokens = tokens_of(batch)
    keys = _rolled(tokens.hashes, tokens.offsets, gram_length(least), _GRAM_BASE)
    anchors = _anchors(keys, tokens.offsets, least, gram_length(least))
    rows, first = _windows(anchors, keys, tokens.offsets, least, repeated)
    hashes = _rolled(tokens.hashes, tokens.offsets, least, _WINDOW_BASE)[first]
    base = batch.offsets[rows]
    ends = tokens.ends[first + least - 1] - base
    return occurrences(hashes, rows + first_row, tokens.starts[first] - base, ends, ends)


class Tokens(NamedTuple):
    """Text d of a batch has the tokens [offsets[d], offsets[d + 1]), token t the characters
    [starts[t], ends[t]) of the batch and a hash of its string."""

    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    hashes: NDArray[np.uint64]


def tokens_of(batch: Batch) -> Tokens:
    """The tokens of a batch, rows of one sign that is no letter as one."""
    split = batch.tokens
    return Tokens(
        *_rows_joined(
            split.offsets, split.starts, split.ends, split.kinds, split.hashes, split.powers
        )
    )


@compiled
def _rows_joined(
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    hashes: NDArray[np.uint64],
    powers: NDArray[np.uint64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    left, found = np.zeros_like(offsets), 0
    first, last, numbers = np.empty_like(starts), np.empty_like(ends), np.empty_like(hashes)
    for text in range(len(offsets) - 1):
        for token in range(offsets[text], offsets[text + 1]):
            if (
                token > offsets[text]
                and starts[token] == ends[token - 1]
                and hashes[token] == hashes[token - 1]
                and not kinds[token] & LETTER
            ):
                numbers[found - 1] = numbers[found - 1] * powers[token] + hashes[token]
            else:
                first[found], numbers[found] = starts[token], hashes[token]
                found += 1
            last[found - 1] = ends[token]
        left[text + 1] = found
    return left, first[:found], last[:found], numbers[:found]


@compiled
def _mixed(value: Any) -> Any:
    """A bijection of 64-bit numbers that spreads every bit."""
    value = (value ^ (value >> _HALF)) * _MULTIPLIER
    value = (value ^ (value >> _HALF)) * _MULTIPLIER
    return value ^ (value >> _HALF)


@compiled
def _mixed_all(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Least hashes are no even choice of all numbers; mixed once more they spread evenly."""
    found = np.empty_like(values)
    for i in range(len(values)):
        found[i] = _mixed(values[i])
    return found


@compiled
def _rolled(
    hashes: NDArray[np.uint64], offsets: NDArray[np.int64], length: int, base: Any
) -> NDArray[np.uint64]:
    """[tokens] the number of the n-gram that begins at each token; 0 where none fits its text."""
    found = np.zeros(len(hashes), dtype=np.uint64)
    leaving = _ONE
    for _ in range(length):
        leaving *= base
    for text in range(len(offsets) - 1):
        value = np.uint64(0)
        for token in range(offsets[text], offsets[text + 1]):
            value = value * base + _mixed(hashes[token])
            first = token - length + 1
            if first > offsets[text]:
                value -= leaving * _mixed(hashes[first - 1])
            if first >= offsets[text]:
                found[first] = _mixed(value)
    return found


@compiled
def _anchors(
    keys: NDArray[np.uint64], offsets: NDArray[np.int64], least: int, length: int
) -> NDArray[np.int64]:
    """[tokens] where the n-gram begins that the window at each token names; -1 without window."""
    anchors = np.full(len(keys), -1, dtype=np.int64)
    width = least - length + 1
    for text in range(len(offsets) - 1):
        chosen = -1
        for window in range(offsets[text], offsets[text + 1] - least + 1):
            last = window + width - 1
            if chosen < window:
                chosen = window
                for gram in range(window + 1, last + 1):
                    if keys[gram] <= keys[chosen]:
                        chosen = gram
            elif keys[last] <= keys[chosen]:
                chosen = last
            anchors[window] = chosen
    return anchors


@compiled
def _distinct_anchors(
    anchors: NDArray[np.int64], offsets: NDArray[np.int64], least: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Texts and tokens of the anchors."""
    texts, found = np.empty_like(anchors), np.empty_like(anchors)
    count = 0
    for text in range(len(offsets) - 1):
        for window in range(offsets[text], offsets[text + 1] - least + 1):
            if window == offsets[text] or anchors[window] != anchors[window - 1]:
                texts[count], found[count] = text, anchors[window]
                count += 1
    return texts[:count].copy(), found[:count].copy()


@compiled
def _windows(
    anchors: NDArray[np.int64],
    keys: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    least: int,
    repeated: NDArray[np.uint64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Texts and first tokens of the windows whose anchor is repeated."""
    texts, found = np.empty_like(anchors), np.empty_like(anchors)
    count = 0
    for text in range(len(offsets) - 1):
        before, known = -1, False
        for window in range(offsets[text], offsets[text + 1] - least + 1):
            if anchors[window] != before:
                before = anchors[window]
                key = _mixed(keys[before])
                place = np.searchsorted(repeated, key)
                known = place < len(repeated) and repeated[place] == key
            if known:
                texts[count], found[count] = text, window
                count += 1
    return texts[:count].copy(), found[:count].copy()
