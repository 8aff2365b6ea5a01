"""One rank of a stage that runs on several processes; and torchrun, which starts the ranks.

`python -P -m stages.engine.rank JOB` is torchrun where it was started by a run, and a rank where it
was started by torchrun. A rank sets up what the runner sets up for a stage that runs alone, except
for the lease and the commit, which stay with the parent. Before any work, the ranks compare program
and libraries: with different ones they would train different models, or hang.
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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from artifacts_schema.errors import EXIT_FAILED, IngotError, OneLine, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.backend import HashingWriter
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.lease import Lease, local_work
from artifacts_schema.store.storage_errors import system_error
from stages.engine.context import Context, RunServices
from stages.engine.events import EVENTS_FILE, EventWriter
from stages.engine.inputs import Input
from stages.engine.outputs import Interims
from stages.engine.protocol import stage_named
from stages.engine.provenance import build_manifest, code_digest, library_versions
from stages.engine.spec import StageSpec
from stages.engine.spmd import (
    RankFolder,
    RankJob,
    agent_arguments,
    write_ends,
    write_error,
    write_result,
)
from stages.engine.state import State

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
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
    """Be torchrun, or a rank; returns the exit code."""
    job = Path(arguments[0])
    # The kernel ends this process with the one that started it.
    if sys.platform == "linux":
        number = signal.SIGKILL if "RANK" in os.environ else signal.SIGTERM
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if "RANK" not in os.environ:
        return _launch(job)
    rank, files = int(os.environ["RANK"]), RankFolder(job.parent)
    stop = threading.Event()
    for one in (signal.SIGINT, signal.SIGUSR2):
        signal.signal(one, lambda _number, _frame: stop.set())
    try:
        _run(RankJob.read(job), rank, files, stop)
    except BaseException as error:
        known = error if isinstance(error, IngotError) else system_error(error) or error
        write_error(files, rank, known)
        traceback.print_exc()
        os._exit(known.exit_code if isinstance(known, IngotError) else EXIT_FAILED)
    return 0


def _launch(job: Path) -> int:
    """Be torchrun: start the ranks of this machine, and write how they ended where one failed."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    try:
        torchrun(agent_arguments(job, RankJob.read(job).world, job.parent / "logs"))
    except ChildFailedError as error:
        write_ends(RankFolder(job.parent), {r: one.exitcode for r, one in error.failures.items()})
        return EXIT_FAILED
    return 0


def _run(job: RankJob, rank: int, files: RankFolder, stop: threading.Event) -> None:
    store = Store.open(job.store, create=False)
    spec = StageSpec.from_json(json.dumps(job.spec).encode(), where="job.json")
    stage = stage_named(spec.stage)
    config = stage.Config.parse(spec.config, where=f"{spec.stage}.config")
    execution = stage.Execution.parse(spec.execution, where=f"{spec.stage}.execution")
    threads = max(1, execution.threads // int(os.environ["LOCAL_WORLD_SIZE"]))
    execution = execution.model_copy(update={"threads": threads})
    _join(getattr(execution, "device", "cpu"))
    _check_alike({"key": spec.key, "code": code_digest(stage), **library_versions(stage)})
    backend, folder = store.backend, local_work(store.backend, spec.key)
    lease = FollowedLease(backend, spec.key, job.lease, job.held_lease(backend, spec.key).record)
    log = _logger(spec, folder / "log.txt" if rank == 0 else files.log(rank))
    own = folder / "state" / job.place
    state = State(backend, spec.key, job.place, own, log, dict(job.inherited), lease.check)
    kind = Attempt if rank == 0 else NoOutputs
    attempt = kind(backend, spec.stage, spec.key, dict(stage.outputs), job.attempt)
    events = EventWriter(folder / EVENTS_FILE) if rank == 0 else NoEvents()
    build = partial(build_manifest, spec, stage)
    interims = Interims(store, spec.stage, spec.key, stage.outputs, build, lease.check)
    inputs = {
        role: [Input.load(store, one, full_check=job.full_check) for one in references]
        for role, references in spec.inputs.items()
    }
    stopping = lambda: stop.is_set() or files.stop.exists()  # noqa: E731
    services = RunServices(attempt, job.code, state, interims, events, stopping)
    context = Context(config, execution, inputs, services)
    stage().run(context)
    if rank == 0:
        write_result(files, attempt, context)
    events.close()
    import torch.distributed as dist

    dist.barrier()
    dist.destroy_process_group()


def _join(device: str) -> None:
    """Join the group of all ranks, on this rank's device."""
    import torch
    import torch.distributed as dist

    if device != "cpu" and torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("cpu:gloo,cuda:nccl")
    else:
        dist.init_process_group("gloo")


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
