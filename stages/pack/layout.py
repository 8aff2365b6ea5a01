"""Laying documents into sequences of one length: which tokens go where.

A piece is a run of tokens of one document. Arithmetic on lengths alone; no token is touched
here. Every strategy gives the pieces of a sequence from left to right, and pads only at the
right end of a sequence. `best_fit` and `concatenate` place every token exactly once;
`best_fit_crop` places each document once, and drops what it crops.

The free spaces of sequences are a set of integers: a binary tree of bools in one array, as heaps
are stored, where a node is true if any integer below it is in the set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stages.engine.kernels import kernel

Ints = npt.NDArray[np.int64]
Tree = npt.NDArray[np.bool_]


def empty_set(bound: int) -> Tree:
    """No integer of 0…bound-1; the leaves are the second half of the tree."""
    return np.zeros(2 << max(bound - 1, 1).bit_length(), dtype=np.bool_)


@kernel
def add(tree: Tree, member: int) -> None:
    """Put `member` into the set."""
    node = len(tree) // 2 + member
    while node and not tree[node]:
        tree[node] = True
        node >>= 1


@kernel
def remove(tree: Tree, member: int) -> None:
    """Take `member`, which is in the set, out of it."""
    node = len(tree) // 2 + member
    tree[node] = False
    while node > 1 and not tree[node ^ 1]:
        node >>= 1
        tree[node] = False


@kernel
def nearest(tree: Tree, bound: int, up: bool) -> int:
    """The least member that is `bound` or more, or the greatest that is no more; -1 for none."""
    leaves = len(tree) // 2
    node = leaves + bound
    while not tree[node]:
        while node > 1 and (node & 1 == up or not tree[node ^ 1]):
            node >>= 1
        if node <= 1:
            return -1
        node ^= 1
    while node < leaves:
        node = 2 * node + (not up)
        node ^= not tree[node]
    return node - leaves


@kernel
def place_whole(lengths: Ints, capacity: int, spaces: Tree) -> tuple[Ints, Ints, int]:
    """Sequence and start of each of `lengths` (falling, 1…capacity); how many sequences there are.

    `spaces` is an empty set of 0…capacity: the spaces that sequences have. Sequences with one space
    are a stack: the last of them, and for each the one below it.
    """
    last = np.full(capacity + 1, -1, np.int32)
    below = np.empty(len(lengths), np.int32)
    sequence = np.empty(len(lengths), np.int64)
    start = np.empty(len(lengths), np.int64)
    opened = 0
    for item in range(len(lengths)):
        length = lengths[item]
        space = nearest(spaces, length, True)
        if space < 0:
            chosen, space = opened, capacity
            opened += 1
        else:
            chosen = last[space]
            last[space] = below[chosen]
            if last[space] < 0:
                remove(spaces, space)
        sequence[item], start[item] = chosen, capacity - space
        left = space - length
        if left:
            if last[left] < 0:
                add(spaces, left)
            below[chosen], last[left] = last[left], chosen
    return sequence, start, opened


@kernel
def place_cropped(
    lengths: Ints, capacity: int, waiting_lengths: Tree
) -> tuple[Ints, Ints, Ints, Ints]:
    """Item, sequence, start and length of each piece, in order; `lengths` fall from capacity to 1.

    A piece is an item, whole or its beginning. `waiting_lengths` is an empty set of 0…capacity.
    """
    waiting = np.zeros(capacity + 1, np.int32)
    first = np.zeros(capacity + 1, np.int32)
    for item in range(len(lengths)):
        length = lengths[item]
        if waiting[length] == 0:
            first[length] = item
            add(waiting_lengths, length)
        waiting[length] += 1
    items = np.empty(len(lengths), np.int64)
    sequence = np.empty(len(lengths), np.int64)
    start = np.empty(len(lengths), np.int64)
    taken = np.empty(len(lengths), np.int64)
    row, used = 0, 0
    for piece in range(len(lengths)):
        length = nearest(waiting_lengths, capacity - used, False)
        if length < 0:
            length = nearest(waiting_lengths, 0, True)
        items[piece] = first[length]
        first[length] += 1
        waiting[length] -= 1
        if waiting[length] == 0:
            remove(waiting_lengths, length)
        sequence[piece], start[piece] = row, used
        taken[piece] = min(length, capacity - used)
        used += taken[piece]
        if used == capacity:
            row, used = row + 1, 0
    return items, sequence, start, taken


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
        order = np.argsort(sequence, kind="stable")
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
    short = short[np.argsort(-rest[short], kind="stable")]
    sequence, start, opened = place_whole(
        rest[short], sequence_length, empty_set(sequence_length + 1)
    )
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
    short = short[np.argsort(-fitted[short], kind="stable")]
    document, sequence, start, length = place_cropped(
        fitted[short], sequence_length, empty_set(sequence_length + 1)
    )
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
