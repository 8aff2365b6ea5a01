"""What a Dask worker must agree on with the stage before it does a shard, and how it does one."""

from __future__ import annotations

import hashlib
import os
import pickle
import secrets
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing import current_process

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.remote import backend_at
from stages.engine.fork_server import execute
from stages.engine.meter import process_seconds
from stages.engine.protocol import Stage
from stages.engine.provenance import (
    code_digest,
    engine_digest,
    library_versions,
)
from stages.engine.spec import THREAD_VARIABLES, WAIT_POLICY
from stages.engine.tasks import Made, Task, do_task, held_common, held_packed, hold_common
from stages.engine.workers import WorkerCrash, Workers

_reports: dict[Requirements, WorkerReport] = {}
"""In a worker: the checks that this process made."""
REFUSAL_SECONDS = 2.0
"""How long a refused worker keeps a call: it must not take all that wait in the scheduler."""


FOLDER = "dask"
"""In a work folder: where the stage and its workers write files for each other."""


@dataclass(frozen=True)
class SharedFolder:
    """A folder that the stage and a worker must both see. Picklable."""

    url: str
    folder: str
    token: str

    @cached_property
    def backend(self) -> Backend:
        """The file system of the folder."""
        return backend_at(self.url)

    def announce(self) -> None:
        """Write the file that workers look for; StoreError if nothing can be written."""
        self.backend.replace(f"{self.folder}/{self.token}", self.token.encode())

    def write(self, name: str, data: bytes) -> None:
        """Write a file for the workers; StoreError if that fails."""
        self.backend.replace(f"{self.folder}/{name}", data)

    def answer(self) -> str:
        """In a worker: read that file, write another one, and return its name.

        Raises what reading or writing raises, and FileNotFoundError if another file is there.
        """
        if self.backend.read(f"{self.folder}/{self.token}") != self.token.encode():
            raise FileNotFoundError(self.folder)
        name = f"{self.token}-{secrets.token_hex(4)}"
        self.backend.replace(f"{self.folder}/{name}", self.token.encode())
        return name

    def holds(self, name: str) -> bool:
        """Whether the stage sees what a worker wrote."""
        return bool(self.backend.read_many([f"{self.folder}/{name}"]))

    def problem(self, reason: str) -> str:
        """Why a worker cannot use the folder."""
        return f"it does not share {self.backend.full(self.folder)} with this machine: {reason}"


@dataclass(frozen=True)
class Requirements:
    """What a worker must have. Picklable where Ingot is, even if the stage is not there."""

    stage: bytes
    name: str
    code: str
    engine: str
    libraries: tuple[tuple[str, str], ...]
    folders: tuple[SharedFolder, ...]
    threads: int
    silent_seconds: float | None = None
    """After which a process that does nothing at a task is ended, where tasks have one."""


@dataclass(frozen=True)
class WorkerReport:
    """What a worker found when it checked itself; it does shards if there are no `problems`."""

    host: str
    process: int
    address: str = ""
    problems: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    """Names of the files that it wrote into the shared folders."""
    cpu_seconds: float = 0.0
    """Cost of the check: mostly the import of the stage."""


def check_worker(requirements: Requirements) -> WorkerReport:
    """In a worker: compare it with the requirements, once for each process."""
    if requirements not in _reports:
        begin = process_seconds()
        report = _check_worker(requirements)
        _reports[requirements] = replace(report, cpu_seconds=process_seconds() - begin)
    return _reports[requirements]


def _check_worker(requirements: Requirements) -> WorkerReport:
    from distributed import get_worker

    worker = get_worker()
    report = WorkerReport(socket.gethostname(), os.getpid(), worker.address)
    if worker.state.nthreads != 1:
        return replace(report, problems=(f"it has {worker.state.nthreads} threads, not one",))
    try:
        stage: type[Stage] = pickle.loads(requirements.stage)
    except Exception as error:
        problem = f"it cannot import the stage: {type(error).__name__}: {error}"
        return replace(report, problems=(problem,))
    written = []
    for folder in requirements.folders:
        try:
            written.append(folder.answer())
        except Exception as error:
            reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
            return replace(report, problems=(folder.problem(reason),))
    threads = dict.fromkeys(THREAD_VARIABLES, str(requirements.threads))
    for name, value in {**threads, **WAIT_POLICY}.items():  # If the worker was started without.
        os.environ.setdefault(name, value)
    return replace(
        report, problems=tuple(program_differences(requirements, stage)), written=tuple(written)
    )


