"""Laying documents into sequences of one length: which tokens go where.

A piece is a run of tokens of one document. Arithmetic on lengths alone; no token is touched here.
Every strategy gives the pieces of a sequence from left to right, and pads only at the right end of
a sequence. `best_fit` and `concatenate` place every token exactly once; `best_fit_crop` places each
document once, and drops what it crops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stages.pack.bits import empty_set
from stages.pack.placing import place_cropped, place_whole, sorted_by

Ints = npt.NDArray[np.int64]

_SPARSE = 8
"""Counting by length pays unless the lengths are so many times more than the documents."""


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
        """The same pieces with sequence i moved to `places[i]`, sorted by sequence.

        The pieces of a sequence keep their order: from left to right, as strategies give them.
        """
        sequence = places[self.sequence]
        order = sorted_by(sequence, self.sequences)
        return Layout(
            self.sequences,
            sequence[order],
            self.start[order],
            self.length[order],
            self.document[order],
            self.document_start[order],
        )

    def used(self) -> Ints:
        """[sequences] tokens in each; the rest is padding."""
        used = np.zeros(self.sequences, dtype=np.int64)
        np.add.at(used, self.sequence, self.length)
        return used


def best_fit(lengths: Ints, sequence_length: int) -> Layout:
    """Best-fit decreasing (Ding et al. 2024, "Fewer truncations improve language modeling").

    No document that fits into a sequence is cut. A longer one is first cut into full sequences;
    what remains is placed like a short document: the longest first, each into the fullest sequence
    that still has room (the one that was touched last among equals). O(n log L) for n documents and
    sequences of L tokens.
    """
    full = lengths // sequence_length
    rest = lengths - full * sequence_length
    document = np.repeat(np.arange(len(lengths)), full)
    nth = np.arange(len(document)) - np.repeat(np.cumsum(full) - full, full)
    short = np.flatnonzero(rest)
    short = short[_longest_first(rest[short], sequence_length)]
    words, levels = empty_set(sequence_length + 1)
    sequence, start, opened = place_whole(rest[short], sequence_length, words, levels)
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


def best_fit_crop(lengths: Ints, sequence_length: int) -> Layout:
    """Full sequences that begin with a document's begin (nanochat's "BOS-aligned best fit").

    A sequence takes the longest document that fits into what is left of it, again and again; when
    none fits, the shortest of those that wait is cropped to fill it (github.com/karpathy/nanochat,
    nanochat/dataloader.py, which so chooses from a buffer of 1,000 documents; here it is all of
    them, so that far less is cropped). A document longer than a sequence is cropped to one. What is
    cropped away is in no sequence. Only the last sequence may hold padding. O(n log L).
    """
    fitted = np.minimum(lengths, sequence_length)
    short = np.flatnonzero(fitted)
    short = short[_longest_first(fitted[short], sequence_length)]
    words, levels = empty_set(sequence_length + 1)
    document, sequence, start, length = place_cropped(fitted[short], sequence_length, words, levels)
    return Layout(
        sequences=int(sequence[-1]) + 1 if len(sequence) else 0,
        sequence=sequence,
        start=start,
        length=length,
        document=short[document],
        document_start=np.zeros(len(document), dtype=np.int64),
    )


def concatenate(lengths: Ints, sequence_length: int) -> Layout:
    """Documents one after the other in their order, cut at every `sequence_length` tokens."""
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - lengths
    first = starts // sequence_length
    pieces = np.where(lengths > 0, (ends - 1) // sequence_length - first + 1, 0)
    document = np.repeat(np.arange(len(lengths)), pieces)
    nth = np.arange(len(document)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    sequence = first[document] + nth
    begin = np.maximum(sequence * sequence_length, starts[document])
    end = np.minimum((sequence + 1) * sequence_length, ends[document])
    return Layout(
        sequences=-(-int(ends[-1]) // sequence_length) if len(ends) else 0,
        sequence=sequence,
        start=begin - sequence * sequence_length,
        length=end - begin,
        document=document,
        document_start=begin - starts[document],
    )


Strategy = Callable[[Ints, int], Layout]

STRATEGIES: dict[str, Strategy] = {
    "best_fit": best_fit,
    "best_fit_crop": best_fit_crop,
    "concatenate": concatenate,
}


def _longest_first(lengths: Ints, longest: int) -> Ints:
    """Places of the lengths (1…longest) in falling order; equal ones in the order given."""
    if longest > _SPARSE * len(lengths):
        return np.argsort(-lengths, kind="stable")
    return sorted_by(longest - lengths, longest)
