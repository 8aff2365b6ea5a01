"""What a Dask worker must agree on with the stage before it does a shard, and how it does one."""

from __future__ import annotations

import os
import pickle
import secrets
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from artifacts_schema.identity import short
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.remote import backend_at
from stages.engine.fork_server import execute_call
from stages.engine.meter import process_seconds
from stages.engine.protocol import Stage
from stages.engine.provenance import (
    code_digest,
    engine_digest,
    library_versions,
)
from stages.engine.spec import THREAD_VARIABLES, WAIT_POLICY

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


def do_shard(requirements: Requirements, call: bytes) -> tuple[WorkerReport, bytes | None, float]:
    """In a worker: a shard's answer and its CPU seconds; no answer if the worker is refused."""
    report = check_worker(requirements)
    if report.problems:
        time.sleep(REFUSAL_SECONDS)
        return report, None, 0.0
    begin = process_seconds()
    return report, bytes(execute_call(call)), process_seconds() - begin
