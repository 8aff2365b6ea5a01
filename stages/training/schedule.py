"""The learning rate as a pure function of the training step.

A run is a chain of segments, one a phase. Each warms up from where the segment before ended, holds
its peak, and decays at its end, so that two phases "constant" and "decay" are the
warmup-stable-decay schedule (Hu et al. 2024, MiniCPM) and one phase with a cosine is the classic
one. The decay shapes linear and 1-sqrt follow Hägele et al. 2024 (arXiv 2405.18392).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from artifacts_schema.errors import UsageError
from stages.training.config import Decay, LearningRate


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

    def rate(self, done: int) -> float:
        """The rate of the update that follows `done` updates of this segment, 0 <= done < steps.

        Warmup reaches the peak with its last update; the decay starts below the peak by one part
        and would reach `final * peak` with the update after the last, which the next segment does.
        """
        if done < self.warmup:
            return self.start + (self.peak - self.start) * (done + 1) / self.warmup
        into_decay = done - (self.steps - self.decay_steps)
        if into_decay < 0 or self.decay_steps == 0:
            return self.peak
        left = remaining(self.decay, into_decay / self.decay_steps)
        return self.peak * (self.final + (1 - self.final) * left)

    @property
    def end(self) -> float:
        """The rate that the segment leads to, where the next one starts."""
        return self.peak * self.final if self.decay_steps else self.peak


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


def schedule(phases: Sequence[tuple[int, LearningRate]], *, where: str) -> Schedule:
    """Lay the phases' segments, given as (training steps, learning rate), end to end.

    Raises UsageError where there is no rate to start from.
    """
    segments: list[Segment] = []
    for index, (steps, config) in enumerate(phases):
        start = segments[-1].end if segments else 0.0
        peak = start if config.peak is None else config.peak
        if peak <= 0:
            raise UsageError(
                "no learning rate to start from",
                where=f"{where}.{index}",
                hint="set learning_rate.peak",
            )
        segments.append(_segment(steps, config, start, peak))
    return Schedule(tuple(segments))


def _segment(steps: int, config: LearningRate, start: float, peak: float) -> Segment:
    warmup = round(config.warmup_share * steps)
    decay_steps = 0
    if config.decay != "none":
        share = 1.0 if config.decay_share is None else config.decay_share
        decay_steps = min(max(1, round(share * steps)), steps - warmup)
    return Segment(steps, start, peak, warmup, config.decay, decay_steps, config.final)
