"""Repetition of words: repeated n-grams, Gopher's signals over them, dolma's periodic runs.

An n-gram is a tuple of words, and repeated ones are counted once for every rule that looks at them.
One that occurs twice begins and ends with (n-1)-grams that occur twice, so from the third word on
only the places where both do are looked at again: most texts repeat few trigrams, and the cost of
all sizes is little more than that of the pairs.

Gopher's repetition signals (Rae et al. 2021, table A1) follow datatrove's
`gopher_repetition_filter.py`. The most common n-gram counts its characters joined by spaces times
its occurrences, also when it occurs once; among equals the first counts. Duplicate n-grams are
found from left to right: one that occurred before counts its characters without spaces and is
skipped whole, any other is recorded and left by one word. N-grams of the second kind are equal when
their characters without spaces are.

Periodic runs are those of dolma's `tokenizer_repetitions` taggers: a longest sequence of tokens
that repeats with a period of 1 to 13 tokens, at least 3 times. A run that lies in another one (as
each run of period 1 lies in one of period 2) counts no more, as in the tagger's second version.
Tokens are those of the word splitter, symbols included, where dolma takes GPT-NeoX's; and the whole
text at once, where it takes 100,000 characters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.signals.counting import (
    find_first,
    make_table,
    mix,
    most_entries,
    sketch_size,
    slot_mask,
)
from stages.signals.outputs import Signal, count, share
from stages.signals.quality import GOPHER, ratio
from stages.text.batch import Batch

TOP_NGRAMS = (2, 3, 4)
DUPLICATE_NGRAMS = (5, 6, 7, 8, 9, 10)

_BASE = np.uint64(0xC2B2AE3D27D4EB4F)


class RepeatedNgrams(NamedTuple):
    """Shape `[texts, 3]` for n of `TOP_NGRAMS`, `[texts, 6]` for n of `DUPLICATE_NGRAMS`.

    `occurrences` of the most common n-gram (1 where none repeats, 0 where there is no n-gram);
    characters of its words, of the `first` such n-gram and of the `longest`; characters of the
    words that lie in an n-gram that occurs more than once (`within`).
    """

    occurrences: NDArray[np.int64]
    first: NDArray[np.int64]
    longest: NDArray[np.int64]
    within: NDArray[np.int64]


def count_repeated_ngrams(
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    lengths: NDArray[np.int64],
    largest: int = DUPLICATE_NGRAMS[-1],
) -> RepeatedNgrams:
    """The n-grams of each text, n up to `largest`.

    Text d has the words [offsets[d], offsets[d + 1]), with these `hashes` and `lengths` in
    characters.
    """
    texts = len(offsets) - 1
    top = np.zeros((3, texts, len(TOP_NGRAMS)), dtype=np.int64)
    within = np.zeros((texts, len(DUPLICATE_NGRAMS)), dtype=np.int64)
    _count_ngrams(offsets, hashes, lengths, largest, top[0], top[1], top[2], within)
    return RepeatedNgrams(top[0], top[1], top[2], within)


@kernel
def _count_ngrams(
    offsets: Any, hashes: Any, lengths: Any, largest: int,
    occurrences: Any, first: Any, longest: Any, within: Any,
) -> None:  # fmt: skip
    """Fill the last four."""
    entries = most_entries(offsets)
    table = make_table(entries)
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
        candidates = _find_candidate_pairs(begin, words, hashes, met, places)
        for n in range(2, min(largest, words) + 1):
            generation += 1
            mask = slot_mask(candidates)
            kept = 0
            for candidate in range(candidates):
                place = places[candidate]
                if place + n > words:
                    continue
                values[place] = values[place] * _BASE + hashes[begin + place + n - 1]
                name = find_first(table, mask, generation, mix(values[place]), place)
                if name == place:
                    counts[place] = 0
                counts[name] += 1
                names[place] = name
                places[kept] = place
                kept += 1
            if n <= 4:
                _find_most_common(
                    text, n, kept, places, names, counts, until, occurrences, first, longest
                )
            candidates = _keep_repeated(kept, places, names, counts)
            if n >= 5:
                within[text, n - 5] = _count_covered(n, candidates, places, until)
            if not candidates and n >= 4:
                break
            candidates = _keep_neighbours(candidates, places)


@kernel
def _add_up(lengths: Any, until: Any) -> None:
    """Put into `until` the sum of the lengths before each, and that of all."""
    until[0] = 0
    for word in range(lengths.size):
        until[word + 1] = until[word] + lengths[word]


@kernel
def _find_candidate_pairs(begin: int, words: int, hashes: Any, met: Any, places: Any) -> int:
    """Put into `places` where a pair begins that may occur more than once; how many they are."""
    size = sketch_size(words)
    mask = np.uint64(size - 1)
    for place in range(size):
        met[place] = 0
    for word in range(begin, begin + words - 1):
        slot = mix(hashes[word] * _BASE + hashes[word + 1]) & mask
        met[slot] = min(met[slot] + 1, 2)
    kept = 0
    for word in range(words - 1):
        slot = mix(hashes[begin + word] * _BASE + hashes[begin + word + 1]) & mask
        places[kept] = word
        kept += met[slot] == 2
    return kept


@kernel
def _find_most_common(
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


@kernel
def _keep_repeated(kept: int, places: Any, names: Any, counts: Any) -> int:
    """Leave in `places` those whose n-gram occurs more than once; how many they are."""
    left = 0
    for candidate in range(kept):
        place = places[candidate]
        if counts[names[place]] > 1:
            places[left] = place
            left += 1
    return left


@kernel
def _keep_neighbours(candidates: int, places: Any) -> int:
    """Leave in `places` those that the next place follows; how many they are."""
    left = 0
    for candidate in range(candidates - 1):
        if places[candidate + 1] == places[candidate] + 1:
            places[left] = places[candidate]
            left += 1
    return left


@kernel
def _count_covered(n: int, candidates: int, places: Any, until: Any) -> int:
    """Characters of the words in the n-grams at `places`, each word once."""
    characters = covered = 0
    for candidate in range(candidates):
        place = places[candidate]
        characters += until[place + n] - until[max(place, covered)]
        covered = place + n
    return characters


REPETITION_SIGNALS: tuple[Signal, ...] = (
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


def measure_repetition(batch: Batch) -> dict[str, NDArray[np.float64]]:
    """The columns of `REPETITION_SIGNALS`; shares of the text's characters, 0 for an empty one."""
    tokens = batch.tokens
    sizes = np.diff(batch.offsets)
    ngrams = count_repeated_ngrams(tokens.offsets, tokens.hashes, tokens.lengths, TOP_NGRAMS[-1])
    columns = {}
    for column, n in enumerate(TOP_NGRAMS):
        times = ngrams.occurrences[:, column]
        columns[f"top_{n}_gram_character_share"] = ratio(
            (ngrams.first[:, column] + n - 1) * times, sizes
        )
    copies = _count_copied_characters(batch)
    for column, n in enumerate(DUPLICATE_NGRAMS):
        columns[f"duplicate_{n}_gram_character_share"] = ratio(copies[:, column], sizes)
    return columns


