"""A Dask cluster on loopback, in processes of its own, as a user would start one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

SECONDS = 60.0
LOOPBACK = ("--host", "127.0.0.1", "--no-dashboard")


class DaskServer:
    """A scheduler and workers; `paths` are where workers import modules of tests from."""

    def __init__(self, folder: Path, paths: Sequence[Path] = (), *, workers: int = 2) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._processes = folder, list[subprocess.Popen[bytes]]()
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "OMP_NUM_THREADS": "1",
            "DASK_LOGGING__DISTRIBUTED": "error",
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
        }
        self.file = folder / "scheduler.json"
        self.start_scheduler()
        if workers:
            self.worker("--nworkers", str(workers), "--nthreads", "1")

    def start_scheduler(self, address: str | None = None) -> None:
        """Start the scheduler, again at its old address or at a free port."""
        self.file.unlink(missing_ok=True)
        port = address.rpartition(":")[2] if address else "0"
        command = [*LOOPBACK, "--port", port, "--no-jupyter", "--scheduler-file", str(self.file)]
        self.scheduler = self._start("scheduler", command)
        deadline = time.monotonic() + SECONDS
        while not (self.file.exists() and self.file.read_text().endswith("}")):
            if time.monotonic() > deadline:
                self.end(self.scheduler)
                raise AssertionError("the scheduler does not start")
            time.sleep(0.02)
        self.address: str = json.loads(self.file.read_text())["address"]

    def worker(self, *options: str, nanny: bool = True) -> subprocess.Popen[bytes]:
        """Start `dask worker`; it is there when the scheduler lists it."""
        kind = "--nanny" if nanny else "--no-nanny"
        local = ["--local-directory", str(self._folder)]
        return self._start("worker", [self.address, *LOOPBACK, kind, *local, *options])

    def workers(self) -> list[str]:
        """Addresses of the workers that the scheduler lists."""
        return list(self._ask("identity", n_workers=-1)["workers"])

    def wanted(self) -> int:
        """Workers that an adaptive deployment would start."""
        return int(self._ask("adaptive_target"))

    def _ask(self, question: str, **arguments: Any) -> Any:
        from distributed.core import rpc

        async def ask() -> Any:
            async with rpc(self.address) as scheduler:
                return await getattr(scheduler, question)(**arguments)

        # In a thread of its own: a browser's test may have left a running loop in this one.
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(lambda: asyncio.run(ask())).result()

    def wait_for_workers(self, number: int) -> None:
        """Wait until so many are there."""
        deadline = time.monotonic() + SECONDS
        while len(found := self.workers()) != number:
            assert time.monotonic() < deadline, f"{len(found)} workers, not {number}"
            time.sleep(0.1)

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """End one of its processes."""
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for process in reversed(self._processes):
            self.end(process)

    def _start(self, program: str, options: Sequence[str]) -> subprocess.Popen[bytes]:
        log = self._folder / f"{program}-{len(self._processes)}.log"
        with open(log, "wb") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{program}", *options],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=self._environment,
                cwd=self._folder,
            )
        self._processes.append(process)
        return process


@pytest.fixture(autouse=True)
def machines_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks of workers take their time where all tests run; for files that import this."""
    from stages.engine import dask_engine

    monkeypatch.setattr(dask_engine, "FIRST_SECONDS", SECONDS)
