"""Which documents share how much with a sample: a table of the sample's shingles, and a scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled

if TYPE_CHECKING:
    from stages.dedup.index import Corpus

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
    keys, entries, bitmap = _filled(different, slots, slots * _BITS_A_SHINGLE // 2)
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


def candidates_of(
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
    return _scanned(
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


@compiled
def _filled(
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


@compiled
def _scanned(
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
        reached = 0
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
                    touched[reached] = other
                    reached += 1
                shared[other] += 1
        if made + reached > len(row):
            row = np.append(row[:made], np.empty(made + 2 * reached, dtype=np.int64))
            place = np.append(place[:made], np.empty(made + 2 * reached, dtype=np.int64))
        for i in range(reached):
            other = touched[i]
            # Similarity is at most shared / larger size; of cut documents `most` values count.
            larger = min(max(sizes[document], sample_sizes[other]), most)
            if shared[other] >= floor * larger:
                row[made], place[made] = document, other
                made += 1
            shared[other] = 0
    return row[:made], place[:made]
