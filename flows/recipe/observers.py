"""Observers of a run: the interface, the run's record in the store, its view from outside.

The view is read from the store alone, so a run can be watched from any machine that can read the
store, by people who did not start it, with Prefect or without.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.lease import (
    DEAD_SECONDS,
    HEARTBEAT_SECONDS,
    Record,
    heartbeat,
    is_held,
    process_is_gone,
    this_process,
)
from artifacts_schema.store.runs import (
    Run,
    RunState,
    RunStep,
    find_run,
    load_runs,
    new_run_id,
    write_run,
)
from flows.recipe.pipeline import Pipeline
from flows.recipe.plan import Plan, PlannedStep
from stages.engine.events import EVENTS_FILE, EventTail
from stages.engine.provenance import login_name


class Observer:
    """Receives what happens in a run, in order, from one thread. Every method does nothing here."""

    def planned(self, plan: Plan) -> None:
        """A plan was made: at the start, and after each commit."""

    def started(self, step: PlannedStep) -> None:
        """A step was started."""

    def event(self, step: PlannedStep, event: dict[str, Any]) -> None:
        """An event of a running step: its `type` is started, progress, metric, finished, …"""

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """A step committed."""

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """A step failed or was stopped."""

    def ended(self, error: BaseException | None) -> None:
        """The run is over: None if all is up to date, else what ended it."""


log = logging.getLogger(__name__)


def utc_now() -> str:
    """The time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass
class RunSteps(Observer):
    """The state of every step of a run, as the run's record has it."""

    steps: dict[str, RunStep] = field(default_factory=dict)
    jobs: int = 1

    def planned(self, plan: Plan) -> None:
        """Take every step of the plan; those that this run made or saw fail keep that state."""
        settled = {
            name: step
            for name, step in self.steps.items()
            if step.state not in ("waiting", "reused")
        }
        planned = {step.instance: _to_record(step) for step in plan.steps}
        self.steps = {**planned, **settled}
        self.jobs = plan.jobs

    def started(self, step: PlannedStep) -> None:
        """A step runs."""
        self._update(_to_record(step), state="running", began=time.time())

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """A step committed."""
        known = self.steps[step.instance]
        self._update(known, state="made", key=manifest.key, seconds=round(seconds, 3))

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """A step failed or was stopped."""
        state = "stopped" if isinstance(error, Stopped) else "failed"
        self._update(self.steps.get(step.instance, _to_record(step)), state=state, error=str(error))

    def changed(self, step: RunStep) -> None:
        """Called when a step has another state."""

    def _update(self, step: RunStep, **values: Any) -> None:
        self.steps[step.instance] = step.model_copy(update=values)
        self.changed(self.steps[step.instance])


def _to_record(step: PlannedStep) -> RunStep:
    return RunStep(
        instance=step.instance,
        stage=step.stage,
        key=step.key,
        state="reused" if step.action == "reuse" else "waiting",
        action=step.action,
        cause=step.cause,
        waits_for=step.reads,
        expected_seconds=step.expected_seconds,
    )


