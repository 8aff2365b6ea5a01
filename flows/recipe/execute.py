"""Run a plan: start ready steps, follow them, name what they made, plan again until all is done.

A `Dispatch` decides where a step runs (a child process here, a job of a pool), observers receive
the events; this loop knows neither.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from artifacts_schema.errors import EXIT_RESUME, EXIT_USAGE, IngotError, Stopped, UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.commit import list_interims, name_interims
from flows.interchange.lineage_observer import lineage_observers
from flows.recipe.dispatch import Dispatch, Dispatcher, Job, start_here
from flows.recipe.observers import Observer, Recorder
from flows.recipe.pipeline import Pipeline
from flows.recipe.plan import Plan, PlannedStep
from flows.recipe.snapshots import take_snapshot
from flows.recipe.time_left import StepTimes

POLL_SECONDS = 0.2
STOPPED = (-signal.SIGTERM, -signal.SIGKILL)
"""Exit codes of a child that `Job.stop` ended before it said that it stopped."""
RESTARTS = 3
"""How often a step that ended for a hang is started again in one run."""


class Handover(BaseException):
    """Raised by a signal handler: this process ends, and another one continues the run.

    Jobs of pools go on, and the other process finds them; steps on this machine save and end.
    """


def execute(
    pipeline: Pipeline,
    *,
    dispatch: Dispatch | None = None,
    observers: Sequence[Observer] = (),
    jobs: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
    wait: Callable[[float], None] = time.sleep,
) -> Plan:
    """Bring every selected step up to date; returns the last plan, in which all are reused.

    Each step goes where the profile says, unless `dispatch` says otherwise. At most `jobs` steps
    run at the same time (the profile's number by default). A step that its own watchdog ended for a
    hang is started again, up to `RESTARTS` times. After a failure, running
    steps finish, no other is started, and the error is raised. When `stopping` returns true,
    running steps save and end, and Stopped is raised; another run continues.
    """
    recorder = Recorder(pipeline=pipeline)
    dispatch = dispatch or Dispatcher(pipeline.profile)
    recipe = pipeline.graph.recipe
    lineage = lineage_observers(
        pipeline.profile.openlineage, pipeline.store, recipe.name, recorder.id, recipe.description
    )
    observers = (recorder, *observers, *lineage)
    run = _Run(pipeline, dispatch, observers, jobs or pipeline.profile.jobs)
    for name, manifest in pipeline.snapshots.items():
        while not _set_ref(pipeline, name, manifest):  # Collected before it was named.
            manifest = take_snapshot(pipeline.store, pipeline.graph.recipe.snapshots[name])
    try:
        plan = run.start_ready(whole=True)
        while run.running:
            while not run.collect():
                if stopping():
                    raise Stopped("stopped on request", hint="the same command continues")
                wait(POLL_SECONDS)
            plan = run.start_ready()
            if plan.is_done:  # As the next run would see it.
                plan = run.start_ready(whole=True)
        if run.failure is not None:
            raise run.failure
        assert plan.is_done, f"no step is ready, yet {plan.summary()}"
    except BaseException as error:
        run.stop_all(handover=isinstance(error, Handover))
        for observer in observers:
            observer.ended(error)
        raise
    for observer in observers:
        observer.ended(None)
    return plan


@dataclass
class _Running:
    step: PlannedStep
    job: Job
    since: float
    hung: bool = False
    """Whether its watchdog reported a hang: it ends and must be started again."""


@dataclass
class _Run:
    pipeline: Pipeline
    dispatch: Dispatch
    observers: Sequence[Observer]
    jobs: int
    running: dict[str, _Running] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    failure: IngotError | None = None
    times: StepTimes = field(init=False)
    named: dict[str, str] = field(default_factory=dict)
    hangs: Counter[str] = field(default_factory=Counter)
    plan: Plan | None = None
    """The last one."""
    changed: set[str] = field(default_factory=set)
    """Instances of the graph that ended or committed something since then."""
    is_stopping: bool = False
    """Whether the running steps were asked to end."""

    def __post_init__(self) -> None:
        self.times = StepTimes(self.pipeline.graph, self.pipeline.store)

    def start_ready(self, whole: bool = False) -> Plan:
        """Plan, name reused artifacts, start ready steps while there is room and no failure.

        Planned is what changed since the last plan, or all of it (`whole`).
        """
        while True:
            before = None if whole else self.plan
            self.plan = self.pipeline.plan(frozenset(self.settled), before, self.changed)
            self.changed.clear()
            plan = self.times.add_to(self.plan, self.jobs)
            for observer in self.observers:
                observer.planned(plan)
            reused = [step for step in plan.steps if step.action == "reuse"]
            collected = [
                step.instance
                for step in reused
                if step.manifest is not None and not self._name(step.instance, step.manifest)
            ]
            if not collected:
                break
            self.settled.difference_update(collected)  # Removed before it was named: make it again.
            whole = True
        for running in self.running.values():  # Name what they have committed so far.
            stage, key = running.step.stage, running.step.key
            assert key is not None, "a running step has a key"
            committed = list_interims(self.pipeline.store, stage, key)
            name = self.pipeline.ref(running.step.instance)
            name_interims(self.pipeline.store, name, stage, committed)
        for step in self._startable(plan):
            job = self.dispatch(self.pipeline.store, step)
            self.running[step.instance] = _Running(step, job, time.monotonic())
            for observer in self.observers:
                observer.started(step)
        return plan

    def collect(self) -> bool:
        """Pass on events and end finished steps; returns whether any step committed or ended."""
        ended, committed = list[tuple[str, int]](), False
        for name, running in self.running.items():
            code = running.job.poll()
            for event in running.job.events():
                for observer in self.observers:
                    observer.event(running.step, event)
                if event.get("type") == "interim":
                    committed = True
                    self._note_change(running.step)
                is_alert = event.get("type") == "alert"
                running.hung = running.hung or (is_alert and event.get("kind") == "hang")
            if code is not None:
                ended.append((name, code))
        for name, code in ended:
            self._end(self.running.pop(name), code)
        return bool(ended) or committed

    def stop_all(self, handover: bool = False) -> None:
        """Ask every running step to save and end, and wait for all; see `Handover`."""
        if handover:
            for name in [name for name, one in self.running.items() if one.job.in_pool]:
                hint = "another process continues the run"
                step = self.running.pop(name).step
                self._fail(step, Stopped("its job goes on", where=step.instance, hint=hint))
        if not self.running:
            return
        self.is_stopping = True
        with ThreadPoolExecutor(len(self.running)) as pool:
            list(pool.map(lambda running: running.job.stop(), self.running.values()))
        with suppress(IngotError):
            self.collect()

    def _startable(self, plan: Plan) -> Iterator[PlannedStep]:
        if self.failure is not None:
            return
        keys = {running.step.key for running in self.running.values()}
        for step in plan.steps:
            if len(self.running) >= self.jobs:
                return
            # Two instances may have one key (equal inputs): the second is reused afterwards.
            if step.is_ready and step.instance not in self.running and step.key not in keys:
                if step.instance in self.settled:
                    raise IngotError(
                        f"made, but missing from the store: {step.cause}", where=step.instance
                    )
                keys.add(step.key)
                yield step

    def _end(self, running: _Running, code: int) -> None:
        step = running.step
        self._note_change(step)
        if code == EXIT_RESUME and running.hung and self.hangs[step.instance] < RESTARTS:
            self.hangs[step.instance] += 1
            hint = f"it is started again, {self.hangs[step.instance]} of {RESTARTS} times"
            self._fail(step, Stopped("ended for a hang", where=step.instance, hint=hint))
            return  # Neither settled nor a failure, so the next plan starts it.
        if self.is_stopping and code in STOPPED:
            # It ended before its signal handler was set, or took too long to save: no failure.
            hint = "the same command continues"
            self._fail(step, Stopped("stopped", where=step.instance, hint=hint))
            return
        try:
            manifest = read_outcome(self.pipeline.store, step, running.job, code)
        except IngotError as error:
            self._fail(step, error)
            self.failure = self.failure or error
            return
        if self._name(step.instance, manifest):
            self.settled.add(step.instance)
        seconds = time.monotonic() - running.since
        for observer in self.observers:
            observer.finished(step, manifest, seconds)

    def _note_change(self, step: PlannedStep) -> None:
        """The next plan looks at the step again, and at others that make the same artifact."""
        assert self.plan is not None
        assert self.plan.memory is not None
        for name, lines in self.plan.memory.lines.items():
            if step.instance in lines or any(line.key == step.key for line in lines.values()):
                self.changed.add(name)

    def _fail(self, step: PlannedStep, error: IngotError) -> None:
        for observer in self.observers:
            observer.failed(step, error)

    def _name(self, instance: str, manifest: Manifest) -> bool:
        """Point `<recipe>/<instance>` at its artifact, and `…@LABEL` at its checkpoints.

        Returns False if a collection has removed the artifact in the meantime.
        """
        if self.named.get(instance) != manifest.key:
            store, ref = self.pipeline.store, self.pipeline.ref(instance)
            if not _set_ref(self.pipeline, instance, manifest):
                return False
            name_interims(store, ref, manifest.stage, manifest.interims)
            self.named[instance] = manifest.key
        return True


def run_step(
    store: Store,
    step: PlannedStep,
    *,
    dispatch: Dispatch = start_here,
    observer: Observer | None = None,
    stopping: Callable[[], bool] = lambda: False,
    wait: Callable[[float], None] = time.sleep,
) -> Manifest:
    """Run one ready step, and nothing else; returns the manifest that it committed.

    Raises the step's own error; Stopped when `stopping` returns true.
    """
    observer = observer or Observer()
    since = time.monotonic()
    job = dispatch(store, step)
    observer.started(step)
    code = None
    try:
        while code is None:
            code = job.poll()
            for event in job.events():
                observer.event(step, event)
            if code is None and stopping():
                raise Stopped("stopped on request", hint="the same command continues")
            if code is None:
                wait(POLL_SECONDS)
    except BaseException as error:
        if not (isinstance(error, Handover) and job.in_pool):
            job.stop()
        if isinstance(error, IngotError):
            observer.failed(step, error)
        raise
    try:
        manifest = read_outcome(store, step, job, code)
    except IngotError as error:
        observer.failed(step, error)
        raise
    observer.finished(step, manifest, time.monotonic() - since)
    return manifest


def read_outcome(store: Store, step: PlannedStep, job: Job, code: int) -> Manifest:
    """The manifest of a job that ended with `code`; raises its error, with the path of its log."""
    manifest = store.manifest(step.stage, step.key or "") if code == 0 else None
    if manifest is not None:
        return manifest
    message = job.last_words().removeprefix("error: ").strip()
    if code == EXIT_RESUME:
        hint = None if "to continue" in message else "the same command continues"
        raise Stopped(message or "stopped", where=step.instance, hint=hint)
    if code == 0:
        message = "it ended without an error but committed nothing"
    elif code < 0:
        message = f"killed by signal {-code}" + (f" ({message})" if message else "")
    kind = UsageError if code == EXIT_USAGE else IngotError
    log = store.backend.full(layout.work(step.key or "", "log.txt"))
    raise kind(message or f"exit code {code}", where=step.instance, hint=f"log: {log}")


def _set_ref(pipeline: Pipeline, node: str, manifest: Manifest) -> bool:
    """Point the name of a node at an artifact; False if a collection has removed the artifact."""
    name = pipeline.ref(node)
    ref = pipeline.store.ref(name)
    if ref is None or (ref.stage, ref.key) != (manifest.stage, manifest.key):
        return pipeline.store.name(name, manifest)
    return True
