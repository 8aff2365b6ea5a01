"""How many pairs exist, and how many of them were found: measured on a sample of documents.

The documents of least mixed id are compared with all others by exact Jaccard similarity. Shingles
of the sample are in a hash table; every document's are looked up in it, most of them in vain, which
a bitmap tells immediately. So a scan costs about a nanosecond a shingle, not a comparison a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stages.dedup.two_hop import VerifiedPairs
from stages.dedup.verification import STEPS, at_least, measure_pairs, similarity_steps
from stages.engine.kernels import kernel
from stages.scoring.uncertainty import wilson

if TYPE_CHECKING:
    from stages.dedup.exact import Classes
    from stages.dedup.index import Corpus
    from stages.engine import ShardOutput, ShardResult


_BITS_A_SHINGLE = 32
"""So one lookup in 32 is made in vain."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SLACK = 1 - 1e-6
"""Of the floor: the exact measure decides afterwards, in float32."""


@dataclass(frozen=True, eq=False)
class SampleTable:
    """The sampled documents, and where each of their shingles occurs."""

    numbers: NDArray[np.int64]
    sizes: NDArray[np.int64]
    shingles: NDArray[np.uint64]
    """Kept ones, end to end."""
    offsets: NDArray[np.int64]
    bitmap: NDArray[np.uint64]
    """A bit for each place of a shingle that occurs; a power of two bits."""
    keys: NDArray[np.uint64]
    """Open addressing: the shingle at each slot; a power of two slots."""
    entries: NDArray[np.int32]
    """Which of the different shingles it is; -1: the slot is empty."""
    begins: NDArray[np.int32]
    """Where the postings of each different shingle begin, and the end of the last."""
    postings: NDArray[np.int32]
    """Places in the sample."""


