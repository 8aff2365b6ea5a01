"""One rank of a stage that runs on several processes; and torchrun, which starts the ranks.

A run starts `python -P -m stages.engine.rank --machine M JOB KEY`, which is torchrun on a machine;
torchrun starts `… JOB` for each rank. A rank sets up what the runner sets up for a stage that runs
alone, except for the lease and the commit, which stay with the parent. Before any work, the ranks
compare program and libraries: with different ones they would train different models, or hang.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from artifacts_schema.errors import EXIT_FAILED, IngotError, OneLine, Stopped, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.backend import HashingWriter
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.lease import Lease, local_work
from artifacts_schema.store.storage_errors import system_error
from stages.engine.context import Context, RunServices
from stages.engine.events import EVENTS_FILE, EventWriter
from stages.engine.hangs import RankBeats
from stages.engine.inputs import Input
from stages.engine.outputs import Interims
from stages.engine.protocol import stage_named
from stages.engine.provenance import build_manifest, code_digest, library_versions
from stages.engine.rank_files import RankFolder, RankJob, write_ends, write_error
from stages.engine.spec import StageSpec
from stages.engine.spmd import write_result
from stages.engine.state import State

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
STOP_SECONDS = 600.0
"""How long a rank that has stopped waits for rank 0."""
NEVER = timedelta(days=30)
FLIGHT_RECORDS = "2000"
"""Collective operations that PyTorch's flight recorder remembers."""
LEASE_SECONDS = 5.0
"""How old the answer to a check of a remote lease may be that need not ask."""


class FollowedLease(Lease):
    """The lease that the parent holds and renews, as a rank checks it."""

    _last_check = 0.0

    def check(self, *, ask: bool = True) -> None:
        """Raise LeaseLost if another run has taken the key over; see `Lease.check`."""
        now = time.monotonic()
        ask = ask or now - self._last_check > LEASE_SECONDS
        if ask:
            self._last_check = now
        super().check(ask=ask)


class NoOutputs(Attempt):
    """The attempt of a rank other than 0: it writes nothing."""

    @contextmanager
    def create(self, output: str, path: str) -> Iterator[HashingWriter]:
        """RuntimeError: a bug of the stage, which must leave outputs to rank 0."""
        raise RuntimeError(f"a rank other than 0 writes {output}/{path}")
        yield


class NoEvents(EventWriter):
    """The events of a rank other than 0: none."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull))


def main(arguments: list[str]) -> int:
    """Be torchrun (`--machine M JOB KEY`), or a rank (`JOB`); returns the exit code."""
    if sys.platform == "linux":  # The kernel ends this process with the one that started it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if arguments[0] == "--machine":
        return _launch(Path(arguments[2]), int(arguments[1]))
    return run_rank(Path(arguments[0]))


def run_rank(path: Path) -> int:
    """Be the rank that torchrun's variables name, of the job in a file; returns the exit code."""
    job, rank, files = RankJob.read(path), int(os.environ["RANK"]), RankFolder(path.parent)
    stop, terminated = threading.Event(), threading.Event()

    def ask(number: int, _frame: Any) -> None:
        """Save and stop, as a scheduler asks all processes; or end, if another rank has failed and
        torchrun therefore sends SIGTERM."""
        stop.set()
        if number == signal.SIGTERM:
            terminated.set()

    for one in (signal.SIGINT, signal.SIGUSR2, signal.SIGTERM):
        signal.signal(one, ask)
    try:
        files.error(rank).reserve()
        _run(job, rank, files, stop, terminated)
    except BaseException as error:
        known = error if isinstance(error, IngotError) else system_error(error) or error
        write_error(files, rank, known)
        traceback.print_exc()
        if isinstance(known, Stopped) and rank > 0:
            _wait_for_first(files)
        sys.stderr.flush()
        os._exit(known.exit_code if isinstance(known, IngotError) else EXIT_FAILED)
    return 0


def _wait_for_first(files: RankFolder) -> None:
    """Wait until rank 0 has stopped too: it finishes the checkpoint, and torchrun gives ranks that
    remain 30 s once one has ended."""
    deadline = time.monotonic() + STOP_SECONDS
    while files.error(0).read() is None and time.monotonic() < deadline:
        time.sleep(0.1)


