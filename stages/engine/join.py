"""A machine other than the first joins a run: it starts its ranks and follows the parent.

Everything goes through the folder of the run's ranks, which all machines see. The parent raises a
counter there while it lives; so files that a dead launch left are told from a run, and a machine
whose parent is gone ends its ranks.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

from artifacts_schema.errors import EXIT_OK, EXIT_RESUME, IngotError, Stopped, UsageError
from stages.engine.rank_files import RankFolder, RankJob
from stages.engine.spmd import GRACE_SECONDS, POLL_SECONDS, Agent

DEAD_SECONDS = 60.0
"""Silence of the parent after which another machine ends its ranks."""


def join_run(
    files: RankFolder,
    key: str,
    machine: int,
    *,
    wait_seconds: float,
    stop: Callable[[], bool],
    committed: Callable[[], bool],
) -> None:
    """Run the ranks of machine `machine`, from 1, for the run that machine 0 starts.

    Returns at the end of the run, also if its artifact was `committed` already. A request to stop
    is passed on to all ranks. Raises the error of the launch; IngotError if no run of the key was
    found within `wait_seconds`, and if its parent is gone.
    """
    job = _wait_for_parent(files, machine, wait_seconds, stop, committed)
    if job is None:
        return
    pulse, launch = _Pulse(files), files.launch
    agent = Agent(files, job, key, machine)
    try:
        while agent.poll() is None:
            if stop() and not files.stop.exists():
                files.stop.touch()
            if files.is_over(launch):
                break
            if pulse.silent() > DEAD_SECONDS:
                raise IngotError(
                    f"machine 0 gave no sign of life for {DEAD_SECONDS:.0f} s",
                    where=str(files.path),
                    hint="checkpoints are kept; start the run again",
                )
            time.sleep(POLL_SECONDS)
        if agent.poll() == EXIT_OK:
            return
    finally:
        agent.end()
    raise _error_of_launch(files, machine)


class _Pulse:
    """Seconds since the parent was last seen to live, by this machine's clock."""

    def __init__(self, files: RankFolder) -> None:
        self._files, self._seen, self._since = files, files.alive.read(), time.monotonic()
        self.beating = False
        """Whether it was seen to live since this was made."""

    def silent(self) -> float:
        """Seconds."""
        value = self._files.alive.read()
        if value is not None and value != self._seen:
            self.beating = True
            self._seen, self._since = value, time.monotonic()
        return time.monotonic() - self._since


def _wait_for_parent(
    files: RankFolder,
    machine: int,
    seconds: float,
    stop: Callable[[], bool],
    committed: Callable[[], bool],
) -> RankJob | None:
    """Join a run whose parent lives, and return its job; None if the artifact is committed.

    Files that an earlier launch left are no run: their parent does not beat.
    """
    deadline, pulse = time.monotonic() + seconds, _Pulse(files)
    while True:
        pulse.silent()
        if pulse.beating and not files.over.exists() and files.job.exists():
            break
        if stop():
            raise Stopped()
        if committed():
            return None
        if time.monotonic() > deadline:
            raise IngotError(
                f"no run to join within {seconds:.0f} s",
                where=str(files.path),
                hint="start the same stage on machine 0; all machines must see this folder",
            )
        time.sleep(POLL_SECONDS)
    job = RankJob.read(files.job)
    if not 0 < machine < job.machines:
        raise UsageError(
            f"machine {machine} of a run on {job.machines}",
            where="--machine",
            hint=f"machines that join are 1 to {job.machines - 1}",
        )
    try:
        with open(files.machine(machine), "x", encoding="utf-8") as file:
            json.dump({"host": os.uname().nodename, "process": os.getpid()}, file)
    except FileExistsError:
        holder = (files.read_json(files.machine(machine)) or {}).get("host", "another machine")
        raise UsageError(
            f"machine {machine} has joined already: {holder}",
            where="--machine",
            hint="give each machine a number of its own",
        ) from None
    return job


def _error_of_launch(files: RankFolder, machine: int) -> IngotError:
    """Why the parent ended the launch, or what torchrun printed here."""
    deadline = time.monotonic() + 2 * GRACE_SECONDS
    while time.monotonic() < deadline and not files.over.exists():
        time.sleep(POLL_SECONDS)
    over = files.read_json(files.over)
    if over is None:
        printed = files.printed(machine).read_text(encoding="utf-8", errors="replace").strip()
        last = printed.splitlines()[-1:] or ["it printed nothing"]
        return IngotError(f"torchrun failed: {last[0]}", where=str(files.printed(machine)))
    if over["exit_code"] == EXIT_RESUME:
        return Stopped(over["what"], hint="run the same command to continue")
    return IngotError(f"the run failed: {over['what']}", hint="machine 0 has the whole error")
