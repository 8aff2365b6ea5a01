"""Where the time of a run goes: steps, waiting for data, held-out measurement, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from stages.training.listener import StepDone


def due(done: StepDone, every: int) -> bool:
    """Whether a step is one that is told: the first, every `every`-th, and a skipped one."""
    return done.training_step == 1 or done.training_step % every == 0 or done.skipped


@dataclass(frozen=True)
class Interval:
    """Some training steps: tokens read (padding not counted), and seconds on the monotonic clock.

    `seconds` are all of them; `data_seconds` is what neither the steps, nor held-out measurement,
    nor checkpoints account for: the wait for batches above all.
    """

    tokens: int = 0
    seconds: float = 0.0
    step_seconds: float = 0.0
    held_out_seconds: float = 0.0
    checkpoint_seconds: float = 0.0

    @property
    def data_seconds(self) -> float:
        """Seconds that nothing else accounts for."""
        told = self.step_seconds + self.held_out_seconds + self.checkpoint_seconds
        return max(0.0, self.seconds - told)

    @property
    def tokens_per_second(self) -> float | None:
        """Speed of training: checkpoints and the wait for data count, held-out losses do not."""
        seconds = self.seconds - self.held_out_seconds
        return self.tokens / seconds if seconds > 0 and self.tokens else None


class Stopwatch:
    """Adds up intervals from what a listener is told, in the order in which the loop tells it.

    The loop tells a step when it is over, held-out losses when they are measured, a checkpoint when
    training goes on. So the time between a step and the losses behind it is theirs.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = self._told = clock()
        self._tokens, self._step, self._held_out, self._checkpoint = 0, 0.0, 0.0, 0.0

    def start(self) -> None:
        """Forget what was, and count from now."""
        self._begun = self._told = self._clock()
        self._tokens, self._step, self._held_out, self._checkpoint = 0, 0.0, 0.0, 0.0

    def step(self, done: StepDone) -> None:
        """A step is over."""
        self._tokens += done.step_tokens
        self._step += done.seconds
        self._told = self._clock()

    def measured(self) -> None:
        """Held-out losses are measured: all since the last thing told was theirs."""
        now = self._clock()
        self._held_out += now - self._told
        self._told = now

    def saved(self, seconds: float) -> None:
        """Training stood still for `seconds`."""
        self._checkpoint += seconds
        self._told = self._clock()

    def take(self) -> Interval:
        """What was counted since the last call; counting begins anew."""
        now = self._clock()
        taken = Interval(
            self._tokens, now - self._begun, self._step, self._held_out, self._checkpoint
        )
        self._begun = now
        self._tokens, self._step, self._held_out, self._checkpoint = 0, 0.0, 0.0, 0.0
        return taken

    @property
    def is_empty(self) -> bool:
        """Whether no step was counted since the last `take`."""
        return not self._step
