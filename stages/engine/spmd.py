"""One stage on several processes that run the same program: launched here, followed to their end.

The stage's own process holds the lease and commits; it starts torchrun, which starts the ranks
(`stages.engine.rank`) and ends all of them where one ends badly. Rank 0 writes outputs, events and
log. They talk through files (`stages.engine.rank_files`). The exit code of torchrun says no more
than that something failed.

On several machines, the process with the lease is machine 0. The others join it
(`stages.engine.join`) and each starts a torchrun of its own. Machines are numbered by who starts
them, not by torchrun's elastic rendezvous, which would put rank 0 on any of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from artifacts_schema import errors
from artifacts_schema.errors import EXIT_OK, IngotError, Stopped, StoreError
from artifacts_schema.file_table import File
from artifacts_schema.identity import short
from artifacts_schema.manifest import Conservation
from artifacts_schema.store.commit import Attempt
from stages.engine.context import Context, RunReport
from stages.engine.hangs import HangMonitor
from stages.engine.machines import ONE_MACHINE, Machines, socket_interfaces
from stages.engine.rank_files import RankFolder, RankJob
from stages.engine.spec import StageSpec
from stages.engine.state import State

POLL_SECONDS = 0.2
ALIVE_SECONDS = 2.0
"""How often the parent shows that it lives."""
GRACE_SECONDS = 10.0
"""How long machines may take to report how they ended."""

rank_program: Sequence[str] = ("stages.engine.rank",)
"""Module of a rank and its first arguments; a proof sets one that watches what the rank does."""


class Agent:
    """torchrun on this machine, with the ranks that it started."""

    def __init__(self, files: RankFolder, job: RankJob, key: str, machine: int) -> None:
        interfaces = socket_interfaces(job.address, job.port)
        with open(files.printed(machine), "wb") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "stages.engine.rank",
                 "--machine", str(machine), str(files.job), key],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**interfaces, **os.environ, "PYTHONSAFEPATH": "1"},
                start_new_session=True,
            )  # fmt: skip

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def end(self) -> None:
        """End it and its ranks, whatever state they are in: ranks die with it."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


def make_job(
    attempt: Attempt,
    spec: StageSpec,
    state: State,
    execution: Any,
    *,
    lease: Any,
    world: int,
    code: str,
) -> RankJob:
    """What the ranks of a run are told. UsageError if this machine has no address for others."""
    machines: Machines = getattr(execution, "machines", ONE_MACHINE)
    address, port = machines.meeting_point()
    return RankJob(
        store=attempt.backend.url,
        spec=json.loads(spec.to_json()),
        attempt=attempt.name,
        lease=lease.number,
        record=asdict(lease.record),
        place=state.place,
        inherited=dict(state.inherited),
        code=code,
        full_check=execution.verify_inputs,
        world=world,
        watchdog=getattr(execution, "watchdog", None),
        machines=machines.count,
        address=address,
        port=port,
        program=tuple(rank_program),
    )


def run_on_ranks(
    context: Context,
    attempt: Attempt,
    state: State,
    job: RankJob,
    folder: Path,
    *,
    key: str,
    wait_seconds: float,
    stop: Callable[[], bool],
) -> None:
    """Run a stage on the ranks of a job; `attempt` and `context` get what rank 0 wrote and counted.

    Raises what the rank raised that failed first, with its number; IngotError if machines do not
    join; Stopped if all ended because they were asked to, or if the run hung.
    """
    files = RankFolder.fresh(folder / "ranks")
    files.write_json(files.job, asdict(job))
    parent = _Parent(files, job, stop, state)
    try:
        parent.wait_for_machines(wait_seconds)
        agent = Agent(files, job, key, 0)
        try:
            parent.follow(agent, context)
        finally:
            agent.end()
        _take_result(files, attempt, context)
    except BaseException as error:
        parent.end_other_machines(error)
        raise


