"""The sample clock: the batch of training step n is a pure function of shards, phases and seed.

No state is carried from step to step, so there is nothing to save but the step number, every world
size sees the same global batches, and a seek costs the same anywhere. Three bijections make a
batch:

    training step -> positions of its phase's stream of sequences
    position      -> (source, ordinal), by the phase's mixture; ordinals go on from phase to phase
    ordinal       -> (epoch, index), by the number of sequences; index shuffled again in each epoch

so over an epoch every sequence of a source is used exactly once, across phases and batch sizes.

The mixture. Drawing sources at random is simple and wrong twice: shares drift, and to know how
often a source was used before position p one must replay everything before p. Here the stream is
cut into blocks. How much of each source comes before a block is the integral of its weight up to
there, in whole numbers: a closed form, so a seek costs the same anywhere, and rounding never adds
up (fixed counts in each block, as in Levanter's `data/mixture.py`, repeat their rounding error in
every block). Inside a block the order is a keyed shuffle. Weights are constant, or go in a straight
line from the begin of a phase to its end. Then

    share of source s up to position x = a_s x + (b_s - a_s) x² / (2 span)

for weights a_s at the begin and b_s at position `span` and after it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from artifacts_schema.errors import UsageError
from stages.training.permutation import (
    GOLDEN,
    Indices,
    Permutation,
    key_of,
    mix,
    round_keys,
    shuffle_ordinals,
)
from stages.training.run_plan import check_phase
from stages.training.schedule import Phase, Timeline, merge_ranges
from stages.training.token_shards import Batch, TokenShards

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
        """Position of the sequence of `source` with `ordinal` sequences of it before.

        The inverse of `place`. ValueError if the source never has so many.
        """
        block = self._block_of(source, ordinal)
        sources, ordinals = self.place(block * self.block, self.block)
        results = np.flatnonzero((sources == source) & (ordinals == ordinal))
        return block * self.block + int(results[0])

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
        return [self._share(source, position) for source in range(len(self._linear))]

    def _share(self, source: int, position: int) -> int:
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
        """The order of blocks `first` to `last`; the latest are cached."""
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


def _order(counts: Indices, seed: np.uint64, first: int) -> tuple[Indices, Indices]:
    """Sources of blocks one after another, each shuffled, and of each the number before it.

    `counts` [blocks + 1, sources] are those before each block and after the last.
    """
    blocks, sources = len(counts) - 1, counts.shape[1]
    size = int(counts[1].sum() - counts[0].sum())
    numbers = np.arange(first, first + blocks, dtype=np.uint64)[:, None]
    places = np.arange(1, size + 1, dtype=np.uint64)
    # Each into a random place of those up to it (Fisher and Yates, inside out). The high half of a
    # random word is scaled to the place (Lemire 2019); blocks are far below 2^32.
    drawn = mix(mix(seed + numbers * GOLDEN) + places * GOLDEN) >> _32
    chosen = ((drawn * places) >> _32).astype(np.int64)
    sorted_sources = np.repeat(np.tile(np.arange(sources), blocks), np.diff(counts, axis=0).ravel())
    order, rows = sorted_sources.reshape(blocks, size), np.arange(blocks)
    for place in range(1, size):
        source, other = order[:, place].copy(), chosen[:, place]
        order[:, place] = order[rows, other]
        order[rows, other] = source
    flat = order.ravel()
    by_source = np.argsort(flat, kind="stable")
    totals = counts[-1] - counts[0]
    ordinals = np.empty_like(flat)
    starts = np.cumsum(totals) - totals
    ordinals[by_source] = np.arange(len(flat)) + np.repeat(counts[0] - starts, totals)
    return flat, ordinals


@dataclass(frozen=True)
class Planned:
    """Plan of one source in sequences: available, planned, and by phase; `positions` in tokens."""

    source: str
    available: int
    planned: int
    positions: int
    by_phase: tuple[int, ...]

    @property
    def epochs(self) -> float:
        """Planned over available sequences; 0 for an empty source."""
        return self.planned / self.available if self.available else 0.0


class Draw(NamedTuple):
    """What one training step reads: row by row a source and a sequence of it; and its phase."""

    sources: Indices
    sequences: Indices
    phase: int


def rank_rows(rows: int, rank: int, world: int) -> slice:
    """Which of the `rows` of a global batch one of `world` ranks reads.

    A rank has consecutive rows; joined in the order of ranks they are the batch, whatever the
    number of ranks. Where it does not divide the rows, ranks differ by one row, and of fewer rows
    than ranks some read none: the loss is a sum over all ranks' targets, divided by their global
    count, so every token weighs the same. ValueError for a rank that is none of `world`.
    """
    if not 0 <= rank < world:
        raise ValueError(f"rank {rank} is not one of 0…{world - 1}")
    return slice(rank * rows // world, (rank + 1) * rows // world)


class SampleClock(Timeline):
    """Batches by training step, counted from 1 as in `training_run` tables.

    `sources` maps each source to its number of sequences; source ids are positions in
    `clock.sources`, the sorted names. `skip` lists ranges [first, last] of training steps that are
    skipped: they read nothing, and no other step changes. UsageError for a phase that cannot be
    run: no steps, unknown source, weights that do not sum to one, weight on an empty source.
    """

    def __init__(
        self,
        sources: Mapping[str, int],
        phases: Sequence[Phase],
        seed: int,
        skip: Sequence[tuple[int, int]] = (),
    ) -> None:
        if not phases:
            raise UsageError("a run needs at least one phase", where="phases")
        for index, phase in enumerate(phases):
            check_phase(phase, sources, where=f"phases.{index}")
        super().__init__(phases)
        self.seed, self.sizes = seed, dict(sorted(sources.items()))
        self.sources = tuple(sorted(sources))
        self.skip = merge_ranges([(max(first, 1), min(last, self.steps)) for first, last in skip])
        self._sizes = np.array([sources[name] for name in self.sources], dtype=np.int64)
        self._keys = [key_of("epoch", seed, name) for name in self.sources]
        self._round_keys = np.stack([round_keys(key) for key in self._keys])
        self._mixtures = [self._mixture(index, seed) for index in range(len(self.phases))]
        self._used_before = [np.zeros(len(self.sources), dtype=np.int64)]
        for phase, mixture in zip(self.phases, self._mixtures, strict=True):
            self._used_before.append(self._used_before[-1] + mixture.used(phase.positions))

    def skipped(self, step: int) -> bool:
        """Whether the skip list names `step`."""
        index = bisect_right(self.skip, step, key=lambda part: part[0]) - 1
        return index >= 0 and step <= self.skip[index][1]

    def batch(self, step: int) -> Draw:
        """What training step `step` reads; ValueError if it is skipped or outside 1…steps."""
        if self.skipped(step):
            raise ValueError(f"training step {step} is on the skip list")
        phase, first, rows = self.rows(step)
        sources, ordinals = self._mixtures[phase].place(first, rows)
        ordinals += self._used_before[phase][sources]
        return Draw(
            sources, shuffle_ordinals(sources, ordinals, self._sizes, self._round_keys), phase
        )

    def steps_of(self, source: str, sequences: Iterable[int]) -> list[int]:
        """The training steps that read any of these sequences of `source`, sorted; none is skipped.

        The bijections backwards: the cost grows with sequences and epochs, not with steps.
        ValueError for a source that is none of `sources`.
        """
        place = self.sources.index(source)
        size, used = int(self._sizes[place]), int(self._used_before[-1][place])
        wanted = np.fromiter(sequences, dtype=np.int64)
        steps = set()
        for epoch in range(-(-used // size) if size else 0):
            ordinals = epoch * size + Permutation(size, self._keys[place], epoch).inverse(wanted)
            steps |= {self._step_of(place, one) for one in ordinals.tolist() if one < used}
        return sorted(step for step in steps if not self.skipped(step))

    def read_until(self, step: int) -> Indices:
        """[sources] Sequences that steps 1…step read of each source; skipped steps read none."""
        read = self._used_until(step)
        for first, last in self.skip:
            if first <= step:
                read = read - self._used_until(min(last, step)) + self._used_until(first - 1)
        return read

    def last_within(self, source: str, most: int) -> int:
        """The last training step up to which at most `most` sequences of `source` are read."""
        place = self.sources.index(source)
        steps = range(1, self.steps + 1)
        return bisect_right(steps, most, key=lambda step: int(self.read_until(step)[place]))

    def planned(self) -> list[Planned]:
        """The plan by source, in the order of `sources`; skipped steps do not count."""
        ends = [self.read_until(first - 1) for first in self.first_steps]
        planned = np.diff(np.stack(ends), axis=0)
        lengths = np.array([phase.sequence_length for phase in self.phases])
        return [
            Planned(
                source=name,
                available=int(self._sizes[i]),
                planned=int(planned[:, i].sum()),
                positions=int((planned[:, i] * lengths).sum()),
                by_phase=tuple(planned[:, i].tolist()),
            )
            for i, name in enumerate(self.sources)
        ]

    def _used_until(self, step: int) -> Indices:
        """Sequences of each source that steps 1…step stand for, skipped or not."""
        if step == 0:
            return self._used_before[0]
        phase, first, rows = self.rows(step)
        return self._used_before[phase] + self._mixtures[phase].used(first + rows)

    def _step_of(self, source: int, ordinal: int) -> int:
        """The training step that reads the sequence with this ordinal, skipped or not."""
        phase = bisect_right(self._used_before, ordinal, key=lambda used: int(used[source])) - 1
        within = ordinal - int(self._used_before[phase][source])
        return self.step_at(phase, self._mixtures[phase].position(source, within))

    def _mixture(self, index: int, seed: int) -> Mixture:
        """The mixture of a phase; without weights each source by its size."""
        phase = self.phases[index]
        by_size = dict(zip(self.sources, self._sizes.tolist(), strict=True))
        begin = phase.weights or by_size
        return Mixture(
            [begin.get(name, 0) for name in self.sources],
            int.from_bytes(key_of("mixture", seed, index)[:8], "little"),
            end=[phase.weights_end.get(n, 0) for n in self.sources] if phase.weights_end else (),
            span=phase.span or phase.positions,
        )


def clock_batch(
    shards: TokenShards, clock: SampleClock, step: int, *, rank: int = 0, world: int = 1
) -> Batch:
    """The rows that `rank` of `world` reads in training step `step`: all of them to a single one.

    The ranks' rows, put together in order, are the step's batch at any world size. ValueError for a
    step that is skipped or outside the run.
    """
    draw = clock.batch(step)
    rows = rank_rows(len(draw.sources), rank, world)
    return shards.batch(draw.sources[rows], draw.sequences[rows])
