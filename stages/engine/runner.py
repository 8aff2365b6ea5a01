"""One run of a stage: look up, lease, work, commit. Kill it anywhere and start it again."""

from __future__ import annotations

import logging
import math
import resource
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from artifacts_schema.config import Execution, MapExecution
from artifacts_schema.errors import (
    IngotError,
    LeaseLost,
    NotConserved,
    OneLine,
    Stopped,
    StoreError,
    UsageError,
)
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.commit import Attempt, commit
from artifacts_schema.store.failpoints import hit_failpoint
from artifacts_schema.store.lease import Lease, local_work, remove_work
from artifacts_schema.store.verify import find_committed
from stages.engine.allotment import available_cores
from stages.engine.context import Context, RunServices
from stages.engine.events import EVENTS_FILE, TELEMETRY_FOLDER, EventWriter, LogUploader
from stages.engine.inputs import Input
from stages.engine.join import join_run
from stages.engine.machines import ONE_MACHINE
from stages.engine.meter import Meter, account_for
from stages.engine.outputs import Interims
from stages.engine.protocol import Stage, stage_named
from stages.engine.provenance import build_manifest, code_digest, run_cost
from stages.engine.rank_files import RankFolder
from stages.engine.spec import StageSpec
from stages.engine.spmd import make_job, run_on_ranks
from stages.engine.state import State, accepted_changes, open_state
from stages.engine.transfers import Board, log_compiling, watch_fetches
from stages.engine.workers import Workers

if TYPE_CHECKING:
    from stages.engine.dask_engine import DaskCluster

LOG_FILE = "log.txt"


@dataclass(frozen=True)
class Outcome:
    """The committed artifact of the key, and whether it was committed before this run."""

    manifest: Manifest
    reused: bool


def run_stage(
    store: Store,
    spec: StageSpec,
    *,
    expected_key: str | None = None,
    force: bool = False,
    accept_code: bool = False,
    stop: Callable[[], bool] = lambda: False,
    lease_wait: float | None = None,
) -> Outcome:
    """Make the artifact of `spec`, or return the committed one.

    `force` runs it again, and compares. `accept_code` continues from what another program kept for
    itself, such as checkpoints, where this one has nothing of its own yet. Another run of the key
    is waited for, at most `lease_wait` seconds: then Stopped is raised, so that a job of a cluster
    does not hold nodes for it. A damaged artifact is made again, and stays until its replacement is
    committed. Raises UsageError if the key of `spec`
    here does not begin with `expected_key`, StoreError if the store's payload is not mounted.
    """
    key = spec.key
    if expected_key is not None:
        spec.check_key(expected_key)
    store.check_mounted()
    committed = None if force else _find_committed(store, spec)
    if committed is not None:
        return Outcome(committed, reused=True)
    folder = local_work(store.backend, key)
    folder.mkdir(parents=True, exist_ok=True)
    log, close_log = _logger(spec, folder / LOG_FILE)
    deadline = time.monotonic() + (math.inf if lease_wait is None else lease_wait)
    try:
        lease = Lease.take(
            store.backend,
            key,
            on_wait=lambda holder: log.info(
                "another run (process %d) holds this key; waiting for it", holder.process
            ),
            on_silent=lambda holder, ended: log.warning(
                "process %d held this key and gave no sign of life; %s",
                holder.process,
                "it was ended" if ended else "it ends by itself if it wakes up",
            ),
            give_up=lambda: stop() or time.monotonic() > deadline,
            settled=lambda: not force and _find_committed(store, spec) is not None,
        )
        committed = None if force else _find_committed(store, spec)
        if committed is not None:
            if lease is not None:
                remove_work(store.backend, key)
            return Outcome(committed, reused=True)
        if lease is None:
            raise StoreError(
                "what another run has just committed is gone or damaged again",
                where=f"{spec.stage} {short(key)}",
                hint="run again",
            )
        return _run_leased(store, spec, lease, folder, log, stop, accept_code=accept_code)
    finally:
        close_log()


def join_stage(
    store: Store, spec: StageSpec, machine: int, *, stop: Callable[[], bool] = lambda: False
) -> None:
    """Work as machine `machine`, from 1, for the run of `spec` that machine 0 starts.

    Returns at its end, also if the artifact exists already. UsageError if the spec is for one
    machine; otherwise see `stages.engine.join`.
    """
    stage = stage_named(spec.stage)
    execution = stage.Execution.parse(spec.execution, where=f"{spec.stage}.execution")
    machines = getattr(execution, "machines", ONE_MACHINE)
    if machines.count == 1:
        raise UsageError(
            f"{spec.stage} runs on one machine", where="execution.machines", hint="set its count"
        )
    store.check_mounted()
    join_run(
        RankFolder(local_work(store.backend, spec.key, "ranks")),
        spec.key,
        machine,
        wait_seconds=machines.wait_seconds,
        stop=stop,
        committed=lambda: _find_committed(store, spec) is not None,
    )


