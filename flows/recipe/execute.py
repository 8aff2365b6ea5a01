"""Run a plan: start what is ready, follow it, name what it made, plan again, until all stands.

Where a step runs is `dispatch`'s business (a child process here; a deployment under Prefect), and
who is told is the observer's. This loop knows neither.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from artifacts_schema.errors import EXIT_RESUME, EXIT_USAGE, IngotError, Stopped, UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.interim import interims, name_interims
from flows.recipe.observer import Observer, Several
from flows.recipe.pipeline import Pipeline
from flows.recipe.plan import Plan, PlannedStep
from flows.recipe.record import Recorder
from flows.recipe.snapshots import take_snapshot

POLL_SECONDS = 0.2
STOPPED = (-signal.SIGTERM, -signal.SIGKILL)
"""Exit codes of a child that `Job.stop` ended before it said that it stopped."""
RESTARTS = 3
"""How often a step that ended for a hang is started again in one run."""


class Job(Protocol):
    """A step that was started somewhere. `stages.engine.launch.Child` is one."""

    def events(self) -> Sequence[dict[str, Any]]:
        """What it told since the last call."""

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""

    def stop(self) -> Any:
        """Ask it to save and end, and wait until it has ended."""

    def last_words(self) -> str:
        """Its whole error, once it failed."""


Dispatch = Callable[[Store, PlannedStep], Job]
"""Start a ready step."""


def start_here(store: Store, step: PlannedStep) -> Job:
    """Dispatch to a child process on this machine."""
    from stages.engine.launch import start_child

    assert step.spec is not None, "a ready step has a spec"
    return start_child(store, step.spec, force=step.force, accept_code=step.accept_code)


def execute(
    pipeline: Pipeline,
    *,
    dispatch: Dispatch = start_here,
    observer: Observer | None = None,
    jobs: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
    wait: Callable[[float], None] = time.sleep,
) -> Plan:
    """Bring every selected step up to date; returns the last plan, in which all are reused.

    At most `jobs` steps run at the same time (the profile's number by default). A step that its own
    watchdog ended for a hang is started again, up to `RESTARTS` times. When a step fails,
    those that run are let to their end and nothing new is started; then its error is raised. When
    `stopping` turns true, running steps save and end, and Stopped is raised: run again to go on.
    """
    recorder = Recorder(pipeline)
    told = Several((recorder, observer)) if observer else recorder
    run = _Run(pipeline, dispatch, told, jobs or pipeline.profile.jobs)
    _name_snapshots(pipeline)
    try:
        plan = _until_done(run, stopping, wait)
    except BaseException as error:
        recorder.ended(error)
        raise
    recorder.ended(None)
    return plan


def _until_done(run: _Run, stopping: Callable[[], bool], wait: Callable[[float], None]) -> Plan:
    try:
        while True:
            plan = run.start_ready()
            if not run.running:
                break
            while not run.collect():
                if stopping():
                    raise Stopped("stopped on request", hint="the same command continues")
                wait(POLL_SECONDS)
    except BaseException:
        run.stop_all()
        raise
    if run.failure is not None:
        raise run.failure
    assert plan.is_done, f"no step is ready, yet {plan.summary()}"
    return plan


@dataclass
class _Running:
    step: PlannedStep
    job: Job
    since: float
    hung: bool = False
    """Whether it has said that it ends for a hang, and wants to be run again."""


@dataclass
class _Run:
    pipeline: Pipeline
    dispatch: Dispatch
    observer: Observer
    jobs: int
    running: dict[str, _Running] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    failure: IngotError | None = None
    named: dict[str, str] = field(default_factory=dict)
    hangs: Counter[str] = field(default_factory=Counter)
    is_stopping: bool = False
    """Whether the steps that run were asked to end."""

    def start_ready(self) -> Plan:
        """Plan, name what stands, and start what is ready while there is room and no failure."""
        while True:
            plan = self.pipeline.plan(frozenset(self.settled))
            self.observer.planned(plan)
            reused = [step for step in plan.steps if step.action == "reuse"]
            gone = [
                step.instance
                for step in reused
                if step.manifest is not None and not self._name(step.instance, step.manifest)
            ]
            if not gone:
                break
            self.settled.difference_update(gone)  # Collected before it was named: make it again.
        for running in self.running.values():
            self._name_interims(running.step)
        for step in self._startable(plan):
            job = self.dispatch(self.pipeline.store, step)
            self.running[step.instance] = _Running(step, job, time.monotonic())
            self.observer.started(step)
        return plan

    def collect(self) -> bool:
        """Pass on events and take in what ended; whether anything was committed or ended."""
        ended, committed = [], False
        for name, running in self.running.items():
            code = running.job.poll()
            for event in running.job.events():
                self.observer.event(running.step, event)
                committed = committed or event.get("type") == "interim"
                running.hung = running.hung or _tells_a_hang(event)
            if code is not None:
                ended.append((name, code))
        for name, code in ended:
            self._end(self.running.pop(name), code)
        return bool(ended) or committed

    def stop_all(self) -> None:
        """Ask every running step to save and end, and wait for all."""
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
            # Two instances may come to one key (equal inputs): the second finds it made.
            if step.is_ready and step.instance not in self.running and step.key not in keys:
                if step.instance in self.settled:
                    raise IngotError(
                        f"made, yet it does not stand: {step.cause}", where=step.instance
                    )
                keys.add(step.key)
                yield step

    def _end(self, running: _Running, code: int) -> None:
        step = running.step
        if code == EXIT_RESUME and running.hung and self.hangs[step.instance] < RESTARTS:
            self.hangs[step.instance] += 1
            again = f"it is started again, {self.hangs[step.instance]} of {RESTARTS} times"
            self.observer.failed(step, Stopped("ended for a hang", where=step.instance, hint=again))
            return  # Neither settled nor a failure, so the next plan starts it.
        if self.is_stopping and code in STOPPED:
            # It was asked before it could listen, or took too long to save: neither is its failure.
            hint = "the same command continues"
            self.observer.failed(step, Stopped("stopped", where=step.instance, hint=hint))
            return
        try:
            manifest = outcome(self.pipeline.store, step, running.job, code)
        except IngotError as error:
            self.observer.failed(step, error)
            self.failure = self.failure or error
            return
        self.settled.add(step.instance)
        if not self._name(step.instance, manifest):
            self.settled.discard(step.instance)
        self.observer.finished(step, manifest, time.monotonic() - running.since)

    def _name(self, instance: str, manifest: Manifest) -> bool:
        """Point `<recipe>/<instance>` at what it made, and `…@LABEL` at what on its way.

        False if a collection has removed it in the meantime.
        """
        if self.named.get(instance) != manifest.key:
            if not _set_ref(self.pipeline, instance, manifest):
                return False
            name_interims(
                self.pipeline.store, self.pipeline.ref(instance), manifest.stage, manifest.interims
            )
            self.named[instance] = manifest.key
        return True

    def _name_interims(self, step: PlannedStep) -> None:
        """Name what a running step has committed so far."""
        if step.key is not None:
            store = self.pipeline.store
            found = interims(store, step.stage, step.key)
            name_interims(store, self.pipeline.ref(step.instance), step.stage, found)


def _tells_a_hang(event: Mapping[str, Any]) -> bool:
    return event.get("type") == "alert" and event.get("kind") == "hang"


def run_step(
    store: Store,
    step: PlannedStep,
    *,
    dispatch: Dispatch = start_here,
    observer: Observer | None = None,
    stopping: Callable[[], bool] = lambda: False,
    wait: Callable[[float], None] = time.sleep,
) -> Manifest:
    """Run one step that is ready, and nothing else; returns what it committed.

    Raises the step's own error; Stopped when `stopping` turns true.
    """
    told = observer or Observer()
    since = time.monotonic()
    job = dispatch(store, step)
    told.started(step)
    try:
        while (code := job.poll()) is None:
            for event in job.events():
                told.event(step, event)
            if stopping():
                raise Stopped("stopped on request", hint="the same command continues")
            wait(POLL_SECONDS)
    except BaseException:
        job.stop()
        raise
    for event in job.events():
        told.event(step, event)
    try:
        manifest = outcome(store, step, job, code)
    except IngotError as error:
        told.failed(step, error)
        raise
    told.finished(step, manifest, time.monotonic() - since)
    return manifest


def outcome(store: Store, step: PlannedStep, job: Job, code: int) -> Manifest:
    """What a job that ended with `code` committed; raises its own line, and where its log lies."""
    manifest = store.manifest(step.stage, step.key or "") if code == 0 else None
    if manifest is not None:
        return manifest
    said = job.last_words().removeprefix("error: ").strip()
    if code == EXIT_RESUME:
        hint = None if "to continue" in said else "the same command continues"
        raise Stopped(said or "stopped", where=step.instance, hint=hint)
    if code == 0:
        said = "it ended well but committed nothing"
    elif code < 0:
        said = f"killed by signal {-code}" + (f" ({said})" if said else "")
    kind = UsageError if code == EXIT_USAGE else IngotError
    log = store.backend.full(layout.work(step.key or "", "log.txt"))
    raise kind(said or f"exit code {code}", where=step.instance, hint=f"log: {log}")


def _name_snapshots(pipeline: Pipeline) -> None:
    for name, manifest in pipeline.snapshots.items():
        while not _set_ref(pipeline, name, manifest):  # Collected before it was named.
            manifest = take_snapshot(pipeline.store, pipeline.graph.recipe.snapshots[name])


def _set_ref(pipeline: Pipeline, node: str, manifest: Manifest) -> bool:
    """Point the name of a node at an artifact; False if that was collected in the meantime."""
    name = pipeline.ref(node)
    standing = pipeline.store.ref(name)
    if standing is None or (standing.stage, standing.key) != (manifest.stage, manifest.key):
        return pipeline.store.name(name, manifest)
    return True
