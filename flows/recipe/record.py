"""Writes the record of a run while it goes on, for whoever looks at it later or from elsewhere."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Any

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.manifest import Manifest
from artifacts_schema.run import Run, RunState, RunStep
from artifacts_schema.store.lease import this_process
from artifacts_schema.store.runs import new_id, runs, write_run
from flows.recipe.observer import Observer
from flows.recipe.pipeline import Pipeline
from flows.recipe.plan import Plan, PlannedStep

log = logging.getLogger(__name__)


@dataclass
class Recorder(Observer):
    """Keeps the record of one run; a run in which nothing is new leaves no record."""

    pipeline: Pipeline
    id: str = field(default_factory=new_id)
    started_at: str = field(default_factory=lambda: now())
    steps: dict[str, RunStep] = field(default_factory=dict)
    worth_keeping: bool = False

    def planned(self, plan: Plan) -> None:
        """Take in every step; what this run has made or seen fail keeps that state."""
        first = not self.steps
        for step in plan.steps:
            known = self.steps.get(step.instance)
            if known is None or known.state in ("waiting", "reused"):
                self.steps[step.instance] = self._line(step)
        if first:
            self.worth_keeping = not self._is_told_already()
            self._write("running")

    def started(self, step: PlannedStep) -> None:
        """A step runs."""
        self._update(step, state="running", key=step.key, cause=step.cause)

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """A step committed."""
        self._update(step, state="made", key=manifest.key, seconds=round(seconds, 3))

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """A step failed, or was stopped."""
        state = "stopped" if isinstance(error, Stopped) else "failed"
        self._update(step, state=state, error=str(error))

    def ended(self, error: BaseException | None) -> None:
        """The run ended: well, by an error, or by a stop."""
        if error is None:
            self._write("done")
            return
        asked = isinstance(error, Stopped | KeyboardInterrupt) or not isinstance(error, Exception)
        for name, step in self.steps.items():
            if step.state == "running":
                self.steps[name] = step.model_copy(update={"state": "stopped"})
        self._write("stopped" if asked else "failed", str(error) or type(error).__name__)

    def _line(self, step: PlannedStep) -> RunStep:
        return RunStep(
            instance=step.instance,
            stage=step.stage,
            key=step.key,
            state="reused" if step.action == "reuse" else "waiting",
            cause=step.cause,
            waits_for=step.reads,
        )

    def _update(self, step: PlannedStep, **values: Any) -> None:
        self.steps[step.instance] = self.steps[step.instance].model_copy(update=values)
        self._write("running")

    def _is_told_already(self) -> bool:
        """Whether the newest record tells of the same artifacts, all there, as this plan does."""
        try:
            newest = next(runs(self.pipeline.store, self.pipeline.name), None)
        except IngotError:
            return False
        mine = {(step.instance, step.key, True) for step in self.steps.values()}
        done = ("made", "reused")
        return newest is not None and newest.state == "done" and (
            mine == {(step.instance, step.key, step.state in done) for step in newest.steps}
        )  # fmt: skip

    def _write(self, state: RunState, error: str | None = None) -> None:
        if not self.worth_keeping:
            return
        request, process = self.pipeline, this_process()
        run = Run(
            id=self.id,
            recipe=request.name,
            state=state,
            started=self.started_at,
            updated=now(),
            steps=tuple(self.steps.values()),
            snapshots={name: manifest.key for name, manifest in request.snapshots.items()},
            overrides=tuple(override.text for override in request.graph.recipe.overrides),
            profile=request.profile.name,
            machine=process.machine,
            process=process.process,
            process_started=process.started,
            error=error,
        )
        try:
            write_run(request.store, run)
        except (IngotError, OSError) as problem:
            log.warning("the record of this run was not written: %s", problem)


def now() -> str:
    """The time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
