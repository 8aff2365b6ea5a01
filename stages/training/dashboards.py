"""Dashboards: scalars of a run as TensorBoard event files and on Weights & Biases.

tensorboard --logdir STORE/work/KEY/telemetry/tensorboard      # while it runs
tensorboard --logdir STORE/data/STAGE/KEY/ATTEMPT/telemetry/tensorboard

Event files are written by tensorboardX (0.1 MB; TensorBoard itself weighs 77 MB), one record at a
time and not by its `SummaryWriter`, whose thread hides errors of the disk from the caller.

The key of Weights & Biases is never a setting of Ingot, so that none lands in a recipe or in the
store: the package reads it from `wandb login` or WANDB_API_KEY. A dashboard that cannot be reached
costs the picture, not the run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from artifacts_schema.errors import IngotError, UsageError
from stages.training.callbacks import Callback, StepDone
from stages.training.config import ObservedExecution
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


STEP_METRIC = "training_step"


class WandbRun(Callback):
    """One run of W&B; a resumed run continues the one of the same `run_id`.

    Raises UsageError where the package is missing, IngotError where it does not start.
    """

    def __init__(
        self,
        execution: ObservedExecution,
        run_id: str,
        folder: Path,
        *,
        config: Mapping[str, Any],
        log: logging.Logger,
    ) -> None:
        try:
            import wandb
        except ImportError:
            raise UsageError(
                "needs the package wandb",
                where="execution.wandb",
                hint="pip install 'ingot[wandb]', or set it to off",
            ) from None
        folder.mkdir(parents=True, exist_ok=True)
        self.every, self._log = execution.telemetry_every, log
        try:
            self._run: Any = wandb.init(
                mode=execution.wandb,
                project=execution.wandb_project,
                id=run_id,
                name=run_id,
                dir=str(folder),
                resume="allow",
                config=dict(config),
                settings=wandb.Settings(console="off", disable_git=True, save_code=False),
            )
        except Exception as error:
            raise IngotError(
                f"Weights & Biases does not start: {error}",
                where="execution.wandb",
                hint="run `wandb login`, or set it to offline",
            ) from None
        # Its own counter only rises, but a run that was rolled back repeats steps.
        self._try(lambda: self._run.define_metric("*", step_metric=STEP_METRIC))

    def step_done(self, done: StepDone) -> None:
        """Numbers of a step."""
        if due(done, self.every):
            self._send(done.training_step, step_values(done))

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out losses by source and language."""
        self._send(training_step, held_out_values(measured))

    def telemetry(self, row: Mapping[str, Any]) -> None:
        """A row of the telemetry table."""
        labels = {f"telemetry/{k}": v for k, v in row.items() if k not in (STEP_METRIC, "time")}
        self._send(row[STEP_METRIC], labels)

    def alert(self, title: str, text: str) -> None:
        """Something that a person should look at."""
        self._try(lambda: self._run.alert(title=title, text=text))

    def ended(self, error: BaseException | None) -> None:
        """The run is over, well or not."""
        self._try(lambda: self._run.finish(exit_code=0 if error is None else 1))
        self._run = None

    def _send(self, training_step: int, values: Mapping[str, Any]) -> None:
        present = {name: value for name, value in values.items() if value is not None}
        self._try(lambda: self._run.log({STEP_METRIC: training_step, **present}))

    def _try(self, call: Callable[[], object]) -> None:
        """Do it, or give the run up with a warning."""
        if self._run is None:
            return
        try:
            call()
        except Exception as error:
            self._log.warning("Weights & Biases gets nothing more: %s", error)
            self._run = None
