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
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.training.mixture import Mixture
from stages.training.permutation import Indices, Permutation, key_of


@dataclass(frozen=True)
class Phase:
    """A span of training steps with one mixture and one batch size.

    `weights` maps sources to their share of the sequences; empty means each source by its size.
    """

    steps: int
    sequences_per_batch: int
    sequence_length: int
    weights: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_tokens(
        cls,
        tokens: int,
        sequences_per_batch: int,
        sequence_length: int,
        weights: Mapping[str, float] | None = None,
    ) -> Phase:
        """The phase of the nearest whole number of steps (half a step counts), at least one."""
        per_step = sequences_per_batch * sequence_length
        steps = max(1, (2 * tokens + per_step) // (2 * per_step)) if tokens > 0 else 0
        return cls(steps, sequences_per_batch, sequence_length, dict(weights or {}))

    @property
    def tokens(self) -> int:
        """Token positions of the phase, padding included."""
        return self.steps * self.sequences_per_batch * self.sequence_length


class Draw(NamedTuple):
    """What one training step reads: row by row a source and a sequence of it; and its phase."""

    sources: Indices
    sequences: Indices
    phase: int


@dataclass(frozen=True)
class Account:
    """Plan of one source: sequences available, planned, and how often each is seen."""

    source: str
    available: int
    planned: int
    tokens: int
    by_phase: tuple[int, ...]

    @property
    def epochs(self) -> float:
        """Planned over available sequences; 0 for an empty source."""
        return self.planned / self.available if self.available else 0.0

    @property
    def unseen(self) -> int:
        """Sequences that the plan never reads."""
        return max(0, self.available - self.planned)

    def plain(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "available_sequences": self.available,
            "planned_sequences": self.planned,
            "planned_tokens": self.tokens,
            "epochs": self.epochs,
            "unseen_sequences": self.unseen,
            "planned_sequences_by_phase": list(self.by_phase),
        }


class SampleClock:
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
        self.sources = tuple(sorted(sources))
        self.phases = tuple(phases)
        self.skip = tuple(skip)
        self._sizes = np.array([sources[name] for name in self.sources], dtype=np.int64)
        self._seed = seed
        if not self.phases:
            raise UsageError("a run needs at least one phase", where="phases")
        self._mixtures = [self._mixture(i, phase) for i, phase in enumerate(self.phases)]
        self._first_steps = [1]
        self._used_before = [np.zeros(len(self.sources), dtype=np.int64)]
        for phase, mixture in zip(self.phases, self._mixtures, strict=True):
            used = mixture.used(phase.steps * phase.sequences_per_batch)
            self._first_steps.append(self._first_steps[-1] + phase.steps)
            self._used_before.append(self._used_before[-1] + used)

    @property
    def steps(self) -> int:
        """Training steps of all phases; the last one's number."""
        return self._first_steps[-1] - 1

    def phase_of(self, step: int) -> int:
        """Index of the phase that `step` belongs to; ValueError outside 1…steps."""
        if not 1 <= step <= self.steps:
            raise ValueError(f"training step {step} is not one of 1…{self.steps}")
        return bisect_right(self._first_steps, step) - 1

    def tokens_until(self, step: int) -> int:
        """Token positions of steps 1…step, skipped ones included; 0 before the first step."""
        if step == 0:
            return 0
        phase = self.phase_of(step)
        done = sum(earlier.tokens for earlier in self.phases[:phase])
        current = self.phases[phase]
        per_step = current.sequences_per_batch * current.sequence_length
        return done + (step - self._first_steps[phase] + 1) * per_step

    def skipped(self, step: int) -> bool:
        """Whether the skip list names `step`."""
        return any(first <= step <= last for first, last in self.skip)

    def batch(self, step: int) -> Draw:
        """What training step `step` reads; ValueError if it is skipped or outside 1…steps."""
        if self.skipped(step):
            raise ValueError(f"training step {step} is on the skip list")
        phase = self.phase_of(step)
        rows = self.phases[phase].sequences_per_batch
        first = (step - self._first_steps[phase]) * rows
        positions = np.arange(first, first + rows, dtype=np.int64)
        sources, ordinals = self._mixtures[phase].place(positions)
        ordinals += self._used_before[phase][sources]
        return Draw(sources, self._shuffled(sources, ordinals), phase)

    def steps_of(self, source: str, sequences: Iterable[int]) -> list[int]:
        """The training steps that read any of these sequences of `source`, sorted; none is skipped.

        The bijections backwards: the cost grows with sequences and epochs, not with steps.
        ValueError for a source that is none of `sources`.
        """
        place, size = self.sources.index(source), int(self._sizes[self.sources.index(source)])
        wanted = np.fromiter(sequences, dtype=np.int64)
        used = int(self._used_before[-1][place])
        steps = set()
        for epoch in range(-(-used // size) if size else 0):
            shuffle = Permutation(size, key_of("epoch", self._seed, source, epoch))
            ordinals = epoch * size + shuffle.inverse(wanted)
            steps |= {
                self._step_of(place, ordinal) for ordinal in ordinals.tolist() if ordinal < used
            }
        return sorted(step for step in steps if not self.skipped(step))

    def account(self) -> list[Account]:
        """The plan by source, in the order of `sources`; skipped steps do not count."""
        edges = np.stack(self._used_before)
        planned = np.diff(edges, axis=0)
        for step in self._skipped_steps():
            phase = self.phase_of(step)
            planned[phase] -= self._counts(step, phase)
        lengths = np.array([phase.sequence_length for phase in self.phases])
        return [
            Account(
                source=name,
                available=int(self._sizes[i]),
                planned=int(planned[:, i].sum()),
                tokens=int((planned[:, i] * lengths).sum()),
                by_phase=tuple(planned[:, i].tolist()),
            )
            for i, name in enumerate(self.sources)
        ]

    def _skipped_steps(self) -> list[int]:
        ranges = (range(max(first, 1), min(last, self.steps) + 1) for first, last in self.skip)
        return sorted({step for steps in ranges for step in steps})

    def _counts(self, step: int, phase: int) -> Indices:
        """Sequences of each source in one step."""
        rows = self.phases[phase].sequences_per_batch
        start = (step - self._first_steps[phase]) * rows
        mixture = self._mixtures[phase]
        return mixture.used(start + rows) - mixture.used(start)

    def _step_of(self, source: int, ordinal: int) -> int:
        """The training step that reads the sequence with this ordinal, skipped or not."""
        phase = bisect_right(self._used_before, ordinal, key=lambda used: int(used[source])) - 1
        mixture, rows = self._mixtures[phase], self.phases[phase].sequences_per_batch
        within = ordinal - int(self._used_before[phase][source])
        blocks = range(self.phases[phase].steps * rows // mixture.block + 2)
        block = bisect_right(blocks, within, key=lambda b: int(mixture.counts(b)[source])) - 1
        positions = np.arange(mixture.block, dtype=np.int64) + block * mixture.block
        sources, ordinals = mixture.place(positions)
        (found,) = np.flatnonzero((sources == source) & (ordinals == within))
        return self._first_steps[phase] + int(positions[found]) // rows

    def _shuffled(self, sources: Indices, ordinals: Indices) -> Indices:
        """Ordinals to sequence indices: a permutation of the source for each epoch."""
        sizes = self._sizes[sources]
        epochs, within = np.divmod(ordinals, sizes)
        sequences = np.empty_like(ordinals)
        for source, epoch in np.unique(np.stack([sources, epochs]), axis=1).T.tolist():
            rows = np.flatnonzero((sources == source) & (epochs == epoch))
            key = key_of("epoch", self._seed, self.sources[source], epoch)
            sequences[rows] = Permutation(int(self._sizes[source]), key)(within[rows])
        return sequences

    def _mixture(self, index: int, phase: Phase) -> Mixture:
        where = f"phases.{index}"
        if phase.steps < 1 or phase.sequences_per_batch < 1:
            raise UsageError("a phase has at least one step and one sequence", where=where)
        for name, weight in phase.weights.items():
            if name not in self.sources:
                near = did_you_mean(name, self.sources)
                raise UsageError(f"no source '{name}' in the token shards{near}", where=where)
            if weight > 0 and not self._sizes[self.sources.index(name)]:
                raise UsageError(f"source '{name}' has weight {weight} but no tokens", where=where)
        if phase.weights:
            weights = [float(phase.weights.get(name, 0.0)) for name in self.sources]
            if abs(sum(weights) - 1) > 1e-3:
                raise UsageError(f"weights sum to {sum(weights):g}, not to 1", where=where)
        elif self._sizes.any():
            weights = [float(size) for size in self._sizes]
        else:
            raise UsageError("the token shards hold no sequence", where=where)
        try:
            return Mixture(weights, key_of("mixture", self._seed, index))
        except ValueError as error:
            raise UsageError(str(error), where=where) from None
