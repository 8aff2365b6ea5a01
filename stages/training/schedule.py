"""What each training step does by plan: its phase, its positions in the data, its learning rate.

A phase is a stream of positions, one for each sequence read. Its batch size decides only where the
stream is cut into training steps; it may change within the phase at given tokens (as in Megatron's
step schedule, Megatron-LM#3779).

The learning rate is a pure function of the training step: a chain of segments, one per phase. Each
warms up from where the segment before ended, holds its peak, and decays at its end, so that two
phases "constant" and "decay" are the warmup-stable-decay schedule (Hu et al. 2024, MiniCPM) and one
phase with a cosine is the classic one. The decay shapes linear and 1-sqrt follow Hägele et al. 2024
(arXiv 2405.18392); multi-step is that of DeepSeek LLM (Bi et al. 2024, arXiv 2401.02954). Where the
batch grows within a run, the rate may grow with it: by the square root (Malladi et al. 2022, arXiv
2205.10287, for Adam) or linearly (Goyal et al. 2017, arXiv 1706.02677).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from artifacts_schema.errors import UsageError
from stages.training.config import BatchScaling, Decay, LearningRate

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
        *_, last = batch_stretches(sequences_per_batch, sequence_length)
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
        return batch_stretches(self.sequences_per_batch, self.sequence_length)

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
        results = self.stretches[index]
        return results.positions + (done - results.steps) * results.sequences, results.sequences

    def done_before(self, position: int) -> int:
        """Steps of this phase before the one that reads `position`."""
        index = bisect_right(self.stretches, position, key=lambda one: one.positions) - 1
        results = self.stretches[index]
        return results.steps + (position - results.positions) // results.sequences


def stream_name(source: str, sequence_length: int, several: bool) -> str:
    """What a source is called where token shards have sequences of several lengths, or of one."""
    return f"{source}@{sequence_length}" if several else source


def batch_stretches(sizes: int | Sizes, sequence_length: int) -> tuple[Stretch, ...]:
    """A schedule of batch sizes in steps and positions.

    A size holds from the first step that begins at or after its token; a size whose tokens are all
    in a step of the size before has no step.
    """
    if isinstance(sizes, int):
        return (Stretch(0, 0, sizes),)
    results = [Stretch(0, 0, sizes[0][1])]
    for token, size in sizes[1:]:
        last = results[-1]
        rest = max(0, token - last.positions * sequence_length)
        steps = -(-rest // (last.sequences * sequence_length))
        results.append(Stretch(last.steps + steps, last.positions + steps * last.sequences, size))
    return tuple(results)


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


def merge_ranges(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges [first, last] of whole numbers in order, those that touch as one, empty ones out."""
    results: list[tuple[int, int]] = []
    for first, last in sorted((a, b) for a, b in ranges if a <= b):
        if results and first <= results[-1][1] + 1:
            results[-1] = results[-1][0], max(last, results[-1][1])
        else:
            results.append((first, last))
    return tuple(results)


Factors = tuple[tuple[int, float], ...]
"""Factors of a rate, each from that many updates of its segment on; 1 before the first."""


@dataclass(frozen=True)
class Segment:
    """The learning rate over `steps` updates, with every number known."""

    steps: int
    start: float
    peak: float
    warmup: int
    decay: Decay
    decay_steps: int
    final: float
    drops: Factors = ()
    batch_factors: Factors = ()

    def rate(self, done: int) -> float:
        """The rate of the update that follows `done` updates of this segment, 0 <= done < steps.

        Warmup reaches the peak with its last update; the decay starts below the peak by one part
        and would reach `final * peak` with the update after the last, which the next segment does.
        """
        return self._shape(done) * _factor(self.batch_factors, done)

    def _shape(self, done: int) -> float:
        """The rate without what the batch makes of it."""
        if done < self.warmup:
            return self.start + (self.peak - self.start) * (done + 1) / self.warmup
        into_decay = done - (self.steps - self.decay_steps)
        if into_decay < 0 or self.decay_steps == 0:
            return self.peak * _factor(self.drops, done)
        left = remaining(self.decay, into_decay / self.decay_steps)
        return self.peak * (self.final + (1 - self.final) * left)

    @property
    def end(self) -> float:
        """The rate that the segment leads to, where the next one starts."""
        led = self.final if self.decay_steps else _factor(self.drops, self.steps)
        return self.peak * led * _factor(self.batch_factors, self.steps)


def remaining(decay: Decay, progress: float) -> float:
    """What is left of the way from final to peak after `progress` (0 to 1) of a decay."""
    if decay == "linear":
        return 1 - progress
    if decay == "1-sqrt":
        return 1 - math.sqrt(progress)
    if decay == "cosine":
        return 0.5 * (1 + math.cos(math.pi * progress))
    return 1.0