def program_differences(requirements: Requirements, stage: type[Stage]) -> Iterator[str]:
    """In a worker: what differs in code and library versions."""
    for name, theirs, ours in (
        (f"code of {requirements.name}", code_digest(stage), requirements.code),
        ("code of Ingot's engine", engine_digest(), requirements.engine),
    ):
        if theirs != ours:
            yield f"other {name} ({short(theirs)}, here {short(ours)})"
    versions = library_versions(stage)
    for name, version in requirements.libraries:
        if versions.get(name, "absent") != version:
            yield f"{name} {versions.get(name, 'absent')}, here {version}"


@dataclass(frozen=True)
class ShardAnswer:
    """What a worker says of one task. Neither `answer` nor `crash`: the worker is refused."""

    report: WorkerReport
    answer: bytes | None = None
    """See `fork_server.unpack_answer`."""
    cpu_seconds: float = 0.0
    crash: WorkerCrash | None = None
    """The end of the process that the task had for itself."""


def do_shard(requirements: Requirements, digest: str, task: Task, item: str) -> ShardAnswer:
    """In a worker: do a task of the map whose common part has this sha256; `item` names it."""
    report = check_worker(requirements)
    if report.problems:
        time.sleep(REFUSAL_SECONDS)
        return ShardAnswer(report)
    begin = process_seconds()
    failed = bytes(execute(_take_common, requirements.folders[0], digest))
    if _Process.digest != digest:
        return ShardAnswer(report, failed)
    if held_common().mark_of is not None:
        return _do_alone(requirements, report, task, item)
    answer = bytes(execute(do_task, None, task))
    return ShardAnswer(report, answer, process_seconds() - begin)


class _Process:
    """What this process keeps from one task to the next."""

    digest: str | None = None
    """Of the common part that it holds."""
    alone: Workers | None = None
    """The process that does the tasks of maps which ask why one crashed."""


def _take_common(folder: SharedFolder, digest: str) -> None:
    """Read a map's common part, unless this process holds it: a pickle, so only what a task names.

    InputError for other bytes, and whatever reading raises.
    """
    if _Process.digest == digest:
        return
    packed = folder.backend.read(f"{folder.folder}/{digest}")
    if hashlib.sha256(packed).hexdigest() != digest:
        raise InputError(
            "these are not the bytes that the stage wrote",
            where=f"{folder.backend.full(folder.folder)}/{digest}",
            hint="something else writes into the store; run the same command to continue",
        )
    _Process.digest = None
    hold_common(packed)
    held_common()
    _Process.digest = digest


def _do_alone(
    requirements: Requirements, report: WorkerReport, task: Task, item: str
) -> ShardAnswer:
    """Do a task in a process of its own: its crash ends that alone, and its signal is known."""
    if _Process.alone is None:
        # Dask's nanny starts workers as daemons, which may have no children since these could
        # outlive them. A worker process of ours ends with its parent.
        current_process()._config["daemon"] = False  # type: ignore[attr-defined]
        stage: type[Stage] = pickle.loads(requirements.stage)
        _Process.alone = Workers(stage.worker_modules)
    workers, mark_of = _Process.alone, held_common().mark_of
    assert mark_of is not None
    workers.silent_limit = requirements.silent_seconds
    crashes: list[WorkerCrash] = []
    spent = [0.0]

    def wait_for_it() -> Made | None:
        begun = False
        while not crashes:
            if workers.idle and not begun:
                workers.start_task(item, task)
                begun = True
            values, deaths = workers.wait(1.0)
            crashes.extend(deaths)
            for _, made in values:
                spent[0] = made[2][0]
                return made  # type: ignore[no-any-return]
        return None

    workers.lend(1, held_packed())
    try:
        answer = bytes(execute(wait_for_it))
    finally:
        workers.release()
    if not crashes:
        return ShardAnswer(report, answer, spent[0])
    crash = replace(crashes[0], item=item, host=report.host)
    return ShardAnswer(report, crash=replace(crash, mark=mark_of(item, crash.process)))
