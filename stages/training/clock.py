"""One sample clock: the batch of training step n is a pure function of shards, phases and seed.

No state is carried from step to step, so there is nothing to save but the step number, every world
size sees the same global batches, and a seek costs the same anywhere. Three bijections make a
batch:

    training step -> positions of its phase's stream of sequences
    position      -> (source, ordinal), by the phase's mixture; ordinals go on from phase to phase
    ordinal       -> (epoch, index), by the number of sequences; index shuffled anew in each epoch

so over an epoch every sequence of a source is used exactly once, across phases and batch sizes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from artifacts_schema.errors import UsageError
from stages.training.account import Planned
from stages.training.mixture import Mixture
from stages.training.permutation import Indices, Permutation, key_of, round_keys, shuffled
from stages.training.phases import Phase, Timeline, check_phase, merged
from stages.training.run_plan import RunPlan, phases_of_run, skipped_steps

__all__ = ["Draw", "Phase", "SampleClock", "clock_of_run", "rank_rows"]


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
    left out: they read nothing, and no other step changes. UsageError for a phase that cannot be
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
        self.skip = merged([(max(first, 1), min(last, self.steps)) for first, last in skip])
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
        return Draw(sources, shuffled(sources, ordinals, self._sizes, self._round_keys), phase)

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


def clock_of_run(
    run: RunPlan, sources: Mapping[str, int], lengths: Mapping[str, int]
) -> SampleClock:
    """The clock of a run over shards of these `sources` (each with its number of sequences).

    `lengths` has the tokens of a sequence of each. A range of tokens leaves out every training step
    that would read one of them. Raises UsageError for a phase that cannot be run and for a range
    that leaves nothing out.
    """
    phases = phases_of_run(run, sources, lengths)
    return SampleClock(sources, phases, run.seed, skipped_steps(run, Timeline(phases)))
