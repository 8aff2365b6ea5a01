"""The workers of a running Dask cluster as the workers of a shard map.

Calls wait in Dask's scheduler, which gives them to workers, repeats those of a worker that is lost
and lets an adaptive cluster grow. What Dask does not do is here: no shard is done by a worker with
another program, other library versions, more than one thread, or without the stage's folders. The
manifest names one program and one version of each library for all of an artifact's bytes, so such a
worker is refused, not warned about. Workers that are there when a map begins are checked before any
work; one that joins later checks itself before its first shard.

A task is `pickle.loads` of bytes whose unpickling makes the call. A worker that cannot unpickle a
task itself loses its connection and dies, and a scheduler rejects it; this way a worker without
Ingot returns an error like any other, and the scheduler needs no Ingot.

What is pickled travels between the processes of the cluster: who can reach its scheduler can run
code on its workers. Its owner must protect it (`tls://`, a closed network); `dask_cluster` does for
those that Ingot starts. A map's common part lies in the work folder while the map runs; it is a
pickle, which a worker loads only if it has the sha256 that the task names.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import queue
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifacts_schema.errors import IngotError
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend
from stages.engine.dask_client import CONNECT_SECONDS, START, connect, silence_dask
from stages.engine.dask_cluster import Scheduler
from stages.engine.dask_worker import (
    FOLDER,
    Requirements,
    SharedFolder,
    WorkerReport,
    check_worker,
    do_shard,
)
from stages.engine.fork_server import unpack_answer
from stages.engine.protocol import Stage
from stages.engine.provenance import (
    CLUSTER_CPU_SECONDS,
    engine_digest,
    library_versions,
)
from stages.engine.tasks import Task
from stages.engine.workers import WorkerCrash

FIRST_SECONDS = 10.0
"""How long the checks of the workers that are there at the start of a map may take."""
SILENT_SECONDS = 60.0
"""How long a scheduler that was reached may take to answer."""
LOOK_SECONDS = 1.0
"""How often the list of workers is read."""
FETCH_SECONDS = 10.0
"""How long a result may take from its worker to here, once it is ready."""
LEAVE_SECONDS = 2.0
"""How long closing the client may take."""
IN_FLIGHT = 4096
"""Calls that wait in the scheduler or are worked on, at most."""
RETURN_SECONDS = 2.0
"""How long one that went away may take to answer the first try; each later one twice as long, up to
CONNECT_SECONDS. A stop waits as long."""
_NAMED = 5
"""Workers that an error names."""
_AT_WORK = ("executing", "long-running", "cancelled", "resumed")


@dataclass
class DaskCluster:
    """A running cluster for every map of one run of a stage, and what its workers used.

    `folder` is the stage's own folder on this machine. Shards may read what the stage put there; on
    a local store it is in the store.
    """

    find: Callable[[], Scheduler]
    """Where the scheduler is now: another one may have been started, at another address."""
    stage: type[Stage]
    code: str
    backend: Backend
    key: str
    folder: Path
    threads: int
    log: logging.Logger
    silent_seconds: float | None = None
    absent_seconds: float = 60.0
    """How long a map continues without any worker that could do a shard, or without a scheduler."""
    reached: bool = False
    """Whether a scheduler has answered in this run."""
    used: set[str] = field(default_factory=set)
    """Addresses of the workers that did a shard."""
    cpu_seconds: float = 0.0
    scheduler: Scheduler = field(init=False)

    def __post_init__(self) -> None:
        self.scheduler = self.find()

    def folders(self) -> tuple[SharedFolder, ...]:
        """The store's work folder; on a remote store also the stage's own, once it holds a file.

        A new token each time: a worker keeps its report for a map, and what it wrote goes with it.
        """
        token = secrets.token_hex(8)
        shared = SharedFolder(self.backend.url, layout.work(self.key, FOLDER), token)
        if self.backend.local or not any(p.is_file() for p in self.folder.rglob("*")):
            return (shared,)
        return shared, SharedFolder(str(self.folder), FOLDER, token)

    def pool(self, most: int, common: bytes) -> DaskWorkers:
        """Workers for one map of this common part, at most `most` at once."""
        return DaskWorkers(
            self,
            Requirements(
                pickle.dumps(self.stage),
                self.stage.name,
                self.code,
                engine_digest(),
                tuple(library_versions(self.stage).items()),
                self.folders(),
                self.threads,
                self.silent_seconds,
            ),
            most,
            common,
        )

    def telemetry(self) -> dict[str, float]:
        """For the manifest, which counts no process of another machine itself."""
        return {"dask_workers": len(self.used), CLUSTER_CPU_SECONDS: round(self.cpu_seconds, 3)}


class DaskWorkers:
    """The pool of one map: at most `most` shards at once, done by whichever workers are free.

    IngotError if the scheduler cannot be reached or goes away, if a worker that is there at the
    start is refused, and if no worker is there for so long. UsageError if the extra `dask`
    is not installed.
    """

    tries = 1
    """Dask itself repeats the calls of lost workers, up to its `allowed-failures` (3)."""

    def __init__(
        self, cluster: DaskCluster, requirements: Requirements, most: int, common: bytes
    ) -> None:
        self._cluster, self._requirements = cluster, requirements
        self._digest = hashlib.sha256(common).hexdigest()
        self._most = min(most, IN_FLIGHT)
        self._client: Any = None
        self._calls: dict[str, tuple[str, bytes, Any]] = {}
        """Shard, payload and future of each call, by Dask's key."""
        self._checks: dict[str, tuple[str, Any]] = {}
        """Worker and future of each check, by Dask's key."""
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._sound: set[WorkerReport] = set()
        """Of the workers that may do shards."""
        self._refused: dict[str, str] = {}
        """Why a worker gets no shards, by its address."""
        self._workers: dict[str, dict[str, Any]] = {}
        """What the scheduler last said about each worker, by address."""
        self._unsent: list[tuple[str, bytes]] = []
        """Shard and payload of calls that wait for a scheduler."""
        self._lost: tuple[float, str] | None = None
        """Since when there is no scheduler, and why."""
        self._return_seconds = RETURN_SECONDS
        self._open = False
        self._begin = self._looked = self._last_worker = time.monotonic()
        self._silenced = silence_dask()
        self._silenced.__enter__()
        try:
            self._client = self._first_client()
            for folder in requirements.folders:
                folder.announce()
            requirements.folders[0].write(self._digest, common)
            if self._lost is None:
                self._submit_checks()
        except BaseException:
            self._disconnect()
            self._silenced.__exit__(None, None, None)
            raise

    @property
    def busy(self) -> bool:
        """Whether a shard is waited for."""
        return bool(self._calls or self._unsent)

    @property
    def idle(self) -> bool:
        """Whether another shard may be given to the scheduler."""
        return self._open and len(self._calls) + len(self._unsent) < self._most

    def start_task(self, item: str, task: Task) -> None:
        """Give a task to the scheduler; `item` names it."""
        call = _Invocation(do_shard, self._requirements, self._digest, task, item)
        self._give(item, pickle.dumps(call))

    def wait(self, seconds: float) -> tuple[list[tuple[str, Any]], list[WorkerCrash]]:
        """Wait for something to happen: values by item, and shards whose workers were lost.

        Raises what a function raised, with the worker's traceback as a note, and IngotError where
        the scheduler has been away for too long.
        """
        if not self._is_connected(seconds):
            return [], []
        values: list[tuple[str, Any]] = []
        crashes: list[WorkerCrash] = []
        for key in self._take_ended(seconds):
            if key in self._checks:
                self._note_check(*self._checks.pop(key))
            if key not in self._calls:
                continue
            item, payload, task = self._calls.pop(key)
            value, error = _result(task)
            if error is not None and type(error).__name__ == "KilledWorker":
                last = getattr(error, "last_worker", None)
                crashes.append(WorkerCrash(item, 0, 0, worker=str(getattr(last, "address", last))))
            elif error is None and value and self._accept(value.report):
                self._cluster.used.add(value.report.address)
                self._cluster.cpu_seconds += value.cpu_seconds
                if value.crash is not None:
                    crashes.append(value.crash)
                else:
                    values.append((item, unpack_answer(value.answer)))
            else:  # Lost on its way here, or it met a refused worker.
                others = None
                if error is not None:  # Dask's own: perhaps a worker without Ingot joined.
                    self._cluster.log.warning("shard %s on a Dask worker: %r", item, error)
                    others = sorted({report.address for report in self._sound})
                self._give(item, payload, others)
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._update_workers()
        if self._lost is None:
            self._check_workers()
        return values, crashes

    def release(self) -> None:
        """Leave the cluster. A shard that a worker is doing continues there; nobody reads it."""
        self._calls.clear()
        self._unsent.clear()
        self._disconnect()
        self._silenced.__exit__(None, None, None)
        with suppress(IngotError, OSError):  # It goes with the work folder, at the latest.
            for folder in self._requirements.folders:
                folder.backend.remove(folder.folder)

    def _give(self, item: str, payload: bytes, workers: list[str] | None = None) -> None:
        """Have a shard done; without a scheduler, once there is one."""
        if self._client is None or self._client.status != "running":
            self._unsent.append((item, payload))
            return
        task = self._submit(payload, workers)
        self._calls[task.key] = item, payload, task

    def _submit(self, payload: bytes, workers: list[str] | None = None) -> Any:
        """Have it done by any of `workers`; by others if all of these are gone."""
        task = self._client.submit(
            pickle.loads,
            payload,
            key=f"ingot-{secrets.token_hex(8)}",
            workers=workers or None,
            allow_other_workers=bool(workers),
            pure=False,
            retries=0,
        )
        task.add_done_callback(lambda ended: self._ended.put(ended.key))
        return task

    def _take_ended(self, seconds: float) -> list[str]:
        """Keys of the calls that ended; waits up to `seconds` for the first."""
        ended: list[str] = []
        with suppress(queue.Empty):
            ended.append(self._ended.get(timeout=seconds) if seconds else self._ended.get_nowait())
            while True:
                ended.append(self._ended.get_nowait())
        return ended

    # Without a scheduler -------------------------------------------------------------------------

    def _is_connected(self, seconds: float) -> bool:
        """Whether there is a scheduler; one that went away is waited for, `absent_seconds` in all.

        Dask forgets the calls of a client that it loses, so they are given again to the next one.
        """
        if self._lost is None:
            if self._client.status == "running":
                return True
            self._lose("the connection was lost")
        assert self._lost is not None
        since, reason = self._lost
        cluster, now = self._cluster, time.monotonic()
        try:
            cluster.scheduler = cluster.find()
            self._client = connect(cluster.scheduler, self._return_seconds)
        except IngotError as error:
            if now - since >= cluster.absent_seconds:
                raise self._missing(f"{reason}; since then {error.what}") from None
            self._return_seconds = min(2 * self._return_seconds, CONNECT_SECONDS)
            time.sleep(min(seconds, LOOK_SECONDS))
            return False
        cluster.log.warning("the Dask scheduler %s is there again", cluster.scheduler.address)
        self._lost, self._return_seconds = None, RETURN_SECONDS
        self._begin = self._last_worker = time.monotonic()
        self._refused.clear()
        unsent, self._unsent = self._unsent, []
        for item, payload in unsent:
            self._give(item, payload)
        if not self._open:
            self._submit_checks()
        return self._lost is None

    def _first_client(self) -> Any:
        """None where the scheduler went away since an earlier map of the run."""
        try:
            client = connect(self._cluster.scheduler)
        except IngotError as error:
            if not self._cluster.reached:
                raise
            self._lost = time.monotonic(), error.what
            return None
        self._cluster.reached = True
        return client

    def _lose(self, reason: str) -> None:
        cluster = self._cluster
        cluster.log.warning(
            "the Dask scheduler %s is gone: %s; another one may come for %.0f s",
            cluster.scheduler.address,
            reason,
            cluster.absent_seconds,
        )
        self._lost = time.monotonic(), reason
        self._unsent += [(item, payload) for item, payload, _ in self._calls.values()]
        self._calls.clear()
        self._checks.clear()
        self._disconnect()

    def _missing(self, reason: str) -> IngotError:
        return IngotError(
            f"the Dask scheduler is gone: {reason}",
            where=self._cluster.scheduler.address,
            hint="finished shards are kept: start it again, with its workers, and run the same "
            "command to continue; or run it with engine processes",
        )

    # Who may work --------------------------------------------------------------------------------

    def _submit_checks(self) -> None:
        """Have the workers that are there check themselves."""
        self._update_workers()
        for address, facts in self._workers.items():
            if not _is_busy(facts):  # Its answer may take long; it checks itself later.
                check = pickle.dumps(_Invocation(check_worker, self._requirements))
                task = self._submit(check, workers=[address])
                self._checks[task.key] = address, task

    def _note_check(self, address: str, task: Any) -> None:
        """Take the answer of a worker that was there at the start."""
        report, error = _result(task)
        if error is not None and type(error).__name__ != "KilledWorker":
            self._refuse(address, f"it cannot import Ingot: {type(error).__name__}: {error}")
        elif report is not None:
            self._accept(report)

    def _accept(self, report: WorkerReport) -> bool:
        """Whether a worker may do shards, by its report; one that may not is refused."""
        if report in self._sound:
            return True
        problems = list(report.problems)
        for folder, name in zip(self._requirements.folders, report.written, strict=False):
            if not folder.holds(name):
                problems.append(folder.problem("what it writes there is not seen here"))
        if problems:
            self._refuse(report.address, f"{'; '.join(problems)} (on {report.host})")
            return False
        self._sound.add(report)
        self._cluster.cpu_seconds += report.cpu_seconds
        return True

    def _refuse(self, address: str, problem: str) -> None:
        if self._open and address not in self._refused:
            self._cluster.log.warning("Dask worker %s is given nothing: %s", address, problem)
        self._refused[address] = problem

    def _update_workers(self) -> None:
        try:
            identity = self._client.sync(
                self._client.scheduler.identity, n_workers=-1, callback_timeout=SILENT_SECONDS
            )
        except Exception as error:
            self._lose(str(error) or f"no answer for {SILENT_SECONDS:.0f} s")
            return
        self._workers, self._looked = dict(identity["workers"]), time.monotonic()
        self._refused = {at: why for at, why in self._refused.items() if at in self._workers}
        if any(_can_work(facts) for at, facts in self._workers.items() if at not in self._refused):
            self._last_worker = self._looked

    def _check_workers(self) -> None:
        """Begin once the workers that are there were checked; IngotError if nobody can work."""
        problems = [f"{address}: {problem}" for address, problem in self._refused.items()]
        more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        now = time.monotonic()
        if self._open:
            absent = self._cluster.absent_seconds
            if now - self._last_worker > absent:
                problems += [f"{address}: paused, short of memory" for address in self._workers]
                reasons = f" ({'; '.join(problems[:_NAMED])})" if problems else ""
                raise self._no_workers(
                    "the Dask cluster has had no worker that can do a shard for "
                    f"{absent:.0f} s{reasons}",
                    "start workers, with --memory-limit if they are paused, or wait longer for "
                    "them (execution.absent_seconds); finished shards are kept",
                )
        elif not self._checks or now - self._begin > FIRST_SECONDS:
            if problems:
                raise self._no_workers(
                    f"{len(problems)} of {len(self._workers)} Dask workers cannot do the shards "
                    f"of this stage: {'; '.join(problems[:_NAMED])}{more}",
                    "end them, and start them again from the environment of this process",
                )
            self._open = True
            if not self._sound:
                self._cluster.log.warning("no Dask worker is free yet; the shards wait for one")

    def _no_workers(self, problem: str, hint: str) -> IngotError:
        address = self._cluster.scheduler.address
        return IngotError(problem, where=address, hint=f"{hint}: `{START.format(address)}`")

    def _disconnect(self) -> None:
        if self._client is not None:
            with suppress(Exception):
                self._client.close(timeout=LEAVE_SECONDS)  # Dask drops the calls of a lost client.
            self._client = None


class _Invocation:
    """Unpickling it calls the function, and gives what that returns."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._parts = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._parts


def _result(task: Any) -> tuple[Any, BaseException | None]:
    """Value or error of a task that has ended; neither if it was lost with its worker."""
    with suppress(Exception):
        if task.status == "finished":
            return task.result(timeout=FETCH_SECONDS), None
        if task.status == "error":
            return None, task.exception(timeout=FETCH_SECONDS)
    return None, None


def _can_work(facts: dict[str, Any]) -> bool:
    """Whether a worker starts tasks or does one; Dask pauses a worker that is short of memory."""
    return facts["status"] == "running" or _is_busy(facts)


def _is_busy(facts: dict[str, Any]) -> bool:
    counts = (facts.get("metrics") or {}).get("task_counts") or {}
    return any(counts.get(state) for state in _AT_WORK)
