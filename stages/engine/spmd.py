"""One stage on several processes that run the same program: launched here, followed to their end.

The stage's own process holds the lease and commits; it starts torchrun, which starts the ranks
(`stages.engine.rank`) and ends all of them where one ends badly. Rank 0 writes outputs, events and
log. What the ranks are told, and what comes back, are JSON files in the folder `ranks` of the
run's work: `job.json`, `stop` (asked to stop), `result.json` of rank 0, `error-N.json` of a rank
that failed, `ends.json` with the exit codes of failed ranks. The exit code of torchrun tells no
more than that something failed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from artifacts_schema import errors
from artifacts_schema.errors import EXIT_RESUME, IngotError, Stopped
from artifacts_schema.files import write_whole
from artifacts_schema.identity import short
from artifacts_schema.manifest import Conservation, File
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.lease import Lease, Record
from stages.engine.context import RunReport
from stages.engine.spec import StageSpec
from stages.engine.state import State

POLL_SECONDS = 0.2
GRACE_SECONDS = 10.0
"""How long ranks may take to end once torchrun was asked to."""
LOOPBACK = dict.fromkeys(
    ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"), "lo" if sys.platform == "linux" else "lo0"
)
"""Ranks of one machine talk by its loopback alone, unless the environment says otherwise."""


@dataclass(frozen=True)
class RankJob:
    """What every rank of a run is told."""

    store: str
    spec: dict[str, Any]
    attempt: str
    """Name of the attempt that rank 0 writes into."""
    lease: int
    record: dict[str, Any]
    """Number and record of the lease that the parent holds."""
    place: str
    inherited: dict[str, str]
    """Place of the state, and the sets that it inherits."""
    code: str
    full_check: bool
    world: int

    @classmethod
    def read(cls, path: Path) -> RankJob:
        """The job in a file."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def held_lease(self, backend: Any, key: str) -> Lease:
        """The lease of the parent, to be checked."""
        return Lease(backend, key, self.lease, Record(**self.record))


@dataclass(frozen=True)
class RankFolder:
    """The files between a run and its ranks."""

    path: Path

    @property
    def job(self) -> Path:
        """What the ranks are told."""
        return self.path / "job.json"

    @property
    def stop(self) -> Path:
        """There once the run was asked to stop."""
        return self.path / "stop"

    @property
    def result(self) -> Path:
        """What rank 0 wrote and counted."""
        return self.path / "result.json"

    @property
    def ends(self) -> Path:
        """How the ranks ended that failed."""
        return self.path / "ends.json"

    def error(self, rank: int) -> Path:
        """Why a rank failed."""
        return self.path / f"error-{rank}.json"

    def log(self, rank: int) -> Path:
        """The log of a rank other than 0."""
        return self.path / f"log-{rank}.txt"


def run_on_ranks(
    report: RunReport,
    attempt: Attempt,
    spec: StageSpec,
    lease: Lease,
    state: State,
    folder: Path,
    *,
    world: int,
    code: str,
    full_check: bool,
    stop: Callable[[], bool],
) -> None:
    """Run a stage on `world` ranks; what rank 0 wrote and counted is in `attempt` and `report`.

    Raises what the rank raised that failed first, with its number; Stopped where all ended because
    they were asked to, or because one hung.
    """
    files = RankFolder(folder / "ranks")
    shutil.rmtree(files.path, ignore_errors=True)
    files.path.mkdir(parents=True)
    job = RankJob(
        store=attempt.backend.url,
        spec=json.loads(spec.to_json()),
        attempt=attempt.name,
        lease=lease.number,
        record=asdict(lease.record),
        place=state.place,
        inherited=dict(state.inherited),
        code=code,
        full_check=full_check,
        world=world,
    )
    files.job.write_text(json.dumps(asdict(job)), encoding="utf-8")
    output = files.path / "torchrun.txt"
    with open(output, "wb") as sink:
        agent = subprocess.Popen(
            [sys.executable, "-P", "-m", "stages.engine.rank", str(files.job), spec.key],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**LOOPBACK, **os.environ, "PYTHONSAFEPATH": "1"},
            start_new_session=True,
        )
    try:
        while agent.poll() is None:
            if stop() and not files.stop.exists():
                files.stop.touch()
            time.sleep(POLL_SECONDS)
    finally:
        _end(agent)
    if agent.returncode or not files.result.exists():
        raise _failure(files, world, output.read_text(encoding="utf-8", errors="replace"))
    _take_result(files, attempt, report)


