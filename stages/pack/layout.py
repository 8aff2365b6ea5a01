"""Laying documents into sequences of one length: which tokens go where.

A piece is a run of tokens of one document. Both strategies place every token exactly once and pad
only at the right end of a sequence. Arithmetic on lengths alone; no token is touched here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Pieces as columns; `start` counts within the sequence, `document_start` in the document."""

    sequences: int
    sequence: Ints
    start: Ints
    length: Ints
    document: Ints
    document_start: Ints

    def ordered(self, places: Ints) -> Layout:
        """The same pieces with sequence i moved to `places[i]`, sorted by sequence and start."""
        sequence = places[self.sequence]
        order = np.lexsort((self.start, sequence))
        return Layout(
            self.sequences,
            sequence[order],
            self.start[order],
            self.length[order],
            self.document[order],
            self.document_start[order],
        )


def best_fit(lengths: Ints, sequence_length: int) -> Layout:
    """Best-fit decreasing (Ding et al. 2024, "Fewer truncations improve language modeling").

    No document that fits into a sequence is cut. A longer one is first cut into full sequences;
    what remains is placed like a short document: the longest first, each into the fullest sequence
    that still has room (any one among equals). Needs O(n) steps on a set of free spaces that is one
    integer, a bit for each space.
    """
    full = lengths // sequence_length
    rest = lengths - full * sequence_length
    document = np.repeat(np.arange(len(lengths)), full)
    nth = np.arange(len(document)) - np.repeat(np.cumsum(full) - full, full)
    short = np.flatnonzero(rest)
    short = short[np.argsort(-rest[short], kind="stable")]
    sequence, start, opened = _place(rest[short].tolist(), sequence_length)
    return Layout(
        sequences=len(document) + opened,
        sequence=np.concatenate([np.arange(len(document)), len(document) + sequence]),
        start=np.concatenate([np.zeros(len(document), dtype=np.int64), start]),
        length=np.concatenate([np.full(len(document), sequence_length), rest[short]]),
        document=np.concatenate([document, short]),
        document_start=np.concatenate(
            [nth * sequence_length, full[short] * sequence_length],
        ),
    )


def concatenate(lengths: Ints, sequence_length: int) -> Layout:
    """Documents one after the other in their order, cut at every `sequence_length` tokens."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    edges = np.unique(np.concatenate([np.arange(0, total, sequence_length), ends - lengths, ends]))
    begin, length = edges[:-1], np.diff(edges)
    document = np.searchsorted(ends, begin, side="right")
    return Layout(
        sequences=-(-total // sequence_length),
        sequence=begin // sequence_length,
        start=begin % sequence_length,
        length=length,
        document=document,
        document_start=begin - (ends - lengths)[document],
    )


STRATEGIES = {"best_fit": best_fit, "concatenate": concatenate}


def _place(lengths: list[int], capacity: int) -> tuple[Ints, Ints, int]:
    """Bin and offset of each length (falling, at most `capacity`), and the number of bins."""
    by_space: list[list[int]] = [[] for _ in range(capacity + 1)]
    spaces = 0  # bit s is set where some open bin has exactly s free
    used: list[int] = []
    bins = np.empty(len(lengths), dtype=np.int64)
    offsets = np.empty(len(lengths), dtype=np.int64)
    for item, length in enumerate(lengths):
        fitting = spaces >> length
        if fitting:
            space = length + (fitting & -fitting).bit_length() - 1
            bin_ = by_space[space].pop()
            if not by_space[space]:
                spaces &= ~(1 << space)
        else:
            bin_, space = len(used), capacity
            used.append(0)
        bins[item], offsets[item] = bin_, used[bin_]
        used[bin_] += length
        left = space - length
        if left:
            by_space[left].append(bin_)
            spaces |= 1 << left
    return bins, offsets, len(used)