class _Parent:
    """The process that holds the lease, while others work for it."""

    def __init__(
        self, files: RankFolder, job: RankJob, stop: Callable[[], bool], state: State
    ) -> None:
        self.files, self.job, self.stop, self.log = files, job, stop, state.log
        self._alive, self._beats = 0.0, 0

    def poll(self) -> None:
        """Show that this process lives, pass on a request to stop, and wait a moment."""
        now = time.monotonic()
        if self.job.machines > 1 and now - self._alive >= ALIVE_SECONDS:
            self._alive, self._beats = now, self._beats + 1
            with suppress(OSError):  # The others bear a longer silence.
                self.files.alive.write(self._beats)
        if self.stop() and not self.files.stop.exists():
            self.files.stop.touch()
        time.sleep(POLL_SECONDS)

    def wait_for_machines(self, seconds: float) -> None:
        """Wait until all machines have joined; IngotError names those that have not."""
        others = range(1, self.job.machines)
        deadline = time.monotonic() + seconds
        if others:
            self.log.info(
                "waiting for %d more machines, at most %.0f s: on each, run the same stage with "
                "--machine 1 to %d", len(others), seconds, len(others),
            )  # fmt: skip
        while missing := [one for one in others if not self.files.machine(one).exists()]:
            if self.stop():
                raise Stopped()
            if time.monotonic() > deadline:
                numbers = ", ".join(map(str, missing))
                raise IngotError(
                    f"{self.job.machines - len(missing)} of {self.job.machines} machines joined "
                    f"within {seconds:.0f} s; missing: machine {numbers}",
                    where="execution.machines",
                    hint=f"each runs the same stage with --machine N and sees {self.files.path}",
                )
            self.poll()

    def follow(self, agent: Agent, context: Context) -> None:
        """Wait until all ranks have ended well. Raises the error of those that have not."""
        files, job = self.files, self.job
        monitor = HangMonitor(files, job.world, job.watchdog)
        while agent.poll() is None and not self._another_machine_failed():
            self.poll()
            if monitor.hangs():
                self._report_hang(monitor, context)
        if agent.poll() == EXIT_OK and files.result.exists():
            return
        self._wait_for_ends()
        printed = files.printed(0).read_text(encoding="utf-8", errors="replace")
        raise failure(files, job, printed)

    def _another_machine_failed(self) -> bool:
        return any(self.files.ends(machine).exists() for machine in range(1, self.job.machines))

    def _wait_for_ends(self) -> None:
        """Wait a moment for how the ranks of all machines ended."""
        deadline = time.monotonic() + GRACE_SECONDS
        machines = range(self.job.machines) if self.job.machines > 1 else ()
        while time.monotonic() < deadline:
            if all(self.files.ends(machine).exists() for machine in machines):
                return
            self.poll()

    def _report_hang(self, monitor: HangMonitor, context: Context) -> None:
        """Raise the error of a run that hangs; its log has the stacks of a rank that is behind."""
        error = monitor.error()
        if slowest := monitor.stack_of_slowest():
            self.log.error("stacks of rank %d:", slowest[0])
            for line in slowest[1].splitlines():
                self.log.error("%s", line)
        context.alert("hang", error.what)
        raise error

    def end_other_machines(self, error: BaseException) -> None:
        """Tell the machines that joined why this launch is over."""
        known = error if isinstance(error, IngotError) else IngotError(str(error))
        with suppress(StoreError):  # Then they see that this process writes no beats.
            self.files.write_json(
                self.files.over, {"what": known.what, "exit_code": known.exit_code}
            )


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
    files.write_json(files.result, value)


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


# The error of a launch ----------------------------------------------------------------------------


def failure(files: RankFolder, job: RankJob, printed: str) -> IngotError:
    """The error of a launch that failed: the first cause, not what follows from it.

    A rank that a signal ended, or whose machine is gone, says nothing itself and makes others fail,
    who lose the connection. So errors that Ingot knows come first, then deaths, then other errors.
    """
    codes = files.exit_codes(job.machines)
    reports = {rank: files.error(rank).read() for rank in range(job.world)}
    reported = sorted(
        ((rank, value) for rank, value in reports.items() if value is not None),
        key=lambda one: float(one[1]["time"]),
    )
    entries = [(rank, value, _error_class(value["kind"])) for rank, value in reported]
    for rank, value, kind in entries:
        if kind is not None and kind is not Stopped:
            return kind(f"rank {rank}: {value['what']}", where=value["where"], hint=value["hint"])
    dead = _death(files, job, codes, reports)
    if dead is not None:
        return dead
    for rank, value, kind in entries:
        if kind is None:
            return IngotError(
                f"rank {rank} failed: {value['kind']}: {value['what']}",
                where=str(files.path / "logs"),
                hint="what it printed is there, with the traceback",
            )
    for _, value, _ in entries:
        return Stopped(value["what"], where=value["where"], hint=value["hint"])
    last = printed.strip().splitlines()[-1:] or ["it printed nothing"]
    return IngotError(f"torchrun failed: {last[0]}", where=str(files.printed(0)))


def _death(
    files: RankFolder, job: RankJob, codes: Mapping[int, int], reports: Mapping[int, Any]
) -> IngotError | None:
    """The error of a rank that ended without a word; None if there is none."""
    key = short(files.path.parent.name)
    for rank, code in sorted(codes.items()):
        if code < 0 and code != -signal.SIGTERM and reports[rank] is None:
            return IngotError(
                f"rank {rank} died ({signal.Signals(-code).name})",
                where=key,
                hint="checkpoints are kept; run again, with a smaller micro_batch or more parts "
                "(execution.layout.shard) if memory was short",
            )
    for machine in range(1, job.machines):
        first = machine * job.ranks_per_machine
        ranks = range(first, first + job.ranks_per_machine)
        if not files.ends(machine).exists() and all(reports[rank] is None for rank in ranks):
            name = (files.read_json(files.machine(machine)) or {}).get("host", "unknown")
            return IngotError(
                f"machine {machine} ({name}) is gone, with ranks {first} to {ranks[-1]}",
                where=key,
                hint="checkpoints are kept; run again on machines that are up",
            )
    return None


def _error_class(name: str) -> type[IngotError] | None:
    """The class of an error that Ingot knows."""
    kind = getattr(errors, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, IngotError) else None