def _run_leased(
    store: Store,
    spec: StageSpec,
    lease: Lease,
    folder: Path,
    log: logging.Logger,
    stop: Callable[[], bool],
    *,
    accept_code: bool,
) -> Outcome:
    store.backend.replace(layout.work(spec.key, "spec.json"), spec.to_json())
    hit_failpoint("lease taken")
    stage = stage_named(spec.stage)
    execution = stage.Execution.parse(spec.execution, where=f"{spec.stage}.execution")
    workers = _worker_processes(stage, execution)  # Forked before the lease has a thread.
    code = code_digest(stage)
    meter = Meter(short(code))
    lease.meter = meter.note
    lease.start_beating()
    attempt = Attempt(store.backend, spec.stage, spec.key, dict(stage.outputs))
    events = EventWriter(folder / EVENTS_FILE)
    events.write("started", stage=spec.stage, key=spec.key)
    uploader = LogUploader(store.backend, spec.key, folder, (LOG_FILE, EVENTS_FILE), lease.is_mine)
    uploader.start()
    finished = False
    try:
        started = time.monotonic()
        state = open_state(store.backend, lease, short(code), log, accept=accept_code)
        meter.state = state
        run = _Run(
            store,
            spec,
            stage,
            attempt,
            events,
            lease,
            state,
            code,
            folder,
            stop,
            execution,
            workers,
            meter,
        )
        with closing(workers):
            context = run.work()
        log.info("%s %s made in %.1f s", spec.stage, short(spec.key), time.monotonic() - started)
        codes = [short(code), *(change["from"] for change in accepted_changes(state.folder))]
        earlier = account_for(store.backend, lease, meter.continued, codes)
        manifest = _manifest(spec, stage, attempt, context, time.monotonic() - started, earlier)
        _copy_telemetry(attempt, folder)
        hit_failpoint("payload written")
        lease.check()
        committed = commit(store, manifest)
        finished = True
        events.write("finished", key=spec.key)
        if committed.attempt != attempt.name:
            attempt.discard()
        return Outcome(committed, reused=committed.attempt != attempt.name)
    except Exception as error:
        _raise_if_lost(lease, error, log)
        if isinstance(error, IngotError):
            log.error("%s", error)
        else:
            log.exception("%s failed", spec.stage)
        raise
    finally:
        events.close()
        lease.stop_beating()
        uploader.stop(last=not finished)
        if finished:
            _log_failure(lambda: _remove_own_work(store.backend, lease))
            hit_failpoint("work removed")
        else:
            _log_failure(attempt.discard)
            _log_failure(lease.release)


@dataclass(frozen=True)
class _Run:
    """What a stage works with, from the lease to the commit."""

    store: Store
    spec: StageSpec
    stage: type[Stage]
    attempt: Attempt
    events: EventWriter
    lease: Lease
    state: State
    code: str
    folder: Path
    stop: Callable[[], bool]
    execution: Execution
    workers: Workers
    meter: Meter

    def work(self) -> Context:
        """Run the stage, here or on ranks; its context has what it counted and wrote."""
        spec, stage, execution = self.spec, self.stage, self.execution
        context = self._context(execution)
        world = stage.ranks(execution)
        if world == 1:
            with watch_fetches(Board(self.events).note, self.stop), log_compiling(self.state.log):
                stage().run(context)
            return context
        job = make_job(
            self.attempt, spec, self.state, execution,
            lease=self.lease, world=world, code=short(self.code),
        )  # fmt: skip
        machines = getattr(execution, "machines", ONE_MACHINE)
        run_on_ranks(
            context, self.attempt, self.state, job, self.folder,
            key=spec.key, wait_seconds=machines.wait_seconds, stop=self.stop,
        )  # fmt: skip
        return context

    def _context(self, execution: Execution) -> Context:
        store, spec, stage = self.store, self.spec, self.stage
        build = partial(build_manifest, spec, stage)
        interims = Interims(store, spec.stage, spec.key, stage.outputs, build, self.lease.check)
        cluster = _cluster(stage, execution, self.attempt, self.code, self.state)
        services = RunServices(
            self.attempt, self.code, self.state, interims, self.events, self.stop, cluster,
            self.workers, self.meter,
        )  # fmt: skip
        if cluster is not None:
            self.meter.elsewhere = lambda: cluster.cpu_seconds
        config = stage.Config.parse(spec.config, where=f"{spec.stage}.config")
        inputs = {
            role: [
                Input.load(
                    store, one, full_check=execution.verify_inputs, copied=execution.copy_inputs
                )
                for one in references
            ]
            for role, references in spec.inputs.items()
        }
        context = Context(config, execution, inputs, services)
        self.meter.devices = lambda: context.devices_held
        return context


