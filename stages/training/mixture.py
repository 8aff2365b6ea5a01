"""Which source each sequence of a stream comes from: shuffled, yet with exact shares at any point.

Drawing sources at random is simple and wrong twice: shares drift, and to know how often a source
was used before position p one must replay everything before p. Here the stream is cut into blocks.
How much of each source comes before a block is the integral of its weight up to there, in whole
numbers: a closed form, so a seek costs the same anywhere, and rounding never adds up (fixed counts
in each block, as in Levanter's `data/mixture.py`, repeat their rounding error in every block).
Inside a block the order is a keyed shuffle.

Weights are constant, or go in a straight line from the begin of a phase to its end. Then

    share of source s up to position x = a_s x + (b_s - a_s) x² / (2 span)

for weights a_s at the begin and b_s at position `span` and after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from stages.text.native import compiled
from stages.training.permutation import GOLDEN, Indices, mix

BLOCK = 32
"""Sequences in a block, unless there are more than 5 sources (see `Mixture`). So few, because a
phase may end inside a block: it is then within a few sequences of its shares as well."""

SHORTEST = 16
"""Blocks that interpolated weights are followed in at least, where sources are few enough."""

_32 = np.uint64(32)


class _Blocks(NamedTuple):
    """The order of consecutive blocks: the first of them, and their positions one after another."""

    first: int
    sources: Indices
    ordinals: Indices


class Mixture:
    """Shares of sources in a stream of sequences, and the order of sources in it.

    `weights` are read as the decimals that they are written as and need not sum to one; with `end`
    they lead there over the first `span` positions. `seed` (64 bits) chooses the order inside the
    blocks. ValueError for weights that are negative, not finite, or all 0.

    Up to a block, each source has the whole part of its share; what is left over, less than a
    sequence for each source, goes to the one with the largest share of the block that follows. That
    one has at least a 1/n of the block. So, where a block holds n² sequences or more, the count of
    no source falls from block to block: the largest can give back its n - 1 to the next one.
    What the first positions hold does not depend on how long the stream goes on.
    """

    def __init__(
        self, weights: Sequence[float], seed: int, *, end: Sequence[float] = (), span: int = 0
    ) -> None:
        begin, final = _whole(weights), _whole(end or weights)
        if len(begin) != len(final) or (end and span < 1):
            raise ValueError("weights that change need an end for each, and a span")
        self._seed = np.uint64(seed)
        self._constant = not end
        self._span = span if end else 1
        total, total_end = sum(begin), sum(final)
        # Shares as num(x) / den: x (linear + square x) up to the span, then `rest` for each more.
        self._den = total if self._constant else 2 * self._span * total * total_end
        self._linear = begin if self._constant else [2 * self._span * total_end * a for a in begin]
        self._square = [b * total - a * total_end for a, b in zip(begin, final, strict=True)]
        self._rest = [2 * self._span * total * b for b in final]
        self._most = max(range(len(begin)), key=lambda source: (begin[source], -source))
        present = sum(1 for a, b in zip(begin, final, strict=True) if a or b)
        least = 1 << (2 * (present - 1).bit_length())
        most = BLOCK
        if not self._constant:
            most = min(BLOCK, 1 << max(0, (span // SHORTEST).bit_length() - 1))
        self.block = max(least, most)
        self._latest = _Blocks(0, np.zeros(0, np.int64), np.zeros(0, np.int64))

    def counts(self, block: int) -> Indices:
        """Sequences of each source in all blocks before `block`; they sum to block * self.block."""
        position = block * self.block
        counts = [share // self._den for share in self._shares(position)]
        counts[self._fullest(block)] += position - sum(counts)
        return np.array(counts, dtype=np.int64)

    def place(self, first: int, count: int) -> tuple[Indices, Indices]:
        """`count` positions from `first`: source of each, and how many of it came before."""
        blocks = self._blocks(first // self.block, (first + count - 1) // self.block)
        begin = first - blocks.first * self.block
        part = slice(begin, begin + count)
        return blocks.sources[part].copy(), blocks.ordinals[part].copy()

    def used(self, positions: int) -> Indices:
        """Sequences of each source among the first `positions` of the stream."""
        block, within = divmod(positions, self.block)
        counts = self.counts(block)
        if within:
            sources, _ = self.place(positions - within, within)
            counts += np.bincount(sources, minlength=len(counts))
        return counts

    def position(self, source: int, ordinal: int) -> int:
        """Where the sequence of `source` stands that has `ordinal` of it before it.

        `place` backwards. ValueError if the source never comes to it.
        """
        block = self._block_of(source, ordinal)
        sources, ordinals = self.place(block * self.block, self.block)
        found = np.flatnonzero((sources == source) & (ordinals == ordinal))
        return block * self.block + int(found[0])

    def _block_of(self, source: int, ordinal: int) -> int:
        """The last block that `ordinal` or fewer come before, by bisection on the whole parts.

        A count is above its whole part at the fullest source alone, by less than that gains in a
        block: so the block found by whole parts is the one, or the one after it.
        """

        def whole(block: int) -> int:
            return self._share(source, block * self.block) // self._den

        high = 1
        while whole(high) <= ordinal:
            high *= 2
            if high > 2**62:
                raise ValueError(f"source {source} has no sequence {ordinal} in this mixture")
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if whole(middle) <= ordinal else (low, middle)
        return low if int(self.counts(low)[source]) <= ordinal else low - 1

    def _shares(self, position: int) -> list[int]:
        """Numerators of the sources' shares of the first `position` sequences."""
        if self._constant:
            return [weight * position for weight in self._linear]
        x = min(position, self._span)
        shares = [x * (a + b * x) for a, b in zip(self._linear, self._square, strict=True)]
        if position > x:
            beyond = position - x
            shares = [share + beyond * b for share, b in zip(shares, self._rest, strict=True)]
        return shares

    def _share(self, source: int, position: int) -> int:
        """The numerator of one source's share; as `_shares`."""
        if self._constant:
            return self._linear[source] * position
        x = min(position, self._span)
        share = x * (self._linear[source] + self._square[source] * x)
        return share + (position - x) * self._rest[source]

    def _fullest(self, block: int) -> int:
        """The source with the largest share of `block`, the first of equals."""
        if self._constant:
            return self._most
        before, after = (self._shares((block + more) * self.block) for more in (0, 1))
        gains = [b - a for a, b in zip(before, after, strict=True)]
        return gains.index(max(gains))

    def _blocks(self, first: int, last: int) -> _Blocks:
        """The order of blocks `first` to `last`; those that were asked for last are remembered."""
        latest = self._latest
        known = range(latest.first, latest.first + len(latest.sources) // self.block)
        if first not in known or last not in known:
            counts = np.stack([self.counts(number) for number in range(first, last + 2)])
            latest = self._latest = _Blocks(first, *_order(counts, self._seed, first))
        return latest


def _whole(weights: Sequence[float]) -> list[int]:
    """Weights as whole numbers in the same proportion: 0.1 is a tenth, not the binary nearest."""
    if not weights or not all(math.isfinite(w) and w >= 0 for w in weights) or not any(weights):
        raise ValueError(f"weights must be finite, not negative and not all 0: {list(weights)}")
    written = [w if isinstance(w, int) else Decimal(repr(float(w))) for w in weights]
    ratios = [weight.as_integer_ratio() for weight in written]
    common = math.lcm(*(denominator for _, denominator in ratios))
    return [numerator * (common // denominator) for numerator, denominator in ratios]


@compiled
def _order(counts: Indices, seed: np.uint64, first: int) -> tuple[Indices, Indices]:
    """Sources of blocks one after another, each shuffled, and of each the number before it.

    `counts` [blocks + 1, sources] are those before each block and after the last.
    """
    begin, end = counts[0].sum(), counts[-1].sum()
    sources, ordinals = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
    used = counts[0].copy()
    place = 0
    for number in range(len(counts) - 1):
        state = mix(seed + np.uint64(first + number) * GOLDEN)
        before = place
        for source in range(counts.shape[1]):
            for _ in range(counts[number + 1, source] - counts[number, source]):
                # Into a random place of those up to here (Fisher and Yates, inside out). The high
                # half of a random word is scaled to it (Lemire 2019); blocks are far below 2^32.
                state += GOLDEN
                reach = np.uint64(place - before + 1)
                chosen = before + np.int64(((mix(state) >> _32) * reach) >> _32)
                sources[place] = sources[chosen]
                sources[chosen] = source
                place += 1
    for place in range(len(sources)):
        source = sources[place]
        ordinals[place] = used[source]
        used[source] += 1
    return sources, ordinals
