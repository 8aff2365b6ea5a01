"""Dashboards on a service of their own: Weights & Biases, MLflow.

A key or password is never a setting of Ingot, so that none lands in a recipe or in the store: the
packages read `wandb login` or WANDB_API_KEY, MLFLOW_TRACKING_USERNAME and _PASSWORD, or _TOKEN. A
dashboard that cannot be reached costs the picture, not the run.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from artifacts_schema.errors import IngotError, UsageError
from stages.training.callbacks import Callback, StepDone
from stages.training.config import ObservedExecution
from stages.training.dashboards import held_out_values, step_values
from stages.training.monitor import HeldOut
from stages.training.telemetry import due

STEP_METRIC = "training_step"


class RemoteDashboard(Callback):
    """A run on a service of its own: what is sent, and that a failure costs a warning and no more.

    `name` is the service's; `every` the training steps between those that are shown.
    """

    name: str

    def __init__(self, every: int, log: logging.Logger) -> None:
        self.every, self._log, self._open = every, log, True

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
        self._try(lambda: self._send_alert(title, text))

    def ended(self, error: BaseException | None) -> None:
        """The run is over, well or not."""
        self._try(lambda: self._finish(error))
        self._open = False

    def _send(self, training_step: int, values: Mapping[str, Any]) -> None:
        present = {name: value for name, value in values.items() if value is not None}
        self._try(lambda: self._send_values(training_step, present))

    def _send_values(self, training_step: int, values: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _send_alert(self, title: str, text: str) -> None:
        raise NotImplementedError

    def _finish(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def _try(self, call: Callable[[], object]) -> None:
        """Do it, or give the run up with a warning."""
        if not self._open:
            return
        try:
            call()
        except Exception as error:
            self._log.warning("%s gets nothing more: %s", self.name, error)
            self._open = False


class WandbRun(RemoteDashboard):
    """One run of W&B; a resumed run continues the one of the same `run_id`.

    Raises UsageError where the package is missing, IngotError where it does not start.
    """

    name = "Weights & Biases"

    def __init__(
        self,
        execution: ObservedExecution,
        run_id: str,
        folder: Path,
        *,
        config: Mapping[str, Any],
        log: logging.Logger,
    ) -> None:
        super().__init__(execution.telemetry_every, log)
        try:
            import wandb
        except ImportError:
            raise UsageError(
                "needs the package wandb",
                where="execution.wandb",
                hint="pip install 'ingot[wandb]', or set it to off",
            ) from None
        folder.mkdir(parents=True, exist_ok=True)
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

    def _send_values(self, training_step: int, values: Mapping[str, Any]) -> None:
        self._run.log({STEP_METRIC: training_step, **values})

    def _send_alert(self, title: str, text: str) -> None:
        self._run.alert(title=title, text=text)

    def _finish(self, error: BaseException | None) -> None:
        self._run.finish(exit_code=0 if error is None else 1)


RUN_TAG = "ingot.run"
WAITING_CALLS = 1_000
"""What MLflow has not taken yet, at most; beyond it the dashboard is given up."""
FINISH_SECONDS = 30.0
"""How long the end of a run waits for what MLflow has not taken yet."""
_PARAMETER_CHARACTERS = 500
_OTHER_CHARACTERS = re.compile(r"[^\w\-. /]")


class MlflowRun(RemoteDashboard):
    """One run of MLflow; a resumed run continues the one that has the tag `ingot.run=RUN_ID`.

    A thread sends, so that a slow server costs the training no time. Names may hold letters,
    digits and `_-. /`; `_` stands for any other character (`web@4096` is `web_4096`). Raises
    UsageError where the package is missing, IngotError where the server does not answer.
    """

    name = "MLflow"

    def __init__(
        self,
        execution: ObservedExecution,
        run_id: str,
        *,
        config: Mapping[str, Any],
        log: logging.Logger,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(execution.telemetry_every, log)
        # Its own patience is seven tries, several minutes; a run should not wait so long to begin.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        try:
            from mlflow import MlflowClient
        except ImportError:
            raise UsageError(
                "needs the package mlflow",
                where="execution.mlflow",
                hint="pip install 'ingot[mlflow]', or leave it out",
            ) from None
        self._clock = clock
        try:
            self._client: Any = MlflowClient(tracking_uri=execution.mlflow)
            self._run_id = self._find_or_create(execution.mlflow_experiment, run_id, config)
        except Exception as error:
            raise IngotError(
                f"MLflow does not start: {error}",
                where="execution.mlflow",
                hint="look at the server and its address, or leave it out",
            ) from None
        self._calls: queue.Queue[Callable[[], object] | None] = queue.Queue(WAITING_CALLS)
        self._failure: Exception | None = None
        self._sender = threading.Thread(target=self._send_all, name="mlflow", daemon=True)
        self._sender.start()

    def _find_or_create(self, experiment: str, run_id: str, config: Mapping[str, Any]) -> str:
        """MLflow's id of the run, which is open again."""
        from mlflow.entities import Param

        known = self._client.get_experiment_by_name(experiment)
        number = known.experiment_id if known else self._client.create_experiment(experiment)
        runs = self._client.search_runs([number], f"tags.`{RUN_TAG}` = '{run_id}'", max_results=1)
        if runs:
            self._client.update_run(runs[0].info.run_id, status="RUNNING")
            return str(runs[0].info.run_id)
        run = self._client.create_run(number, tags={RUN_TAG: run_id}, run_name=run_id)
        parameters = [
            Param(name, json.dumps(value)[:_PARAMETER_CHARACTERS]) for name, value in config.items()
        ]
        self._client.log_batch(run.info.run_id, params=parameters)
        return str(run.info.run_id)

    def _send_values(self, training_step: int, values: Mapping[str, Any]) -> None:
        from mlflow.entities import Metric

        now = int(self._clock() * 1000)
        metrics = [
            Metric(_OTHER_CHARACTERS.sub("_", name), float(value), now, training_step)
            for name, value in values.items()
            if isinstance(value, int | float)
        ]
        self._put(lambda: self._client.log_batch(self._run_id, metrics=metrics))

    def _send_alert(self, title: str, text: str) -> None:
        self._put(lambda: self._client.set_tag(self._run_id, f"alert.{title}", text))

    def _finish(self, error: BaseException | None) -> None:
        status = "FINISHED" if error is None else "FAILED"
        self._put(lambda: self._client.set_terminated(self._run_id, status))
        self._put(None)
        self._sender.join(FINISH_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _put(self, call: Callable[[], object] | None) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            raise TimeoutError(f"{WAITING_CALLS:,} rows wait for a slow server") from None

    def _send_all(self) -> None:
        """In the thread: every call in order, until the end or the first failure."""
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception as error:
                self._failure = error
                return
