"""Which source each sequence of a stream comes from: shuffled, yet with exact shares at any point.

Drawing sources at random is simple and wrong twice: shares drift, and to know how often a source
was used before position p one must replay everything before p. Here the stream is cut into blocks.
Up to the end of block b each source has been used round(share * positions) times, and the one with
the largest share takes the rest; so a seek costs the same anywhere, and rounding never adds up
(fixed counts in each block, as in Levanter's `data/mixture.py`, repeat their rounding error in
every block). Inside a block the order is a keyed permutation. What the first p positions hold does
not depend on how long the stream goes on.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from stages.training.permutation import Indices, Permutation, key_of

BLOCK = 1024
"""Sequences in a block, unless there are more than 32 sources (see `Mixture`)."""

REMEMBERED_BLOCKS = 4


class Mixture:
    """Shares of sources in a stream of sequences, and the order of sources in it.

    `weights` need not sum to one; ValueError if one is negative or not finite, or none is positive.
    `key` chooses the order inside the blocks. At the end of every block each source is within half
    a sequence of its share, the largest within half a sequence for each other source. A block holds
    at least (sources)^2 sequences, so that what is left for the largest is never negative.
    """

    def __init__(self, weights: Sequence[float], key: bytes) -> None:
        if not weights or not all(math.isfinite(w) and w >= 0 for w in weights) or not any(weights):
            raise ValueError(f"weights must be finite, not negative and not all 0: {list(weights)}")
        exact = [Fraction(weight) for weight in weights]
        total = sum(exact)
        self._shares = [weight / total for weight in exact]
        self._largest = max(range(len(exact)), key=lambda source: (exact[source], -source))
        self.block = max(BLOCK, 1 << (2 * (len(exact) - 1).bit_length()))
        self._key = key.hex()
        self._orders: OrderedDict[int, tuple[Indices, Indices]] = OrderedDict()

    def counts(self, block: int) -> Indices:
        """Sequences of each source in all blocks before `block`; they sum to block * self.block."""
        positions = block * self.block
        counts = [
            (2 * share.numerator * positions + share.denominator) // (2 * share.denominator)
            for share in self._shares
        ]
        counts[self._largest] += positions - sum(counts)
        return np.array(counts, dtype=np.int64)

    def place(self, positions: Indices) -> tuple[Indices, Indices]:
        """For each position of the stream: its source, and how many of that source came before."""
        sources = np.empty(len(positions), dtype=np.int64)
        ordinals = np.empty(len(positions), dtype=np.int64)
        blocks = positions // self.block
        for block in np.unique(blocks).tolist():
            rows = np.flatnonzero(blocks == block)
            offsets = positions[rows] - block * self.block
            block_sources, block_ordinals = self._order(block)
            sources[rows], ordinals[rows] = block_sources[offsets], block_ordinals[offsets]
        return sources, ordinals

    def used(self, positions: int) -> Indices:
        """Sequences of each source among the first `positions` of the stream."""
        block = positions // self.block
        sources, _ = self._order(block)
        tail = sources[: positions - block * self.block]
        return self.counts(block) + np.bincount(tail, minlength=len(self._shares))

    def _order(self, block: int) -> tuple[Indices, Indices]:
        """Sources and ordinals of one block; the last few are remembered."""
        if block not in self._orders:
            before = self.counts(block)
            inside = self.counts(block + 1) - before
            shuffle = Permutation(self.block, key_of("block", block, self._key))
            slots = shuffle(np.arange(self.block, dtype=np.int64))
            edges = np.cumsum(inside)
            sources = np.searchsorted(edges, slots, side="right").astype(np.int64)
            by_source = np.argsort(sources, kind="stable")
            rank = np.arange(self.block, dtype=np.int64) - np.repeat(edges - inside, inside)
            ordinals = np.empty(self.block, dtype=np.int64)
            ordinals[by_source] = rank + np.repeat(before, inside)
            self._orders[block] = sources, ordinals
            while len(self._orders) > REMEMBERED_BLOCKS:
                self._orders.popitem(last=False)
        return self._orders[block]