def write_result(files: RankFolder, attempt: Attempt, report: RunReport) -> None:
    """Tell the parent what rank 0 wrote and counted."""
    value = {
        "files": {name: [one.model_dump() for one in paths.values()]
                  for name, paths in attempt.files.items()},
        "counts": report.counts,
        "samples": report.samples,
        "conservation": report.conservation.model_dump() if report.conservation else None,
        "notes": report.notes,
        "layout": report.layout_notes,
        "devices": report.devices_held,
    }  # fmt: skip
    text = json.dumps(value)
    write_whole(files.result, lambda path: path.write_text(text, encoding="utf-8"))


def write_error(files: RankFolder, rank: int, error: BaseException) -> None:
    """Tell the parent why a rank failed."""
    value = {
        "time": time.time(),
        "kind": type(error).__name__,
        "what": error.what if isinstance(error, IngotError) else str(error),
        "where": error.where if isinstance(error, IngotError) else None,
        "hint": error.hint if isinstance(error, IngotError) else None,
    }
    text = json.dumps(value)
    with suppress(OSError):  # A full disk: torchrun still tells which rank failed.
        write_whole(files.error(rank), lambda path: path.write_text(text, encoding="utf-8"))


def write_ends(files: RankFolder, codes: Mapping[int, int]) -> None:
    """Tell the parent the exit codes of failed ranks; below zero, a signal ended one."""
    text = json.dumps({str(rank): code for rank, code in codes.items()})
    with suppress(OSError):
        write_whole(files.ends, lambda path: path.write_text(text, encoding="utf-8"))


def _take_result(files: RankFolder, attempt: Attempt, report: RunReport) -> None:
    value = json.loads(files.result.read_text(encoding="utf-8"))
    for output, paths in value["files"].items():
        for plain in paths:
            attempt.register(output, File(**plain))
    report.count(**value["counts"])
    report.samples.update(value["samples"])
    if value["conservation"] is not None:
        report.conservation = Conservation(**value["conservation"])
    report.telemetry(**value["notes"])
    report.layout(**value["layout"])
    report.devices_held = value["devices"]


def _failure(files: RankFolder, world: int, printed: str) -> IngotError:
    """The error of the rank that failed first.

    One that a signal ended says nothing itself, and makes others fail, who lose the connection.
    """
    ends: dict[str, int] = {}
    with suppress(OSError, ValueError):
        ends = json.loads(files.ends.read_text(encoding="utf-8"))
    for rank, code in ((int(rank), code) for rank, code in ends.items()):
        if code < 0 and code != -signal.SIGTERM:  # By which torchrun ends the others.
            return IngotError(
                f"rank {rank} died ({signal.Signals(-code).name})",
                where=short(files.path.parent.name),
                hint="checkpoints are kept; run again, with a smaller micro_batch or more parts "
                "(execution.layout.shard) if memory was short",
            )
        if code == EXIT_RESUME and not files.error(rank).exists():
            return Stopped(
                f"rank {rank} hung and was ended", hint="run the same command to continue"
            )
    failures = []
    for rank in range(world):
        with suppress(OSError, ValueError):
            failures.append((json.loads(files.error(rank).read_text(encoding="utf-8")), rank))
    for value, rank in sorted(failures, key=lambda one: float(one[0]["time"])):
        kind = getattr(errors, value["kind"], None)
        if isinstance(kind, type) and issubclass(kind, IngotError):
            what = value["what"] if kind is Stopped else f"rank {rank}: {value['what']}"
            return kind(what, where=value["where"], hint=value["hint"])
        return IngotError(
            f"rank {rank} failed: {value['kind']}: {value['what']}",
            where=str(files.path / "logs"),
            hint="what it printed is there, with the traceback",
        )
    last = printed.strip().splitlines()[-1:] or ["it printed nothing"]
    return IngotError(f"torchrun failed: {last[0]}", where=str(files.path / "torchrun.txt"))


def _end(agent: subprocess.Popen[bytes]) -> None:
    """End torchrun and its ranks, whatever state they are in."""
    if agent.poll() is None:
        agent.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            agent.wait(GRACE_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(agent.pid, signal.SIGKILL)
    agent.wait()


def agent_arguments(job: Path, world: int, logs: Path) -> Sequence[str]:
    """Of torchrun, for the ranks of one machine; whatever they print goes to files."""
    return [
        "--nnodes=1",
        f"--nproc-per-node={world}",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=127.0.0.1:0",
        "--local-addr=127.0.0.1",
        "--max-restarts=0",
        f"--log-dir={logs}",
        "--redirects=3",
        "-m",
        "stages.engine.rank",
        str(job),
    ]