def _count_copied_characters(batch: Batch) -> NDArray[np.int64]:
    """[texts, 6] characters in n-grams that repeat an earlier one, n of `DUPLICATE_NGRAMS`."""
    copies = np.zeros((len(batch.texts), len(DUPLICATE_NGRAMS)), dtype=np.int64)
    tokens = batch.tokens
    _count_copies(
        batch.codes, tokens.offsets, tokens.starts, tokens.ends, tokens.hashes, tokens.powers,
        copies,
    )  # fmt: skip
    return copies


@kernel
def _count_copies(
    codes: Any, offsets: Any, starts: Any, ends: Any, hashes: Any, powers: Any, copies: Any
) -> None:
    entries = most_entries(offsets)
    table = make_table(entries)
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
        met = _find_candidates(codes, starts[begin : begin + words], until[: words + 1], window)
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
            copies[text, n - DUPLICATE_NGRAMS[0]] = _count_skipped(
                table, generation, n, candidates, places, values, until
            )


@kernel
def _count_skipped(
    table: Any, generation: int, n: int, candidates: int, places: Any, values: Any, until: Any
) -> int:
    """Characters of the n-grams at `places` that were passed before, skipping each whole."""
    characters = free = 0
    mask = slot_mask(candidates)
    for candidate in range(candidates):
        place = places[candidate]
        if (
            place >= free
            and find_first(table, mask, generation, mix(values[place]), place) != place
        ):
            characters += until[place + n] - until[place]
            free = place + n
    return characters