@dataclass(kw_only=True)
class Recorder(RunSteps):
    """Keeps the record of one run; a run in which nothing is new leaves no record."""

    pipeline: Pipeline
    id: str = field(default_factory=new_run_id)
    started_at: str = field(default_factory=utc_now)
    worth_keeping: bool = False
    clock: Callable[[], float] = time.monotonic
    _sent: dict[str, float] = field(default_factory=dict)
    """Steps whose program has not started yet, and when each was sent off."""

    def planned(self, plan: Plan) -> None:
        """Take the steps of the plan, and write the record if it is the first."""
        first = not self.steps
        super().planned(plan)
        if first:
            self.worth_keeping = not self._is_recorded()
            self._write("running")

    def started(self, step: PlannedStep) -> None:
        """Record that a step was sent off."""
        self._sent[step.instance] = self.clock()
        super().started(step)

    def event(self, step: PlannedStep, event: dict[str, Any]) -> None:
        """Record how long a step waited for its program to start."""
        if event.get("type") == "started" and step.instance in self._sent:
            waited = self.clock() - self._sent.pop(step.instance)
            self._update(self.steps[step.instance], queue_seconds=round(waited, 3))

    def changed(self, step: RunStep) -> None:
        """Write the record."""
        self._write("running")

    def ended(self, error: BaseException | None) -> None:
        """Record how the run ended: done, failed or stopped."""
        if error is None:
            self._write("done")
            return
        is_stop = isinstance(error, Stopped | KeyboardInterrupt) or not isinstance(error, Exception)
        for name, step in self.steps.items():
            if step.state == "running":
                self.steps[name] = step.model_copy(update={"state": "stopped"})
        self._write("stopped" if is_stop else "failed", str(error) or type(error).__name__)

    def _is_recorded(self) -> bool:
        """Whether the newest record lists the same artifacts as this plan, all of them made."""
        try:
            newest = next(load_runs(self.pipeline.store, self.pipeline.name), None)
        except IngotError:
            return False
        mine = {(step.instance, step.key, True) for step in self.steps.values()}
        if newest is None or newest.state != "done":
            return False
        done = ("made", "reused")
        return mine == {(step.instance, step.key, step.state in done) for step in newest.steps}

    def _write(self, state: RunState, error: str | None = None) -> None:
        if not self.worth_keeping:
            return
        pipeline, process = self.pipeline, this_process()
        run = Run(
            id=self.id,
            recipe=pipeline.name,
            state=state,
            started=self.started_at,
            updated=utc_now(),
            steps=tuple(self.steps.values()),
            snapshots={name: manifest.key for name, manifest in pipeline.snapshots.items()},
            overrides=tuple(override.text for override in pipeline.graph.recipe.overrides),
            profile=pipeline.profile.name,
            jobs=self.jobs,
            by=pipeline.selection.by or login_name(),
            machine=process.machine,
            process=process.process,
            process_started=process.started,
            error=error,
        )
        try:
            write_run(pipeline.store, run)
        except (IngotError, OSError) as problem:
            log.warning("the record of this run was not written: %s", problem)


POINTS = 512
"""Most losses kept of a curve: above that, every second one is dropped."""
RATE_SECONDS = 30.0
"""Time span over which tokens a second are measured."""


