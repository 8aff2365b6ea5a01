"""Weights & Biases: the same numbers on its dashboard, for those who ask for it.

Its key is never a setting of Ingot, so that none lands in a recipe or in the store: the package
reads it from `wandb login` or WANDB_API_KEY. A dashboard that is away costs the picture, not the
run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import IngotError, UsageError
from stages.training.listener import Listener, StepDone
from stages.training.telemetry.throughput import due

if TYPE_CHECKING:
    from stages.training.monitor import HeldOut

STEP = "training_step"


class WandbRun(Listener):
    """One run of W&B; a resumed run goes on in the one of the same `run_id`.

    Raises UsageError at once where the package is missing, IngotError where it does not start.
    """

    def __init__(
        self,
        *,
        mode: str,
        project: str,
        run_id: str,
        folder: Path,
        every: int,
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
        self.every, self._log = every, log
        try:
            self._run: Any = wandb.init(
                mode=mode,
                project=project,
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
        # Its own counter only rises, but a run that was rolled back comes by a step again.
        self._try(lambda: self._run.define_metric("*", step_metric=STEP))

    def step_done(self, done: StepDone) -> None:
        """Numbers of a step."""
        if due(done, self.every):
            values = {
                "train/loss": done.loss,
                "train/grad_norm": done.grad_norm,
                "train/learning_rate": done.learning_rate,
                "train/tokens": done.tokens,
                **done.values,
            }
            self._tell(done.training_step, values)

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out losses by source and language."""
        values = {
            f"held_out/{one.column(what)}": getattr(one, what)
            for what in ("loss", "bits_per_byte")
            for one in measured
        }
        self._tell(training_step, values)

    def telemetry(self, row: Mapping[str, Any]) -> None:
        """A row of the telemetry table."""
        shown = {f"telemetry/{k}": v for k, v in row.items() if k not in (STEP, "time")}
        self._tell(row[STEP], shown)

    def alert(self, title: str, text: str) -> None:
        """Something that a person should look at."""
        self._try(lambda: self._run.alert(title=title, text=text))

    def ended(self, error: BaseException | None) -> None:
        """The run is over, well or not."""
        self._try(lambda: self._run.finish(exit_code=0 if error is None else 1))
        self._run = None

    def _tell(self, training_step: int, values: Mapping[str, Any]) -> None:
        present = {name: value for name, value in values.items() if value is not None}
        self._try(lambda: self._run.log({STEP: training_step, **present}))

    def _try(self, call: Callable[[], object]) -> None:
        """Do it, or give the run up with a warning."""
        if self._run is None:
            return
        try:
            call()
        except Exception as error:
            self._log.warning("Weights & Biases is told nothing more: %s", error)
            self._run = None
