"""Gopher's repetition signals over words (Rae et al. 2021, table A1), for a batch of texts at once.

The definitions are datatrove's, in `gopher_repetition_filter.py`. The most common n-gram counts its
characters joined by spaces times its occurrences, also when it occurs once; among equals the first
counts. Duplicate n-grams are found from left to right: one that was passed before counts its
characters without spaces and is skipped whole, any other is passed and left by one word. N-grams of
the second sort are equal when their characters without spaces are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.signals.hashing import empty_table, first_place, mask_of, mixed, most, sketch_size
from stages.signals.ngrams import DUPLICATE_NGRAMS, TOP_NGRAMS, repeated_ngrams
from stages.signals.quality import GOPHER, ratio
from stages.signals.signal import Signal, share
from stages.text.batch import Batch
from stages.text.native import compiled

SIGNALS: tuple[Signal, ...] = (
    *(
        share(
            f"top_{n}_gram_character_share",
            GOPHER,
            f"Characters of the most common {n}-gram times its occurrences; may exceed 1.",
        )
        for n in TOP_NGRAMS
    ),
    *(
        share(
            f"duplicate_{n}_gram_character_share",
            GOPHER,
            f"Characters in {n}-grams that repeat an earlier one, without overlap.",
        )
        for n in DUPLICATE_NGRAMS
    ),
)


WINDOW = 16
_ODD = np.cumprod(np.full(WINDOW, 0x9E3779B97F4A7C15, dtype=np.uint64))


def repetition_signals(batch: Batch) -> dict[str, NDArray[np.float64]]:
    """The columns of `SIGNALS`; shares of the characters of the text, 0 for an empty one."""
    tokens = batch.tokens
    sizes = np.diff(batch.offsets)
    found = repeated_ngrams(tokens.offsets, tokens.hashes, tokens.lengths, TOP_NGRAMS[-1])
    columns = {}
    for column, n in enumerate(TOP_NGRAMS):
        times = found.occurrences[:, column]
        columns[f"top_{n}_gram_character_share"] = ratio(
            (found.first[:, column] + n - 1) * times, sizes
        )
    copies = _characters_in_copies(batch)
    for column, n in enumerate(DUPLICATE_NGRAMS):
        columns[f"duplicate_{n}_gram_character_share"] = ratio(copies[:, column], sizes)
    return columns


def _characters_in_copies(batch: Batch) -> NDArray[np.int64]:
    """[texts, 6] characters in n-grams that repeat an earlier one, n of `DUPLICATE_NGRAMS`."""
    copies = np.zeros((len(batch.texts), len(DUPLICATE_NGRAMS)), dtype=np.int64)
    tokens = batch.tokens
    _count_copies(
        batch.codes, tokens.offsets, tokens.starts, tokens.ends, tokens.hashes, tokens.powers,
        copies,
    )  # fmt: skip
    return copies


@compiled
def _count_copies(
    codes: Any, offsets: Any, starts: Any, ends: Any, hashes: Any, powers: Any, copies: Any
) -> None:
    entries = most(offsets)
    table = empty_table(entries)
    values = np.empty(entries, dtype=np.uint64)
    places = np.empty(entries, dtype=np.int64)
    until = np.empty(entries + 1, dtype=np.int64)
    generation = 0
    for text in range(offsets.size - 1):
        begin = offsets[text]
        words = offsets[text + 1] - begin
        if words < DUPLICATE_NGRAMS[0]:
            continue
        until[0] = 0
        for word in range(words):
            until[word + 1] = until[word] + ends[begin + word] - starts[begin + word]
        window = max(DUPLICATE_NGRAMS[0], min(4 * until[words] // words, WINDOW))
        met = _met_again(codes, starts[begin : begin + words], until[: words + 1], window)
        candidates = words
        for word in range(words):
            places[word] = word
        for n in range(DUPLICATE_NGRAMS[0], min(DUPLICATE_NGRAMS[-1], words) + 1):
            kept = 0
            for candidate in range(candidates):
                place = places[candidate]
                if place + n <= words and (met[place] or until[place + n] - until[place] < window):
                    first = begin + place if n == DUPLICATE_NGRAMS[0] else begin + place + n - 1
                    value = np.uint64(0) if n == DUPLICATE_NGRAMS[0] else values[place]
                    for token in range(first, begin + place + n):
                        value = value * powers[token] + hashes[token]
                    values[place] = value
                    places[kept] = place
                    kept += 1
            candidates = kept
            generation += 1
            copies[text, n - DUPLICATE_NGRAMS[0]] = _skipped(
                table, generation, n, candidates, places, values, until
            )


@compiled
def _skipped(
    table: Any, generation: int, n: int, candidates: int, places: Any, values: Any, until: Any
) -> int:
    """Characters of the n-grams at `places` that were passed before, skipping each whole."""
    characters = free = 0
    mask = mask_of(candidates)
    for candidate in range(candidates):
        place = places[candidate]
        if (
            place >= free
            and first_place(table, mask, generation, mixed(values[place]), place) != place
        ):
            characters += until[place + n] - until[place]
            free = place + n
    return characters


@compiled
def _met_again(codes: Any, starts: Any, until: Any, window: int) -> Any:
    """For each word, whether the next `window` characters but spaces may occur at another word too.

    It never misses one: an n-gram that long and not met again has no copy. Counts at hashes in a
    small array, without branches, cost a fraction of a look at the n-grams themselves.
    """
    words = starts.size
    stream = np.zeros(until[words] + 2 * WINDOW, dtype=np.uint32)
    for word in range(words):
        start, at = starts[word], until[word]
        if start + WINDOW <= codes.size:
            # What is copied beyond a word is overwritten by the next: quicker than to stop there.
            for place in range(WINDOW):
                stream[at + place] = codes[start + place]
            copied = WINDOW
        else:
            copied = 0
        for place in range(copied, until[word + 1] - at):
            stream[at + place] = codes[start + place]
    for place in range(until[words], stream.size):
        stream[place] = 0
    factors = np.zeros(WINDOW, dtype=np.uint64)
    for place in range(window):
        factors[place] = _ODD[place]
    size = sketch_size(words)
    met = np.zeros(size, dtype=np.uint8)
    slots = np.empty(words, dtype=np.uint32)
    for word in range(words):
        value = np.uint64(0)
        at = until[word]
        for place in range(WINDOW):
            value += np.uint64(stream[at + place]) * factors[place]
        slot = mixed(value) & np.uint64(size - 1)
        slots[word] = slot
        met[slot] = min(met[slot] + 1, 2)
    again = np.empty(words, dtype=np.bool_)
    for word in range(words):
        again[word] = met[slots[word]] == 2
    return again