@kernel
def _find_candidates(codes: Any, starts: Any, until: Any, window: int) -> Any:
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
        slot = mix(value) & np.uint64(size - 1)
        slots[word] = slot
        met[slot] = min(met[slot] + 1, 2)
    again = np.empty(words, dtype=np.bool_)
    for word in range(words):
        again[word] = met[slots[word]] == 2
    return again


DOLMA = "Soldaini et al. 2024 (dolma, arXiv 2402.00159), taggers/repetitions"

LONGEST_PERIOD, LEAST_TIMES = 13, 3

PERIODIC_SIGNALS: tuple[Signal, ...] = (
    count(
        "periodic_repetitions",
        "runs",
        DOLMA,
        "Runs of tokens that repeat at least 3 times with a period of at most 13 tokens.",
    ),
    count("most_periodic_repetitions", "times", DOLMA, "Most times that one such run repeats."),
    share("periodic_repetition_share", DOLMA, "Tokens that lie in such runs."),
)


def measure_periodic(batch: Batch) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of `PERIODIC_SIGNALS`; 0 for a text without tokens."""
    counts = np.zeros((len(batch.texts), 3), dtype=np.int64)
    _count_periodic(batch.tokens.offsets, batch.tokens.hashes, counts)
    return {
        "periodic_repetitions": counts[:, 0],
        "most_periodic_repetitions": counts[:, 2],
        "periodic_repetition_share": ratio(counts[:, 1], np.diff(batch.tokens.offsets)),
    }


@kernel
def _count_periodic(offsets: Any, hashes: Any, counts: Any) -> None:
    """Runs, tokens in them, and the most repetitions of one."""
    reach = np.zeros(most_entries(offsets), dtype=np.int64)
    """Where the longest run ends that begins at each token."""
    for text in range(offsets.size - 1):
        begin, tokens = offsets[text], offsets[text + 1] - offsets[text]
        first, last = tokens, -1
        for period in range(1, min(LONGEST_PERIOD, tokens // LEAST_TIMES) + 1):
            # So many tokens in a row must equal those a period before; one of them is looked at.
            least = (LEAST_TIMES - 1) * period
            probe = period + least - 1
            while probe < tokens:
                if hashes[begin + probe] != hashes[begin + probe - period]:
                    probe += least
                    continue
                left = right = probe
                while (
                    left > period and hashes[begin + left - 1] == hashes[begin + left - 1 - period]
                ):
                    left -= 1
                while right < tokens and hashes[begin + right] == hashes[begin + right - period]:
                    right += 1
                if right - left >= least:
                    start = left - period
                    reach[start] = max(reach[start], right)
                    first, last = min(first, start), max(last, start)
                    counts[text, 2] = max(counts[text, 2], (right - start) // period)
                probe = right + least
        runs = covered = end = 0
        for start in range(first, last + 1):
            if reach[start] > end:
                runs += 1
                covered += reach[start] - max(start, end)
                end = reach[start]
            reach[start] = 0
        counts[text, 0] = runs
        counts[text, 1] = covered
