"""One run of a stage: look up, lease, work, commit. Kill it anywhere and start it again."""

from __future__ import annotations

import logging
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from artifacts_schema.errors import (
    IngotError,
    LeaseLost,
    NotConserved,
    Stopped,
    StoreError,
)
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.printable import OneLine
from artifacts_schema.store import Store, layout
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.commit import Attempt, commit
from artifacts_schema.store.damage import find_committed
from artifacts_schema.store.lease import Lease, Record
from artifacts_schema.store.points import reached
from artifacts_schema.store.work import local_work, remove_work
from stages.engine.code import code_digest
from stages.engine.context import Context
from stages.engine.cost import cost_of_run
from stages.engine.events import EVENTS_FILE, TELEMETRY_FOLDER, EventWriter
from stages.engine.inputs import Input
from stages.engine.interim import Interims
from stages.engine.manifests import manifest_of
from stages.engine.mirror import Mirror
from stages.engine.protocol import Stage
from stages.engine.registry import stage_named
from stages.engine.spec import StageSpec
from stages.engine.state import State, open_state
from stages.engine.transfers import Board, watched

LOG_FILE = "log.txt"


@dataclass(frozen=True)
class Outcome:
    """The artifact that stands under the key, and whether it stood there before."""

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
) -> Outcome:
    """Make the artifact of `spec`, or return the one that stands.

    `force` runs even so, and compares. `accept_code` goes on from what another program kept for
    itself, such as checkpoints, where this one has nothing of its own yet. A damaged artifact is
    made again, and stays until its replacement is committed. Raises UsageError if the key of `spec`
    here does not begin with `expected_key`, StoreError if the store's payload is not mounted.
    """
    key = spec.key
    if expected_key is not None:
        spec.check_key(expected_key)
    store.check_mounted()
    standing = None if force else _standing(store, spec)
    if standing is not None:
        return Outcome(standing, reused=True)
    folder = local_work(store.backend, key)
    folder.mkdir(parents=True, exist_ok=True)
    log, close_log = _logger(spec, folder / LOG_FILE)
    try:
        lease = Lease.take(
            store.backend,
            key,
            on_wait=lambda holder: _tell_wait(log, holder),
            on_silent=lambda holder, ended: _tell_silent(log, holder, ended),
            give_up=stop,
            settled=lambda: not force and _standing(store, spec) is not None,
        )
        standing = None if force else _standing(store, spec)
        if standing is not None:
            if lease is not None:
                remove_work(store.backend, key)
            return Outcome(standing, reused=True)
        if lease is None:
            raise StoreError(
                "what another run has just committed is gone or damaged again",
                where=f"{spec.stage} {short(key)}",
                hint="run again",
            )
        return _run_leased(store, spec, lease, folder, log, stop, accept_code=accept_code)
    finally:
        close_log()


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
    reached("lease taken")
    lease.start_beating()
    stage = stage_named(spec.stage)
    attempt = Attempt(store.backend, spec.stage, spec.key, dict(stage.outputs))
    events = EventWriter(folder / EVENTS_FILE)
    events.write("started", stage=spec.stage, key=spec.key)
    mirror = Mirror(store.backend, spec.key, folder, (LOG_FILE, EVENTS_FILE), lease.is_mine)
    mirror.start()
    finished = False
    try:
        started = time.monotonic()
        interims = Interims(store, spec, stage, lease.check)
        code = code_digest(stage)
        state = open_state(store.backend, lease, short(code), log, accept=accept_code)
        context = _context(store, spec, stage, attempt, code, state, interims, events, log, stop)
        with watched(Board(events).note, stop):
            stage().run(context)
        log.info("%s %s made in %.1f s", spec.stage, short(spec.key), time.monotonic() - started)
        manifest = _manifest(spec, stage, attempt, context, time.monotonic() - started)
        _copy_telemetry(attempt, folder)
        reached("payload written")
        lease.check()
        standing = commit(store, manifest)
        finished = True
        events.write("finished", key=spec.key)
        if standing.attempt != attempt.name:
            attempt.discard()
        return Outcome(standing, reused=standing.attempt != attempt.name)
    except Exception as error:
        _explain_a_loss(lease, error, log)
        if isinstance(error, IngotError):
            log.error("%s", error)
        else:
            log.exception("%s failed", spec.stage)
        raise
    finally:
        events.close()
        lease.stop_beating()
        mirror.stop(last=not finished)
        if finished:
            _quietly(lambda: _remove_own_work(store.backend, lease))
            reached("work removed")
        else:
            _quietly(attempt.discard)
            _quietly(lease.release)