def sample_table(numbers: NDArray[np.int64], corpus: Corpus) -> SampleTable:
    """The table of these documents' kept shingles."""
    shingles, offsets = corpus.shingles(numbers)
    owner = np.repeat(np.arange(len(numbers), dtype=np.int32), np.diff(offsets))
    order = np.argsort(shingles)
    different, begins = np.unique(shingles[order], return_index=True)
    slots = 16
    while slots < 2 * len(different):
        slots *= 2
    keys, entries, bitmap = _fill_table(different, slots, slots * _BITS_A_SHINGLE // 2)
    return SampleTable(
        numbers=numbers,
        sizes=corpus.sizes(numbers),
        shingles=shingles,
        offsets=offsets,
        bitmap=bitmap,
        keys=keys,
        entries=entries,
        begins=np.append(begins, len(shingles)).astype(np.int32),
        postings=owner[order],
    )


def sample_candidates(
    shingles: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    table: SampleTable,
    floor: float,
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (document, place in the sample) that share enough for a similarity of `floor`.

    `shingles` holds the kept ones of the documents, `sizes` counts all of each.
    """
    return _scan_table(
        shingles,
        offsets,
        sizes,
        table.sizes,
        table.bitmap,
        table.keys,
        table.entries,
        table.begins,
        table.postings,
        floor * _SLACK,
        most,
    )


@kernel
def _fill_table(
    different: NDArray[np.uint64], slots: int, bits: int
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint64]]:
    keys = np.zeros(slots, dtype=np.uint64)
    entries = np.full(slots, -1, dtype=np.int32)
    bitmap = np.zeros(bits // 64, dtype=np.uint64)
    mask, bit_mask = np.uint64(slots - 1), np.uint64(bits - 1)
    for i in range(len(different)):
        spread = (different[i] * _SPREAD) >> np.uint64(20)
        bit = spread & bit_mask
        bitmap[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
        slot = spread & mask
        while entries[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        keys[slot], entries[slot] = different[i], i
    return keys, entries, bitmap


@kernel
def _scan_table(
    shingles: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    sample_sizes: NDArray[np.int64],
    bitmap: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    entries: NDArray[np.int32],
    begins: NDArray[np.int32],
    postings: NDArray[np.int32],
    floor: float,
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    mask, bit_mask = np.uint64(len(keys) - 1), np.uint64(64 * len(bitmap) - 1)
    shared = np.zeros(len(sample_sizes), dtype=np.int64)
    touched = np.empty(len(sample_sizes), dtype=np.int64)
    row = np.empty(1024, dtype=np.int64)
    place = np.empty(1024, dtype=np.int64)
    made = 0
    for document in range(len(offsets) - 1):
        count = 0
        for at in range(offsets[document], offsets[document + 1]):
            spread = (shingles[at] * _SPREAD) >> np.uint64(20)
            bit = spread & bit_mask
            if not (bitmap[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1):
                continue
            slot = spread & mask
            while entries[slot] >= 0 and keys[slot] != shingles[at]:
                slot = (slot + np.uint64(1)) & mask
            entry = entries[slot]
            if entry < 0:
                continue
            for posting in range(begins[entry], begins[entry + 1]):
                other = postings[posting]
                if shared[other] == 0:
                    touched[count] = other
                    count += 1
                shared[other] += 1
        if made + count > len(row):
            row = np.append(row[:made], np.empty(made + 2 * count, dtype=np.int64))
            place = np.append(place[:made], np.empty(made + 2 * count, dtype=np.int64))
        for i in range(count):
            other = touched[i]
            # Similarity is at most shared / larger size; of cut documents `most` values count.
            larger = min(max(sizes[document], sample_sizes[other]), most)
            if shared[other] >= floor * larger:
                row[made], place[made] = document, other
                made += 1
            shared[other] = 0
    return row[:made], place[:made]


PARTNERED = 0.8
"""From this similarity on a document counts as one that has a partner."""
LOOKUPS = 16_384
"""Places of the sample's table that a document may hit; if documents are so similar that it would
be more, a smaller sample is compared."""
SHINGLES = 1 << 20
"""Kept ones of the sample: some 50 MB with their table."""

_DRAWN = np.dtype([("mixed", "<u8"), ("number", "<i8")])
_DOCUMENTS = 1 << 16


@dataclass(frozen=True)
class ScanTask:
    """Documents [low, high)."""

    id: str
    low: int
    high: int


def scan_tasks(low: int, high: int, documents_per_task: int) -> list[ScanTask]:
    """Documents [low, high) in tasks of one size, `documents_per_task` at most."""
    bounds = np.linspace(low, high, -(-(high - low) // documents_per_task) + 1).astype(np.int64)
    return [ScanTask(f"{begin:012d}", begin, end) for begin, end in pairwise(bounds.tolist())]


def draw_sample(
    task: ScanTask, out: ShardOutput, *, corpus: Corpus, classes: Classes, sample: int
) -> None:
    """Leave the `sample` documents of least mixed id of the task: scratch `drawn`.

    They are drawn among those that are compared at all: first of their exact class, with shingles.
    """
    least = np.empty(0, dtype=_DRAWN)
    for low, high, numbers in _compared_documents(task, corpus, classes):
        del low, high
        drawn = np.empty(len(numbers), dtype=_DRAWN)
        drawn["mixed"], drawn["number"] = _mix_ids(corpus.rank_ids(numbers)), numbers
        least = _least_drawn(least, drawn, sample)
    with out.open_scratch("drawn") as file:
        file.write(least.tobytes())


def choose_sample(
    results: Sequence[ShardResult], corpus: Corpus, sample: int, lookups: int = LOOKUPS
) -> NDArray[np.int64]:
    """The sample by number, ascending: of all documents those of least mixed id, at most `sample`.

    Fewer where these have more than SHINGLES, or where a document like them would hit more than
    `lookups` places of their table.
    """
    least = np.empty(0, dtype=_DRAWN)
    for result in results:
        least = _least_drawn(least, np.fromfile(result.scratch_path("drawn"), dtype=_DRAWN), sample)
    drawn = least["number"]
    kept = np.minimum(corpus.sizes(drawn), corpus.most).cumsum()
    drawn = drawn[: max(int(np.searchsorted(kept, SHINGLES, side="right")), 1)]
    shingles, offsets = corpus.shingles(drawn)
    turn = np.repeat(np.arange(len(drawn)), np.diff(offsets))
    order = np.lexsort((turn, shingles))
    ordered = shingles[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    earlier = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    # Where k of n sampled documents hold a shingle, k in n documents hit k places; but their own.
    hits = np.bincount(turn[order], 2.0 * earlier, minlength=len(drawn)).cumsum()
    too_many = np.flatnonzero(hits > lookups * np.arange(1, len(drawn) + 1))
    return np.sort(drawn[: max(int(too_many[0]), 1) if len(too_many) else None])


def scan(
    task: ScanTask,
    out: ShardOutput,
    *,
    corpus: Corpus,
    classes: Classes,
    pairs: Sequence[VerifiedPairs],
    sample: NDArray[np.int64],
    floor: float,
    bytes_at_once: int,
) -> dict[str, Any]:
    """Compare the documents of the task with the sample, and similar pairs with the verified ones.

    Returns `steps`: for each step of similarity pairs, those a band found, those found at all; and
    as bits in hex the sampled documents that have a partner, and those of which one was found.
    """
    del out
    table = sample_table(sample, corpus)
    steps = np.zeros((STEPS, 3), dtype=np.int64)
    has_partner, has_match = np.zeros((2, len(sample)), dtype=bool)
    for low, high, numbers in _compared_documents(task, corpus, classes):
        known = _known_pairs(low, high, pairs, sample)
        for part in _portions(numbers, corpus, bytes_at_once // 2):
            document, place, jaccard = _similar_pairs(part, table, corpus, floor)
            band = _look_up_bands(document, place, known, len(sample))
            near = at_least(jaccard, PARTNERED)
            has_partner[place[near]] = True
            has_match[place[near & (band > _NONE)]] = True
            # A pair of two sampled documents occurs twice.
            once = ~np.isin(document, sample) | (document > sample[place])
            step, band = similarity_steps(jaccard[once]), band[once]
            for column, counted in enumerate([band >= _NONE, band >= 0, band > _NONE]):
                steps[:, column] += np.bincount(step[counted], minlength=STEPS)
    return {
        "steps": steps.tolist(),
        "has_partner": np.packbits(has_partner).tobytes().hex(),
        "has_match": np.packbits(has_match).tobytes().hex(),
    }


def recall(values: Sequence[dict[str, Any]], sampled: int, floor: float) -> dict[str, Any]:
    """The `recall` of `statistics.json` from what `scan` returned of all tasks."""
    steps = np.array([value["steps"] for value in values], dtype=np.int64).sum(axis=0)
    with_partner, with_match = (_count_bits([value[name] for value in values]) for name in _BITS)
    return {
        "sampled": sampled,
        "floor": floor,
        "similarity": [
            {
                "from": step / STEPS,
                "to": (step + 1) / STEPS,
                "pairs": pairs,
                "by_bands": by_bands,
                "found": matches,
                "interval": interval(matches, pairs),
            }
            for step, (pairs, by_bands, matches) in enumerate(steps.tolist())
            if pairs
        ],
        "documents": {
            "similarity": PARTNERED,
            "with_partner": with_partner,
            "found": with_match,
            "interval": interval(with_match, with_partner),
        },
    }


def interval(hits: int, trials: int) -> list[float] | None:
    """Wilson's 95 % interval of a share, [low, high] to six digits; None without trials."""
    return [round(end, 6) for end in wilson(hits, trials)] if trials else None


_BITS = ("has_partner", "has_match")
_NONE = -2
"""Band of a pair that was not found."""


def _count_bits(rows: Sequence[str]) -> int:
    """How many bits are set in any row."""
    joined = 0
    for row in rows:
        joined |= int(row or "0", 16)
    return joined.bit_count()


def _compared_documents(
    task: ScanTask, corpus: Corpus, classes: Classes
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """The documents of a task that are compared, some at a time: (low, high, numbers)."""
    for low in range(task.low, task.high, _DOCUMENTS):
        high = min(low + _DOCUMENTS, task.high)
        numbers = np.arange(low, high)
        numbers = numbers[classes.is_first(low, high)]
        yield low, high, numbers[corpus.sizes(numbers) > 0]


def _portions(
    numbers: NDArray[np.int64], corpus: Corpus, bytes_at_once: int
) -> Iterator[NDArray[np.int64]]:
    """`numbers` in parts whose shingles take at most `bytes_at_once`, or one document's."""
    ends = np.minimum(corpus.sizes(numbers), corpus.most).cumsum() * 8
    begin, before = 0, 0
    while begin < len(numbers):
        end = max(int(np.searchsorted(ends, before + bytes_at_once, side="right")), begin + 1)
        yield numbers[begin:end]
        begin, before = end, int(ends[end - 1])


def _similar_pairs(
    numbers: NDArray[np.int64], table: SampleTable, corpus: Corpus, floor: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Pairs of these documents with the sample's, of a similarity from `floor` on.

    Returned as the document, the place in the sample, and their similarity.
    """
    placed = corpus.placed(numbers)
    shingles, offsets = corpus.shingles(numbers, placed)
    sizes = placed.sizes
    row, place = sample_candidates(shingles, offsets, sizes, table, floor, corpus.most)
    larger = np.maximum(sizes[row], table.sizes[place])
    like = at_least(np.minimum(sizes[row], table.sizes[place]) / larger, floor)
    like &= numbers[row] != table.numbers[place]
    met, row = np.unique(row[like], return_inverse=True)
    place = place[like]
    kept = [shingles[begin:end] for begin, end in zip(offsets[met], offsets[met + 1], strict=True)]
    jaccard, _ = measure_pairs(
        np.concatenate([*kept, table.shingles]),
        np.cumsum([0, *map(len, kept), *np.diff(table.offsets)]),
        np.concatenate([sizes[met], table.sizes]),
        row,
        place + len(met),
    )
    near = at_least(jaccard, floor)
    return numbers[met[row[near]]], place[near], jaccard[near]


def _known_pairs(
    low: int, high: int, pairs_by_generation: Sequence[VerifiedPairs], sample: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """Found pairs of documents [low, high) with the sample: sorted codes, and their bands."""
    codes, bands = [np.empty(0, np.int64)], [np.empty(0, np.int16)]
    for pairs in pairs_by_generation:
        for side in pairs.sides:
            for piece in side.slices(low, high, _DOCUMENTS):
                place = np.minimum(np.searchsorted(sample, piece["left"]), len(sample) - 1)
                there = sample[place] == piece["left"]
                codes.append(piece["right"][there] * len(sample) + place[there])
                bands.append(piece["band"][there])
    code = np.concatenate(codes)
    order = np.argsort(code)
    return code[order], np.concatenate(bands)[order]


def _look_up_bands(
    document: NDArray[np.int64],
    place: NDArray[np.int64],
    known: tuple[NDArray[np.int64], NDArray[np.int16]],
    sampled: int,
) -> NDArray[np.int16]:
    """The band that found each pair, -1 for closure, _NONE where it was not found."""
    codes, bands = known
    if not len(codes):
        return np.full(len(document), _NONE, dtype=np.int16)
    code = document * sampled + place
    at = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
    return np.where(codes[at] == code, bands[at], np.int16(_NONE))


def _least_drawn(one: NDArray[Any], other: NDArray[Any], most: int) -> NDArray[Any]:
    both = np.concatenate([one, other])
    return both[np.lexsort((both["number"], both["mixed"]))[:most]]


def _mix_ids(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that have nothing to do with the order of ids (the finalizer of splitmix64)."""
    mixed = ids ^ (ids >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
