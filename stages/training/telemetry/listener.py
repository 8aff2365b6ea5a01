"""Telemetry of a training run: who listens to it, and how a row comes about."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stages.training.listener import Listener, StepDone
from stages.training.telemetry.peaks import mfu
from stages.training.telemetry.sensors import Reading
from stages.training.telemetry.table import TelemetryFile
from stages.training.telemetry.throughput import Interval, Stopwatch, due

if TYPE_CHECKING:
    from stages.training.monitor import HeldOut

Row = Mapping[str, Any]


class Telemetry(Listener):
    """Writes a row every `every` training steps, and hands it to each of `readers`.

    `flops_per_token` are the operations that MFU counts for a token, by phase (the last stands for
    all behind it); `peak` those that the device could do in a second, None where that is not known.
    """

    def __init__(
        self,
        file: TelemetryFile,
        *,
        every: int,
        sensors: Callable[[], Reading],
        flops_per_token: Sequence[float],
        peak: float | None,
        readers: Sequence[Callable[[Row], None]] = (),
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.file, self.every, self.sensors, self.peak = file, every, sensors, peak
        self.flops_per_token, self.readers = tuple(flops_per_token), tuple(readers)
        self._watch, self._wall_clock = Stopwatch(clock), wall_clock
        self._last: StepDone | None = None

    def started(self, training_step: int, total: int) -> None:
        """Time counts from here."""
        self._watch.start()

    def step_done(self, done: StepDone) -> None:
        """Count a step, and write a row where one is due."""
        self._watch.step(done)
        self._last = done
        if due(done, self.every):
            self._row(done)

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out measurement is no training."""
        self._watch.measured()

    def saved(self, training_step: int, seconds: float) -> None:
        """A checkpoint made training wait."""
        self._watch.saved(seconds)

    def ended(self, error: BaseException | None) -> None:
        """Write what was counted since the last row; at the end of the run, the table."""
        if self._last is not None and not self._watch.is_empty:
            self._row(self._last)
        if error is None:
            self.file.finish()
        else:
            self.file.close()

    def _row(self, done: StepDone) -> None:
        interval = self._watch.take()
        row = {
            "time": self._wall_clock(),
            "training_step": done.training_step,
            "tokens": done.tokens,
            **_seconds(interval),
            "tokens_per_second": interval.tokens_per_second,
            "mfu": self._mfu(interval, done.phase),
            **asdict(self.sensors()),
        }
        self.file.append(row)
        for read in self.readers:
            read(row)

    def _mfu(self, interval: Interval, phase: int) -> float | None:
        speed = interval.tokens_per_second
        if speed is None:
            return None
        flops = self.flops_per_token[min(phase, len(self.flops_per_token) - 1)]
        return mfu(speed, flops, self.peak)


def _seconds(interval: Interval) -> dict[str, float]:
    return {
        "seconds": interval.seconds,
        "step_seconds": interval.step_seconds,
        "data_seconds": interval.data_seconds,
        "held_out_seconds": interval.held_out_seconds,
        "checkpoint_seconds": interval.checkpoint_seconds,
    }
