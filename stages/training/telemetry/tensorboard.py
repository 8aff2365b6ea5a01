"""TensorBoard: loss, norms, rates, held-out losses and telemetry as scalars of event files.

tensorboard --logdir STORE/work/KEY/telemetry/tensorboard      # while it runs
tensorboard --logdir STORE/data/STAGE/KEY/ATTEMPT/telemetry/tensorboard
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.training.listener import Listener, StepDone
from stages.training.telemetry.event_file import EventFile, scalars_event, start_event
from stages.training.telemetry.throughput import due

if TYPE_CHECKING:
    from stages.training.monitor import HeldOut

FOLDER = "tensorboard"


class TensorBoard(Listener):
    """One event file for each start of the run, in `folder`; later files supersede earlier ones.

    A resumed or rolled-back run measures some training steps again: the file says so, and
    TensorBoard shows each step once. Steps are told every `every` of them, the first, and those
    that were skipped.
    """

    def __init__(self, folder: Path, *, every: int, clock: Callable[[], float] = time.time) -> None:
        self.folder, self.every, self._clock = folder, every, clock
        self._file: EventFile | None = None
        self._last = 0

    def started(self, training_step: int, total: int) -> None:
        """Open a file that goes on behind `training_step`."""
        now = self._clock()
        number = len(list(self.folder.glob("*.tfevents.*")))
        name = f"events.out.tfevents.{int(now):010d}.ingot.{number}"
        self._file = EventFile(self.folder / name, now)
        self._restart(training_step)

    def step_done(self, done: StepDone) -> None:
        """Numbers of a step; one that is not behind the last says that the run was rolled back."""
        if done.training_step <= self._last:
            self._restart(done.training_step - 1)
        self._last = done.training_step
        if due(done, self.every):
            step = {
                "train/loss": done.loss,
                "train/grad_norm": done.grad_norm,
                "train/learning_rate": done.learning_rate,
                "train/tokens": done.tokens,
                "train/step_seconds": done.seconds,
            }
            self._scalars(done.training_step, {**step, **done.values})

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out losses by source and language."""
        values = {
            f"held_out/{one.column(what)}": getattr(one, what)
            for what in ("loss", "bits_per_byte")
            for one in measured
        }
        self._scalars(training_step, values)

    def telemetry(self, row: Mapping[str, Any]) -> None:
        """A row of the telemetry table."""
        shown = {k: v for k, v in row.items() if k not in ("training_step", "session", "time")}
        self._scalars(row["training_step"], {f"telemetry/{k}": v for k, v in shown.items()})

    def ended(self, error: BaseException | None) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _restart(self, training_step: int) -> None:
        self._last = training_step
        if self._file is not None:
            self._file.append(start_event(self._clock(), training_step + 1))

    def _scalars(self, training_step: int, values: Mapping[str, Any]) -> None:
        """Those of `values` that are numbers, under their tags."""
        scalars = {
            tag: float(value)
            for tag, value in values.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        if self._file is not None and scalars:
            self._file.append(scalars_event(self._clock(), training_step, scalars))
