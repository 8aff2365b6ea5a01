"""Dashboards: what they show of a run, and TensorBoard's event files.

tensorboard --logdir STORE/work/KEY/telemetry/tensorboard      # while it runs
tensorboard --logdir STORE/data/STAGE/KEY/ATTEMPT/telemetry/tensorboard

Event files are written by tensorboardX (0.1 MB; TensorBoard itself weighs 77 MB), one record at a
time and not by its `SummaryWriter`, whose thread hides errors of the disk from the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stages.training.callbacks import Callback, StepDone
from stages.training.monitor import HeldOut
from stages.training.telemetry import due

FOLDER = "tensorboard"


def step_values(done: StepDone) -> dict[str, Any]:
    """What dashboards show of a step, by tag."""
    return {
        "train/loss": done.loss,
        "train/grad_norm": done.grad_norm,
        "train/learning_rate": done.learning_rate,
        "train/tokens": done.tokens,
        "train/step_seconds": done.seconds,
        **done.values,
    }


def held_out_values(measured: Sequence[HeldOut]) -> dict[str, float | None]:
    """Held-out losses by tag."""
    return {
        f"held_out/{one.column(quantity)}": getattr(one, quantity)
        for quantity in ("loss", "bits_per_byte")
        for one in measured
    }


class TensorBoard(Callback):
    """One event file for each start of the run, in `folder`; later files supersede earlier ones.

    A resumed or rolled-back run measures some training steps again: the file says so, and
    TensorBoard shows each step once. Written are the first step, every `every`-th, and skipped
    ones.
    """

    def __init__(self, folder: Path, *, every: int, clock: Callable[[], float] = time.time) -> None:
        self.folder, self.every, self._clock = folder, every, clock
        self._file: Any = None
        self._last = 0

    def started(self, training_step: int, total: int) -> None:
        """Open a file that continues after `training_step`."""
        from tensorboardX.record_writer import RecordWriter

        now = self._clock()
        self.folder.mkdir(parents=True, exist_ok=True)
        number = len(list(self.folder.glob("*.tfevents.*")))
        name = f"events.out.tfevents.{int(now):010d}.ingot.{number}"
        self._file = RecordWriter(str(self.folder / name))
        self._write(now, file_version="brain.Event:2")
        self._restart(training_step)

    def step_done(self, done: StepDone) -> None:
        """Numbers of a step; one that is not after the last means that the run was rolled back."""
        if done.training_step <= self._last:
            self._restart(done.training_step - 1)
        self._last = done.training_step
        if due(done, self.every):
            self._scalars(done.training_step, step_values(done))

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out losses by source and language."""
        self._scalars(training_step, held_out_values(measured))

    def telemetry(self, row: Mapping[str, Any]) -> None:
        """A row of the telemetry table."""
        labels = {k: v for k, v in row.items() if k not in ("training_step", "session", "time")}
        self._scalars(row["training_step"], {f"telemetry/{k}": v for k, v in labels.items()})

    def ended(self, error: BaseException | None) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _restart(self, training_step: int) -> None:
        """Let readers drop what earlier events say of later steps."""
        self._last = training_step
        self._write(self._clock(), step=training_step + 1, session_log={"status": "START"})

    def _scalars(self, training_step: int, values: Mapping[str, Any]) -> None:
        """Write those of `values` that are numbers, under their tags."""
        scalars = [
            {"tag": tag, "simple_value": float(value)}
            for tag, value in values.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        if scalars:
            self._write(self._clock(), step=training_step, summary={"value": scalars})

    def _write(self, wall_time: float, **fields: Any) -> None:
        """Append one event; it is on disk when the call returns."""
        from tensorboardX.proto.event_pb2 import Event

        if self._file is not None:
            self._file.write(Event(wall_time=wall_time, **fields).SerializeToString())
            self._file.flush()
