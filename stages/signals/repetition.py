"""Gopher's repetition signals over words (Rae et al. 2021, table A1), for a batch of texts at once.

The definitions are datatrove's, in `gopher_repetition_filter.py`. The most common n-gram counts its
characters joined by spaces times its occurrences, also when it occurs once; among equals the first
counts. Duplicate n-grams are found from left to right: one that was passed before counts its
characters without spaces and is skipped whole, any other is passed and left by one word. N-grams of
the second sort are equal when their characters without spaces are.

N-grams are compared by 64-bit hashes. Two different ones among a million in a text are taken for
equal with a chance of 3e-8.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from stages.text.shingles import mix, ngram_hashes
from stages.text.tokens import Tokens


def top_ngram_characters(tokens: Tokens, n: int) -> NDArray[np.int64]:
    """For each text: characters of its most common n-gram, with spaces, times its occurrences."""
    text_of, places = _places(tokens, n)
    result = np.zeros(tokens.texts, dtype=np.int64)
    if not len(places):
        return result
    hashes = ngram_hashes(mix(tokens.ids + np.uint64(1)), n)[places] ^ _salt(text_of)
    groups, order = _groups(hashes)
    occurrences = np.zeros(len(places), dtype=np.int64)
    occurrences[np.minimum.reduceat(order, groups[:-1])] = np.diff(groups)

    first_of_text = np.flatnonzero(np.diff(text_of, prepend=-1))
    most = np.maximum.reduceat(occurrences, first_of_text)
    sizes = np.diff(first_of_text, append=len(places))
    best = np.flatnonzero(occurrences == np.repeat(most, sizes))
    texts, first = np.unique(text_of[best], return_index=True)
    result[texts] = (_characters(tokens, places[best[first]], n) + n - 1) * most
    return result


def duplicate_ngram_characters(tokens: Tokens, sizes: Iterable[int]) -> list[NDArray[np.int64]]:
    """For each n of `sizes`, for each text: characters in n-grams that repeat an earlier one."""
    hashes, length = np.zeros(len(tokens.ids), dtype=np.uint64), 0
    results = []
    for n in sorted(sizes):
        for offset in range(length, min(n, len(hashes))):
            tail = len(hashes) - offset
            hashes[:tail] = hashes[:tail] * tokens.powers[offset:] + tokens.hashes[offset:]
        length = n
        results.append(_duplicates(tokens, hashes, n))
    return results


def _duplicates(tokens: Tokens, hashes: NDArray[np.uint64], n: int) -> NDArray[np.int64]:
    text_of, places = _places(tokens, n)
    if not len(places):
        return np.zeros(tokens.texts, dtype=np.int64)
    groups, order = _groups(mix(hashes[places]) ^ _salt(text_of))
    sizes = np.diff(groups)
    repeated = np.repeat(sizes > 1, sizes)
    names = np.repeat(np.arange(len(sizes)), sizes)[repeated]
    where = order[repeated]
    in_order = np.argsort(where)

    # An n-gram that occurs once never matches and is only passed by, so the walk visits the others.
    seen: set[int] = set()
    copies: list[int] = []
    free = 0
    for place, name in zip(places[where[in_order]].tolist(), names[in_order].tolist(), strict=True):
        if place < free:
            continue
        if name in seen:
            copies.append(place)
            free = place + n
        else:
            seen.add(name)
    starts = np.array(copies, dtype=np.int64)
    texts = np.searchsorted(tokens.offsets, starts, side="right") - 1
    result = np.zeros(tokens.texts, dtype=np.int64)
    np.add.at(result, texts, _characters(tokens, starts, n))
    return result


def _places(tokens: Tokens, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Text and first token of every n-gram that lies within one text, in order."""
    counts = np.maximum(np.diff(tokens.offsets) - n + 1, 0)
    text_of = np.repeat(np.arange(tokens.texts), counts)
    begin = np.cumsum(counts) - counts
    return text_of, np.arange(len(text_of)) + np.repeat(tokens.offsets[:-1] - begin, counts)


def _salt(text_of: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A number for each text that keeps equal n-grams of different texts apart."""
    return mix(text_of.astype(np.uint64) + np.uint64(0x51ED270B))


def _groups(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Borders of the runs of equal hashes in sorted order (with both ends), and that order."""
    order = np.argsort(hashes)
    ranked = hashes[order]
    inner = np.flatnonzero(ranked[1:] != ranked[:-1]) + 1
    return np.concatenate(([0], inner, [len(hashes)])), order


def _characters(tokens: Tokens, starts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Characters of the n tokens from each start, without spaces."""
    total = np.concatenate(([0], np.cumsum(tokens.lengths)))
    return total[starts + n] - total[starts]
