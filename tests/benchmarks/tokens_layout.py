"""Best-fit decreasing in plain Python, to measure packing against; and what chunks cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def best_fit(lengths: Sequence[int], capacity: int) -> tuple[list[int], list[int]]:
    """Bin and offset of each length (at most `capacity`): the longest first, each into the fullest
    bin with room.

    Bins wait by their free space, and the least space that suffices is found in one integer with a
    bit for each: the fastest way that is known to us without compiled code.
    """
    by_space: list[list[int]] = [[] for _ in range(capacity + 1)]
    bins, offsets, used = [0] * len(lengths), [0] * len(lengths), []
    spaces = 0
    for item in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        length = lengths[item]
        fitting = spaces >> length
        if fitting:
            space = length + (fitting & -fitting).bit_length() - 1
            found = by_space[space].pop()
            if not by_space[space]:
                spaces ^= 1 << space
        else:
            found, space = len(used), capacity
            used.append(0)
        bins[item], offsets[item] = found, used[found]
        used[found] += length
        left = space - length
        if left:
            by_space[left].append(found)
            spaces |= 1 << left
    return bins, offsets


def cut_by_chunks(lengths: NDArray[np.int64], capacity: int) -> float:
    """The share of documents no longer than `capacity` that concatenate-and-chunk cuts."""
    ends = np.cumsum(lengths)
    cut = (ends - lengths) // capacity != (ends - 1) // capacity
    return float(cut[lengths <= capacity].mean())