def _raise_if_lost(lease: Lease, error: Exception, log: logging.Logger) -> None:
    """Raise LeaseLost for what follows from the loss of the key: the successor may have taken over
    or removed the files that this run works on."""
    if isinstance(error, LeaseLost | Stopped):
        return
    try:
        lease.check()
    except LeaseLost as lost:
        log.info("after that: %s: %s", type(error).__name__, error)
        log.error("%s", lost)
        raise lost from error
    except (OSError, StoreError):
        return  # Unknown: raise the first error.


def _remove_own_work(backend: Backend, lease: Lease) -> None:
    """Remove the work folder after the commit, unless a successor works in it: it will remove it,
    once it finds the artifact."""
    if lease.is_mine():
        remove_work(backend, lease.key)


def _log_failure(tidy: Callable[[], None]) -> None:
    """Clean up; a failure of that must hide neither a committed artifact nor an earlier error."""
    try:
        tidy()
    except (OSError, StoreError) as error:
        logging.getLogger(__name__).warning("%s", error)


def _find_committed(store: Store, spec: StageSpec) -> Manifest | None:
    """The committed artifact, if it is whole as far as is known without reading its bytes."""
    outputs = stage_named(spec.stage).outputs
    return find_committed(store, spec.stage, spec.key, outputs=outputs).whole


def _worker_processes(stage: type[Stage], execution: Execution) -> Workers:
    """The worker processes of a run; what forks them starts now if there will surely be some."""
    workers = Workers(stage.worker_modules, execution.silent_seconds)
    here = isinstance(execution, MapExecution) and execution.engine == "processes"
    if here and stage.worker_modules and (execution.workers or available_cores()) > 1:
        workers.start_server()
    return workers


def _cluster(
    stage: type[Stage], execution: Execution, attempt: Attempt, code: str, state: State
) -> DaskCluster | None:
    """The cluster that the execution names; None for processes of this machine."""
    if not isinstance(execution, MapExecution) or execution.engine != "dask":
        return None
    from stages.engine.dask_cluster import Scheduler
    from stages.engine.dask_engine import DaskCluster

    def find() -> Scheduler:
        if execution.scheduler_file is not None:
            plain = execution.allow_plain_tcp
            return Scheduler.load(execution.scheduler_file, allow_plain_tcp=plain)
        assert execution.scheduler is not None, "the execution was checked"
        return Scheduler(execution.scheduler)

    return DaskCluster(
        find,
        stage,
        code,
        attempt.backend,
        attempt.key,
        state.folder,
        execution.threads,
        state.log,
        execution.silent_seconds,
        execution.absent_seconds,
    )


def _manifest(
    spec: StageSpec,
    stage: type[Stage],
    attempt: Attempt,
    context: Context,
    seconds: float,
    earlier: dict[str, float],
) -> Manifest:
    if stage.handles_documents and context.conservation is None:
        raise NotConserved("the stage did not account for its records", where=spec.stage)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return build_manifest(
        spec,
        stage,
        attempt,
        key=spec.key,
        layout=context.layout_notes,
        counts=dict(sorted(context.counts.items())),
        conservation=context.conservation,
        samples=dict(sorted(context.samples.items())),
        telemetry={
            **context.notes,
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "seconds": round(seconds, 3),
            **run_cost(context, seconds),
            **earlier,
            "peak_memory_bytes": max(usage.ru_maxrss, children.ru_maxrss)
            * (1 if sys.platform == "darwin" else 1024),
            "workers": context.workers,
        },
        interims=context.interims_committed,
    )


def _copy_telemetry(attempt: Attempt, folder: Path) -> None:
    """Copy log and events next to the payload before the work folder is removed; never hashed."""
    place = layout.payload(attempt.stage, attempt.key, attempt.name, "telemetry")
    own = folder / TELEMETRY_FOLDER
    paths = {name: folder / name for name in (LOG_FILE, EVENTS_FILE)}
    paths |= {path.relative_to(own).as_posix(): path for path in sorted(own.rglob("*"))}
    for name, path in paths.items():
        if path.is_file() and not path.is_symlink():
            attempt.backend.replace(f"{place}/{name}", path.read_bytes())


class _LogFile(logging.FileHandler):
    """A log for people: that it cannot be written ends no run, and the run's own error says why."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop the line; by default Python prints a traceback for each."""


def _logger(spec: StageSpec, path: Path) -> tuple[logging.Logger, Callable[[], None]]:
    log = logging.getLogger(f"ingot.{spec.stage}.{short(spec.key)}")
    log.setLevel(logging.INFO)
    handler = _LogFile(path, encoding="utf-8")
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)

    def close() -> None:
        log.removeHandler(handler)
        handler.close()

    return log, close