@dataclass(frozen=True)
class Schedule:
    """Segments one after another."""

    segments: tuple[Segment, ...]

    @property
    def steps(self) -> int:
        """Updates of the whole run."""
        return sum(segment.steps for segment in self.segments)

    def phase(self, training_step: int) -> int:
        """Index of the segment that holds `training_step` (from 1)."""
        return self._find(training_step)[0]

    def rate(self, training_step: int) -> float:
        """Learning rate of `training_step` (from 1)."""
        phase, done = self._find(training_step)
        return self.segments[phase].rate(done)

    def _find(self, training_step: int) -> tuple[int, int]:
        done = training_step - 1
        for phase, segment in enumerate(self.segments):
            if 0 <= done < segment.steps:
                return phase, done
            done -= segment.steps
        raise IndexError(f"training step {training_step} of {self.steps}")


def schedule(
    phases: Sequence[tuple[int | Phase, LearningRate]], *, where: str, start: float = 0.0
) -> Schedule:
    """Lay the segments of phases end to end.

    A phase is given as it is, or, where training steps are all that is known of it, as their
    number. `start` is the rate at which a first phase without a peak continues, such as that of a
    checkpoint; one with a peak warms up from 0.

    Raises UsageError where there is no rate to start from, or a warmup or decay does not fit.
    """
    segments: list[Segment] = []
    batch: int | None = None
    for index, (phase, config) in enumerate(phases):
        place = f"{where}.{index}"
        if segments:
            start = segments[-1].end
        elif config.peak is not None:
            start = 0.0
        peak = start if config.peak is None else config.peak
        if peak <= 0:
            raise UsageError(
                "no learning rate to start from", where=place, hint="set learning_rate.peak"
            )
        reference = None if config.peak is not None else batch
        segments.append(_segment(phase, config, start, peak, reference, place))
        batch = None if isinstance(phase, int) else _batches(phase)[-1][1]
    return Schedule(tuple(segments))


def check_one_phase(config: LearningRate) -> None:
    """Raise UsageError for what cannot be the one phase of a run whose steps are not known yet."""
    try:
        schedule([(10**9, config)], where="learning_rate")
    except UsageError as error:
        raise UsageError(error.what, where="learning_rate", hint=error.hint) from None


def _segment(
    phase: int | Phase,
    config: LearningRate,
    start: float,
    peak: float,
    reference: int | None,
    where: str,
) -> Segment:
    """The segment of one phase; `reference` is the batch, in tokens, that its peak goes with."""
    steps = phase if isinstance(phase, int) else phase.steps
    warmup = _warmup(phase, config, steps, where)
    decay_steps = 0
    drops: Factors = ()
    if config.decay == "multi-step":
        drops = tuple((round(share * steps), factor) for share, factor in config.drops)
    elif config.decay != "none":
        share = 1.0 if config.decay_share is None else config.decay_share
        wanted = max(1, round(share * steps))
        decay_steps = min(wanted, steps - warmup)
        if config.decay_share is not None and wanted > decay_steps + 1:
            raise UsageError(
                f"a warmup of {warmup} and a decay of {wanted} training steps exceed the phase, "
                f"which has {steps}",
                where=where,
            )
    factors = _batch_factors(phase, config.batch_scaling, reference, where)
    return Segment(
        steps, start, peak, warmup, config.decay, decay_steps, config.final, drops, factors
    )


def _warmup(phase: int | Phase, config: LearningRate, steps: int, where: str) -> int:
    """Training steps of the warmup."""
    if config.warmup_tokens is not None:
        if isinstance(phase, int):
            raise UsageError(
                "warmup_tokens needs a phase of tokens; this one is of training steps",
                where=where,
                hint="use warmup_steps or warmup_share",
            )
        if config.warmup_tokens > phase.tokens:
            raise UsageError(
                f"a warmup of {config.warmup_tokens:,} tokens, the phase has {phase.tokens:,}",
                where=where,
            )
        last = -(-config.warmup_tokens // phase.sequence_length) - 1
        return 0 if last < 0 else phase.done_before(last) + 1
    if config.warmup_steps is not None:
        if config.warmup_steps > steps:
            raise UsageError(
                f"a warmup of {config.warmup_steps} training steps, the phase has {steps}",
                where=where,
            )
        return config.warmup_steps
    return round(config.warmup_share * steps)


def _batch_factors(
    phase: int | Phase, scaling: BatchScaling, reference: int | None, where: str
) -> Factors:
    """What the sizes of a phase's batches, in tokens, make of its rate."""
    if scaling == "none":
        return ()
    if isinstance(phase, int):
        raise UsageError("batch_scaling needs a phase of tokens", where=where)
    power = 0.5 if scaling == "sqrt" else 1.0
    batches = _batches(phase)
    first = reference or batches[0][1]
    return tuple((done, (size / first) ** power) for done, size in batches)


def _batches(phase: Phase) -> list[tuple[int, int]]:
    """Tokens of a training step, from which training step of the phase on."""
    return [
        (one.steps, one.sequences * phase.sequence_length)
        for one in phase.stretches
        if one.steps < phase.steps
    ]


def _factor(factors: Factors, done: int) -> float:
    """The factor of the update that follows `done` updates."""
    results = 1.0
    for begin, factor in factors:
        if done >= begin:
            results = factor
    return results
