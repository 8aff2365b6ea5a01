"""The learning rate as a pure function of the training step.

A run is a chain of segments, one a phase. Each warms up from where the segment before ended, holds
its peak, and decays at its end, so that two phases "constant" and "decay" are the
warmup-stable-decay schedule (Hu et al. 2024, MiniCPM) and one phase with a cosine is the classic
one. The decay shapes linear and 1-sqrt follow Hägele et al. 2024 (arXiv 2405.18392); multi-step
is that of DeepSeek LLM (Bi et al. 2024, arXiv 2401.02954). Where the batch grows within a run, the
rate may grow with it: by the square root (Malladi et al. 2022, arXiv 2205.10287, for Adam) or
linearly (Goyal et al. 2017, arXiv 1706.02677).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from artifacts_schema.errors import UsageError
from stages.training.config import BatchScaling, Decay, LearningRate
from stages.training.phases import Phase

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
    number. `start` is the rate that a first phase without a peak goes on from, such as that of a
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
    found = 1.0
    for begin, factor in factors:
        if done >= begin:
            found = factor
    return found