def _explain_a_loss(lease: Lease, error: Exception, log: logging.Logger) -> None:
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
        return  # Nobody can tell: the first error stands.


def _remove_own_work(backend: Backend, lease: Lease) -> None:
    """Remove the work folder after the commit, unless a successor works in it: it will remove it,
    once it finds the artifact."""
    if lease.is_mine():
        remove_work(backend, lease.key)


def _quietly(tidy: Callable[[], None]) -> None:
    """Tidy up; a failure of that must hide neither an artifact that stands nor an earlier error."""
    try:
        tidy()
    except (OSError, StoreError) as error:
        logging.getLogger(__name__).warning("%s", error)


def _standing(store: Store, spec: StageSpec) -> Manifest | None:
    """The committed artifact, if it is whole as far as is known without reading its bytes."""
    outputs = stage_named(spec.stage).outputs
    return find_committed(store, spec.stage, spec.key, outputs=outputs).whole


def _context(
    store: Store,
    spec: StageSpec,
    stage: type[Stage],
    attempt: Attempt,
    code: str,
    state: State,
    interims: Interims,
    events: EventWriter,
    log: logging.Logger,
    stop: Callable[[], bool],
) -> Context:
    execution = stage.Execution.parse(spec.execution, where=f"{spec.stage}.execution")
    full_check = execution.verify_inputs
    return Context(
        config=stage.Config.parse(spec.config, where=f"{spec.stage}.config"),
        execution=execution,
        inputs={
            role: [Input.load(store, reference, full_check=full_check) for reference in given]
            for role, given in spec.inputs.items()
        },
        attempt=attempt,
        backend=store.backend,
        code=code,
        state=state,
        interims=interims,
        events=events,
        log=log,
        stop=stop,
    )


def _manifest(
    spec: StageSpec, stage: type[Stage], attempt: Attempt, context: Context, seconds: float
) -> Manifest:
    if stage.handles_documents and context.conservation is None:
        raise NotConserved("the stage did not account for its records", where=spec.stage)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return manifest_of(
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
            **cost_of_run(context, seconds),
            "peak_memory_bytes": max(usage.ru_maxrss, children.ru_maxrss)
            * (1 if sys.platform == "darwin" else 1024),
            "workers": context.workers,
        },
        interims=context.interims_committed,
    )


def _copy_telemetry(attempt: Attempt, folder: Path) -> None:
    """Keep what people read of a run beside the payload when the work folder goes; never hashed."""
    place = layout.payload(attempt.stage, attempt.key, attempt.name, "telemetry")
    own = folder / TELEMETRY_FOLDER
    found = {name: folder / name for name in (LOG_FILE, EVENTS_FILE)}
    found |= {path.relative_to(own).as_posix(): path for path in sorted(own.rglob("*"))}
    for name, path in found.items():
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


def _tell_wait(log: logging.Logger, holder: Record) -> None:
    log.info("another run (process %d) holds this key; waiting for it", holder.process)


def _tell_silent(log: logging.Logger, holder: Record, ended: bool) -> None:
    what = "it was ended" if ended else "it ends by itself if it wakes up"
    log.warning("process %d held this key and gave no sign of life; %s", holder.process, what)