def _launch(job: Path, machine: int) -> int:
    """Be torchrun: start the ranks of a machine, and write how they ended where one failed."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    files = RankFolder(job.parent)
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
        signal.signal(one, lambda _number, _frame: files.stop.touch())
    try:
        torchrun(agent_arguments(job, RankJob.read(job), machine))
    except ChildFailedError as error:
        write_ends(files, machine, {r: one.exitcode for r, one in error.failures.items()})
        return EXIT_FAILED
    return 0


def agent_arguments(path: Path, job: RankJob, machine: int) -> Sequence[str]:
    """Of torchrun, for the ranks of a machine; whatever they print goes to files.

    Signals are not torchrun's, which would end the ranks before they have saved.
    """
    if job.machines == 1:
        meeting = ["--rdzv-backend=c10d", f"--rdzv-endpoint={job.address}:0"]
    else:
        meeting = [
            f"--node-rank={machine}",
            f"--master-addr={job.address}",
            f"--master-port={job.port}",
        ]
    return [
        f"--nnodes={job.machines}",
        f"--nproc-per-node={job.ranks_per_machine}",
        *meeting,
        f"--local-addr={job.address}",
        "--max-restarts=0",
        "--signals-to-handle=SIGQUIT",
        f"--log-dir={RankFolder(path.parent).logs(machine)}",
        "--redirects=3",
        "-m",
        *job.program,
        str(path),
    ]


def _run(
    job: RankJob,
    rank: int,
    files: RankFolder,
    stop: threading.Event,
    terminated: threading.Event,
) -> None:
    """Run the stage as this rank. Raises what it raises, UsageError if ranks differ."""
    store = Store.open(job.store, create=False)
    spec = StageSpec.from_json(json.dumps(job.spec).encode(), where="job.json")
    stage = stage_named(spec.stage)
    path = local_work(store.backend, spec.key, EVENTS_FILE)
    events = EventWriter(path) if rank == 0 else NoEvents()
    beats = RankBeats(
        files,
        rank,
        job.world,
        watchdog=job.watchdog,
        position=lambda: events.position,
        terminated=terminated,
    )
    beats.start()
    execution = stage.Execution.parse(spec.execution, where=f"{spec.stage}.execution")
    threads = max(1, execution.threads // int(os.environ["LOCAL_WORLD_SIZE"]))
    execution = execution.model_copy(update={"threads": threads})
    _join(getattr(execution, "device", "cpu"), job.watchdog)
    beats.joined = True
    _check_alike({"key": spec.key, "code": code_digest(stage), **library_versions(stage)})
    stopping = lambda: stop.is_set() or files.stop.exists()  # noqa: E731
    attempt, services = _services(job, store, spec, rank, files, events, stopping)
    config = stage.Config.parse(spec.config, where=f"{spec.stage}.config")
    inputs = load_inputs(job, store, spec, copied=execution.copy_inputs)
    context = Context(config, execution, inputs, services)
    stage().run(context)
    if rank == 0:
        write_result(files, attempt, context)
    events.close()
    import torch.distributed as dist

    dist.barrier()
    beats.joined = False
    dist.destroy_process_group()


def load_inputs(
    job: RankJob, store: Store, spec: StageSpec, *, copied: bool
) -> dict[str, list[Input]]:
    """The inputs of the stage; the ranks of a machine share the hashing of their files."""
    shared = job.ranks_per_machine > 1
    return {
        role: [
            Input.load(store, one, full_check=job.full_check, copied=copied, shared=shared)
            for one in references
        ]
        for role, references in spec.inputs.items()
    }


def _services(
    job: RankJob,
    store: Store,
    spec: StageSpec,
    rank: int,
    files: RankFolder,
    events: EventWriter,
    stop: Callable[[], bool],
) -> tuple[Attempt, RunServices]:
    """What the runner sets up for a stage that runs alone, for a rank."""
    backend, folder = store.backend, local_work(store.backend, spec.key)
    stage = stage_named(spec.stage)
    lease = FollowedLease(backend, spec.key, job.lease, job.held_lease(backend, spec.key).record)
    log = _logger(spec, folder / "log.txt" if rank == 0 else files.log(rank))
    own = folder / "state" / job.place
    state = State(backend, spec.key, job.place, own, log, dict(job.inherited), lease.check)
    kind = Attempt if rank == 0 else NoOutputs
    attempt = kind(backend, spec.stage, spec.key, dict(stage.outputs), job.attempt)
    build = partial(build_manifest, spec, stage)
    interims = Interims(store, spec.stage, spec.key, stage.outputs, build, lease.check)
    return attempt, RunServices(attempt, job.code, state, interims, events, stop)


def _join(device: str, watchdog: float | None) -> None:
    """Join the group of all ranks, on this rank's device.

    The parent ends a run that hangs, and knows which rank is behind; so torch's own limit, which
    makes the ranks fail that wait, comes later.
    """
    import torch
    import torch.distributed as dist

    limit = timedelta(seconds=2 * watchdog + 600) if watchdog is not None else NEVER
    if device != "cpu" and torch.cuda.is_available():
        for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):  # New, old.
            os.environ.setdefault(name, FLIGHT_RECORDS)
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("cpu:gloo,cuda:nccl", timeout=limit)
    else:
        dist.init_process_group("gloo", timeout=limit)


def _check_alike(own: dict[str, str]) -> None:
    """UsageError where ranks have different programs, libraries or configs."""
    import torch.distributed as dist

    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, own)
    for rank, other in enumerate(every):
        for name in sorted(every[0].keys() | other.keys()):
            if every[0].get(name) != other.get(name):
                raise UsageError(
                    f"{name} differs: {every[0].get(name)} on rank 0, {other.get(name)} on rank "
                    f"{rank}",
                    hint="install the same Ingot and libraries on every machine",
                )


def _logger(spec: StageSpec, path: Path) -> logging.Logger:
    log = logging.getLogger(f"ingot.{spec.stage}")
    log.setLevel(logging.INFO)
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    return log


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