@dataclass
class LiveProgress:
    """What the events of a running step say."""

    progress: dict[str, Any] | None = None
    metric: dict[str, Any] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    job: str = ""
    """What became of its job in a pool, in words."""
    silent_seconds: float = 0.0
    """For how long it has given no sign of life; 0 where that is no longer than usual."""
    _first: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Time and work done at the first event of each series of this attempt, by label and unit."""
    _every: int = 1
    _count: int = 0
    _rates: deque[tuple[float, float]] = field(default_factory=deque)

    def add(self, event: dict[str, Any]) -> None:
        """Add one event."""
        kind = event.get("type")
        if kind == "started":  # Events of an earlier attempt are in the same file.
            self.progress = None
            self._first.clear()
            self._rates.clear()
        elif kind == "progress" and event.get("total"):
            self.progress = event
            self._first.setdefault(_series(event), (float(event["time"]), float(event["done"])))
        elif kind == "metric":
            self.metric.update(event)
            self._measure(event)
        elif kind == "job":
            self.job = str(event["text"])

    @property
    def tokens_per_second(self) -> float | None:
        """Over the last half minute; None until there are two events."""
        if len(self._rates) < 2:
            return None
        (since, fewer), (until, more) = self._rates[0], self._rates[-1]
        return (more - fewer) / (until - since) if until > since else None

    @property
    def seconds_left(self) -> float | None:
        """Of the current series, by its rate in this attempt; None until it has some progress."""
        if self.progress is None:
            return None
        since, done_before = self._first[_series(self.progress)]
        done, total = float(self.progress["done"]), float(self.progress["total"])
        spent = float(self.progress["time"]) - since
        if done <= done_before or spent <= 0.0:
            return None
        return (total - done) * spent / (done - done_before)

    def _measure(self, event: dict[str, Any]) -> None:
        if isinstance(event.get("loss"), int | float):
            if self._count % self._every == 0:
                self.losses.append(float(event["loss"]))
            self._count += 1
            if len(self.losses) > POINTS:
                self.losses, self._every = self.losses[::2], self._every * 2
        if isinstance(event.get("tokens"), int | float):
            now, tokens = float(event["time"]), float(event["tokens"])
            if self._rates and tokens < self._rates[-1][1]:  # Back to an earlier checkpoint.
                self._rates.clear()
            self._rates.append((now, tokens))
            while now - self._rates[0][0] > RATE_SECONDS:
                self._rates.popleft()


def _series(event: dict[str, Any]) -> str:
    return f"{event.get('label', '')}: {event.get('unit', '')}"


@dataclass(frozen=True)
class StepView:
    """One step at this moment; `live` if it runs, `manifest` if its artifact exists."""

    step: RunStep
    live: LiveProgress | None
    manifest: Manifest | None


@dataclass(frozen=True)
class RunView:
    """A run at this moment. `lost`: its process ended without writing how."""

    run: Run
    steps: tuple[StepView, ...]
    lost: bool

    @property
    def is_over(self) -> bool:
        """Whether no more events will follow."""
        return self.run.state != "running" or self.lost


@dataclass
class RunWatcher:
    """Reads one run repeatedly; each event is read once."""

    store: Store
    run: Run
    _live: dict[str, LiveProgress] = field(default_factory=dict)
    _events: dict[str, EventTail] = field(default_factory=dict)
    _manifests: dict[str, Manifest] = field(default_factory=dict)
    now: Callable[[], float] = time.monotonic
    _beats: dict[str, tuple[tuple[str, int] | None, float, float]] = field(default_factory=dict)
    """The heartbeat of each running step, when it was first seen, and last looked at."""

    def look(self) -> RunView:
        """The run now."""
        self.run = find_run(self.store, self.run.name) or self.run
        steps = tuple(self._step(step) for step in self.run.steps)
        record = Record("", self.run.machine, self.run.process, self.run.process_started)
        return RunView(self.run, steps, self.run.state == "running" and process_is_gone(record))

    def still_working(self, view: RunView) -> list[str]:
        """Steps whose own process still runs after the run's has ended."""
        return [
            one.step.instance
            for one in view.steps
            if one.step.state == "running"
            and one.step.key is not None
            and is_held(self.store.backend, one.step.key)
        ]

    def _step(self, step: RunStep) -> StepView:
        if step.key is None or step.state == "waiting":
            return StepView(step, None, None)
        if step.state in ("made", "reused"):
            manifest = self._manifests.get(step.key) or self.store.manifest(step.stage, step.key)
            if manifest is not None:
                self._manifests[step.key] = manifest
            return StepView(step, None, manifest)
        live = self._live.setdefault(step.key, LiveProgress())
        tail = self._events.setdefault(step.key, EventTail(self.store.backend.read))
        for event in tail.read(layout.work(step.key, EVENTS_FILE)):
            live.add(event)
        live.silent_seconds = self._measure_silence(step.key) if step.state == "running" else 0.0
        return StepView(step, live, None)

    def _measure_silence(self, key: str) -> float:
        """Seconds for which the heartbeat of a step has stood still, if that is too long.

        Without one it has not begun, such as a job that is queued, or has just ended.
        """
        now = self.now()
        if key not in self._beats or now - self._beats[key][2] >= HEARTBEAT_SECONDS:
            beat, since, _ = self._beats.get(key, (None, now, now))
            newest = heartbeat(self.store.backend, key)
            self._beats[key] = (newest, since if newest == beat else now, now)
        beat, since, _ = self._beats[key]
        return now - since if beat is not None and now - since > DEAD_SECONDS else 0.0
