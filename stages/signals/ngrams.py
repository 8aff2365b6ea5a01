"""Repeated n-grams of words, counted once for every rule that looks at them.

An n-gram is a tuple of words here. One that occurs twice begins and ends with (n-1)-grams that
occur twice, so from the third word on only the places where both do are looked at again: most texts
repeat few trigrams, and the cost of all sizes is little more than that of the pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.signals.hashing import empty_table, first_place, mask_of, mixed, most, sketch_size
from stages.text.native import compiled

TOP_NGRAMS = (2, 3, 4)
DUPLICATE_NGRAMS = (5, 6, 7, 8, 9, 10)

_BASE = np.uint64(0xC2B2AE3D27D4EB4F)


class Repeated(NamedTuple):
    """Shape `[texts, 3]` for n of `TOP_NGRAMS`, `[texts, 6]` for n of `DUPLICATE_NGRAMS`.

    `occurrences` of the most common n-gram (1 where none repeats, 0 where there is no n-gram);
    characters of its words, of the `first` such n-gram and of the `longest`; characters of the
    words that lie in an n-gram that occurs more than once (`within`).
    """

    occurrences: NDArray[np.int64]
    first: NDArray[np.int64]
    longest: NDArray[np.int64]
    within: NDArray[np.int64]


def repeated_ngrams(
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    lengths: NDArray[np.int64],
    largest: int = DUPLICATE_NGRAMS[-1],
) -> Repeated:
    """The n-grams of each text, n up to `largest`.

    Text d has the words [offsets[d], offsets[d + 1]), with these `hashes` and `lengths` in
    characters.
    """
    texts = len(offsets) - 1
    top = np.zeros((3, texts, len(TOP_NGRAMS)), dtype=np.int64)
    within = np.zeros((texts, len(DUPLICATE_NGRAMS)), dtype=np.int64)
    _count(offsets, hashes, lengths, largest, top[0], top[1], top[2], within)
    return Repeated(top[0], top[1], top[2], within)


@compiled
def _count(
    offsets: Any, hashes: Any, lengths: Any, largest: int,
    occurrences: Any, first: Any, longest: Any, within: Any,
) -> None:  # fmt: skip
    """Fill the last four."""
    entries = most(offsets)
    table = empty_table(entries)
    values = np.empty(entries, dtype=np.uint64)
    """Of the n-gram that begins at each word."""
    names = np.empty(entries, dtype=np.int64)
    """The first place of that n-gram."""
    counts = np.empty(entries, dtype=np.int64)
    """At that place, its occurrences."""
    until = np.empty(entries + 1, dtype=np.int64)
    """Characters of the words before each."""
    places = np.empty(entries, dtype=np.int64)
    """Where an n-gram may begin that occurs more than once."""
    met = np.empty(sketch_size(entries), dtype=np.uint8)
    generation = 0
    for text in range(offsets.size - 1):
        begin = offsets[text]
        words = offsets[text + 1] - begin
        values[:words] = hashes[begin : begin + words]
        _add_up(lengths[begin : begin + words], until)
        candidates = _met_pairs(begin, words, hashes, met, places)
        for n in range(2, min(largest, words) + 1):
            generation += 1
            mask = mask_of(candidates)
            kept = 0
            for candidate in range(candidates):
                place = places[candidate]
                if place + n > words:
                    continue
                values[place] = values[place] * _BASE + hashes[begin + place + n - 1]
                name = first_place(table, mask, generation, mixed(values[place]), place)
                if name == place:
                    counts[place] = 0
                counts[name] += 1
                names[place] = name
                places[kept] = place
                kept += 1
            if n <= 4:
                _most_common(
                    text, n, kept, places, names, counts, until, occurrences, first, longest
                )
            candidates = _repeated(kept, places, names, counts)
            if n >= 5:
                within[text, n - 5] = _characters_within(n, candidates, places, until)
            if not candidates and n >= 4:
                break
            candidates = _neighbours(candidates, places)


@compiled
def _add_up(lengths: Any, until: Any) -> None:
    """Put into `until` the sum of the lengths before each, and that of all."""
    until[0] = 0
    for word in range(lengths.size):
        until[word + 1] = until[word] + lengths[word]


@compiled
def _met_pairs(begin: int, words: int, hashes: Any, met: Any, places: Any) -> int:
    """Put into `places` where a pair begins that may occur more than once; how many they are."""
    size = sketch_size(words)
    mask = np.uint64(size - 1)
    for place in range(size):
        met[place] = 0
    for word in range(begin, begin + words - 1):
        slot = mixed(hashes[word] * _BASE + hashes[word + 1]) & mask
        met[slot] = min(met[slot] + 1, 2)
    kept = 0
    for word in range(words - 1):
        slot = mixed(hashes[begin + word] * _BASE + hashes[begin + word + 1]) & mask
        places[kept] = word
        kept += met[slot] == 2
    return kept


@compiled
def _most_common(
    text: int, n: int, kept: int, places: Any, names: Any, counts: Any, until: Any,
    occurrences: Any, first: Any, longest: Any,
) -> None:  # fmt: skip
    """The most common of the n-grams at `places`, or the first of the text if none repeats."""
    best, where, characters = 1, 0, until[n]
    for candidate in range(kept):
        place = places[candidate]
        if names[place] != place or counts[place] == 1 or counts[place] < best:
            continue
        size = until[place + n] - until[place]
        if counts[place] > best:
            best, where, characters = counts[place], place, size
        else:
            characters = max(characters, size)
    occurrences[text, n - 2] = best
    first[text, n - 2] = until[where + n] - until[where]
    longest[text, n - 2] = characters


@compiled
def _repeated(kept: int, places: Any, names: Any, counts: Any) -> int:
    """Leave in `places` those whose n-gram occurs more than once; how many they are."""
    left = 0
    for candidate in range(kept):
        place = places[candidate]
        if counts[names[place]] > 1:
            places[left] = place
            left += 1
    return left


@compiled
def _neighbours(candidates: int, places: Any) -> int:
    """Leave in `places` those that the next place follows; how many they are."""
    left = 0
    for candidate in range(candidates - 1):
        if places[candidate + 1] == places[candidate] + 1:
            places[left] = places[candidate]
            left += 1
    return left


@compiled
def _characters_within(n: int, candidates: int, places: Any, until: Any) -> int:
    """Characters of the words in the n-grams at `places`, each word once."""
    characters = covered = 0
    for candidate in range(candidates):
        place = places[candidate]
        characters += until[place + n] - until[max(place, covered)]
        covered = place + n
    return characters
