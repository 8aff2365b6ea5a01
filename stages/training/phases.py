"""Phases of a run as training steps: where each begins, and which positions each step reads.

A phase is a stream of positions, one for each sequence read. Its batch size decides only where the
stream is cut into training steps; it may change within the phase at given tokens (as Megatron's
step schedule, Megatron-LM#3779).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError

TOLERANCE = 1e-3
"""How far the sum of a mixture's weights may be from one."""

Sizes = tuple[tuple[int, int], ...]
"""Batch sizes of a phase: (from this token of the phase on, sequences), the first from 0."""


class Stretch(NamedTuple):
    """Training steps of one batch size: how many steps and positions of the phase come before."""

    steps: int
    positions: int
    sequences: int


@dataclass(frozen=True)
class Phase:
    """A span of training steps with one mixture and one length of sequences.

    `weights` maps sources to their share of the sequences; empty means each source by its size.
    With `weights_end` they go there in a straight line, over `span` sequences (0: the phase's).
    `sequences_per_batch` is one number, or one from each of some tokens of the phase on.
    """

    steps: int
    sequences_per_batch: int | Sizes
    sequence_length: int
    weights: Mapping[str, float] = field(default_factory=dict)
    weights_end: Mapping[str, float] = field(default_factory=dict)
    span: int = 0

    @classmethod
    def of_tokens(
        cls,
        tokens: int,
        sequences_per_batch: int | Sizes,
        sequence_length: int,
        weights: Mapping[str, float] | None = None,
        weights_end: Mapping[str, float] | None = None,
    ) -> Phase:
        """The phase of the nearest whole number of steps (half a step counts), at least one.

        Where weights change, they reach their end at `tokens` whatever the batches are, so that
        every schedule of batch sizes cuts the same stream.
        """
        *_, last = stretches(sequences_per_batch, sequence_length)
        rest, per_step = tokens - last.positions * sequence_length, last.sequences * sequence_length
        steps = last.steps + max(0, (2 * rest + per_step) // (2 * per_step))
        return cls(
            max(1, steps) if tokens > 0 else 0,
            sequences_per_batch,
            sequence_length,
            dict(weights or {}),
            dict(weights_end or {}),
            max(1, (2 * tokens + sequence_length) // (2 * sequence_length)),
        )

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """The parts of one batch size each."""
        return stretches(self.sequences_per_batch, self.sequence_length)

    @property
    def positions(self) -> int:
        """Sequences of the phase."""
        return self.rows(self.steps)[0]

    @property
    def tokens(self) -> int:
        """Token positions of the phase, padding included."""
        return self.positions * self.sequence_length

    def rows(self, done: int) -> tuple[int, int]:
        """First position and number of sequences of the step that follows `done` of this phase."""
        index = bisect_right(self.stretches, done, key=lambda one: one.steps) - 1
        found = self.stretches[index]
        return found.positions + (done - found.steps) * found.sequences, found.sequences

    def done_before(self, position: int) -> int:
        """Steps of this phase before the one that reads `position`."""
        index = bisect_right(self.stretches, position, key=lambda one: one.positions) - 1
        found = self.stretches[index]
        return found.steps + (position - found.positions) // found.sequences


def stream_of(source: str, sequence_length: int, several: bool) -> str:
    """What a source is called where token shards have sequences of several lengths, or of one."""
    return f"{source}@{sequence_length}" if several else source


def stretches(sizes: int | Sizes, sequence_length: int) -> tuple[Stretch, ...]:
    """A schedule of batch sizes in steps and positions.

    A size holds from the first step that begins at its token or behind it; one whose tokens all lie
    in a step of the size before has no step.
    """
    if isinstance(sizes, int):
        return (Stretch(0, 0, sizes),)
    found = [Stretch(0, 0, sizes[0][1])]
    for token, size in sizes[1:]:
        last = found[-1]
        rest = max(0, token - last.positions * sequence_length)
        steps = -(-rest // (last.sequences * sequence_length))
        found.append(Stretch(last.steps + steps, last.positions + steps * last.sequences, size))
    return tuple(found)


class Timeline:
    """Phases one after another; training steps are counted from 1, tokens from 0."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        self.phases = tuple(phases)
        self.first_steps = list(accumulate((phase.steps for phase in phases), initial=1))
        self._tokens = list(accumulate((phase.tokens for phase in phases), initial=0))

    @property
    def steps(self) -> int:
        """Training steps of all phases; the last one's number."""
        return self.first_steps[-1] - 1

    @property
    def tokens(self) -> int:
        """Token positions of all phases."""
        return self._tokens[-1]

    def phase_of(self, step: int) -> int:
        """Index of the phase that `step` belongs to; ValueError outside 1…steps."""
        if not 1 <= step <= self.steps:
            raise ValueError(f"training step {step} is not one of 1…{self.steps}")
        return bisect_right(self.first_steps, step) - 1

    def rows(self, step: int) -> tuple[int, int, int]:
        """Phase of a training step, its first position there, and its number of sequences."""
        phase = self.phase_of(step)
        return phase, *self.phases[phase].rows(step - self.first_steps[phase])

    def step_at(self, phase: int, position: int) -> int:
        """The training step that reads `position` of a phase."""
        return self.first_steps[phase] + self.phases[phase].done_before(position)

    def tokens_until(self, step: int) -> int:
        """Token positions of steps 1…step, skipped ones included; 0 before the first step."""
        if step == 0:
            return 0
        phase, first, rows = self.rows(step)
        return self._tokens[phase] + (first + rows) * self.phases[phase].sequence_length

    def step_of_token(self, token: int) -> int:
        """The training step that reads token position `token`; ValueError outside the run."""
        if not 0 <= token < self.tokens:
            raise ValueError(f"token {token} is not one of 0…{self.tokens - 1}")
        phase = bisect_right(self._tokens, token) - 1
        return self.step_at(
            phase, (token - self._tokens[phase]) // self.phases[phase].sequence_length
        )


def check_phase(phase: Phase, sources: Mapping[str, int], *, where: str) -> None:
    """Raise UsageError, with the numbers, for a phase that cannot be run on these sources.

    `sources` maps each to its number of sequences.
    """
    sizes = [one.sequences for one in phase.stretches]
    if phase.steps < 1 or min(sizes) < 1:
        raise UsageError(
            f"{phase.steps} training steps of {min(sizes)} sequences: "
            "a phase has at least one step and one sequence",
            where=where,
        )
    if not any(sources.values()):
        raise UsageError("the token shards hold no sequence", where=where)
    for name, weights in (("mixture", phase.weights), ("mixture_end", phase.weights_end)):
        check_mixture(weights, where=f"{where}.{name}")
        for source, weight in weights.items():
            if source not in sources:
                near = did_you_mean(source, sources)
                raise UsageError(
                    f"no source '{source}' in the token shards{near}", where=f"{where}.{name}"
                )
            if weight > 0 and not sources[source]:
                raise UsageError(
                    f"source '{source}' has weight {weight:g} but no tokens",
                    where=f"{where}.{name}",
                    hint="leave it out, or pack documents of it",
                )


def check_mixture(weights: Mapping[str, float], *, where: str) -> None:
    """Raise UsageError for weights that are negative or do not sum to one; none at all are fine."""
    for source, weight in weights.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise UsageError(
                f"the weight of '{source}' is {weight:g}, but weights are finite and not negative",
                where=where,
            )
    total = math.fsum(weights.values())
    if weights and abs(total - 1) > TOLERANCE:
        raise UsageError(f"weights sum to {total:g}, not to 1", where=where)


def merged(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges [first, last] of whole numbers in order, those that touch as one, empty ones out."""
    found: list[tuple[int, int]] = []
    for first, last in sorted((a, b) for a, b in ranges if a <= b):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)
