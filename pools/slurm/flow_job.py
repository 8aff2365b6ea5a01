"""The Slurm job of a flow run: submitted once, found by its comment, reported to Prefect.

Nothing is kept in the worker: the comment of a job names the work pool and the flow run, the folder
of the flow run holds what the node says of itself, and the state lies in Slurm and in Prefect. So a
worker that is started again, and a second one on the same pool, see the same. No Prefect is needed
here; `worker.py` asks the API and does what `report` says.
"""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from artifacts_schema.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, UsageError
from flows.orchestration.node import MODULE, FlowJobFolder, NodeReport
from flows.recipe.profile import Resources
from pools.cluster_job import LOST_SECONDS, SubmissionLost
from pools.decide import UNKNOWN, Action, Cause, Done, Facts, Fail, JobState, Submit, decide
from pools.slurm import client
from pools.slurm.pool import SlurmScheduler
from pools.slurm.script import BatchJob
from stages.engine.spec import NOT_FOR_STAGES, last_error

SILENT_SECONDS = 60.0
"""How long a job may run before a flow run that its node does not report counts as running."""
PROGRESS_SECONDS = 600.0
"""A start that ran for so long is none without progress: it waited for the jobs of its steps."""
_TAG = re.compile(r"ingot pool=(?P<pool>[0-9a-f-]{36}) flow-run=(?P<run>[0-9a-f-]{36})")

State = Literal["PENDING", "RUNNING", "SCHEDULED", "COMPLETED", "FAILED", "CRASHED", "CANCELLED"]
"""Types of Prefect's states."""
FINAL = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


def flow_run_tag(pool: str, flow_run: str) -> str:
    """The comment of a job; Slurm has no field that only we can write, so it holds no secret.

    The work pool's id keeps the workers of two Prefect servers apart.
    """
    return f"ingot pool={pool} flow-run={flow_run}"


def tagged_runs(jobs: Iterable[Mapping[str, Any]], pool: str) -> dict[str, list[str]]:
    """Flow run → its jobs that wait or run, lowest number first."""
    queue = list(jobs)
    tags = {str(job.get("comment")) for job in queue}
    matches = (match for tag in tags if (match := _TAG.fullmatch(tag)) and match["pool"] == pool)
    live = {match["run"]: client.live_jobs(queue, match[0]) for match in matches}
    return {run: numbers for run, numbers in live.items() if numbers}


@dataclass(frozen=True)
class FlowJob:
    """What is submitted for one flow run."""

    flow_run: str
    tag: str
    name: str
    folder: FlowJobFolder
    resources: Resources
    scheduler: SlurmScheduler
    environment: Mapping[str, str]
    command: str | None = None
    """A command of the deployment's own, in place of the node's."""

    def submit(self, wait: Callable[[float], None] = time.sleep) -> str:
        """The job's number: the one that lives, else a new one; never two that run.

        Where sbatch gave no answer, the queue is asked before it is called again. An answer may
        also be lost while the job is still on its way: `singleton` lets only one of a name start,
        and the one with the lowest number stays.
        """
        deadline = time.monotonic() + LOST_SECONDS
        while True:
            try:
                number = self.scheduler.find(self.tag) or self.scheduler.submit_job(self._batch())
                return (
                    keep_first(self.scheduler, client.live_jobs(client.read_queue(), self.tag))
                    or number
                )
            except (SubmissionLost, client.SlurmAway):
                if time.monotonic() > deadline:
                    raise
                wait(2.0)

    def _batch(self) -> BatchJob:
        python = self.scheduler.settings.python or sys.executable
        sizes = self.resources.memory_bytes
        return BatchJob(
            name=f"{self.name}-{self.flow_run[:8]}",
            comment=self.tag,
            folder=self.folder.path,
            command=self.command or shlex.join([python, "-P", "-m", MODULE, str(self.folder.path)]),
            resources=self.resources,
            memory=sizes[0] if sizes else None,
            environment=self.environment,
            options=("--dependency=singleton",),
            reads_credentials=True,
        )


def keep_first(scheduler: SlurmScheduler, numbers: list[str]) -> str | None:
    """Remove all but the first of several jobs of one flow run; the first."""
    for number in numbers[1:]:
        scheduler.cancel(number)
    return numbers[0] if numbers else None


@dataclass(frozen=True)
class Report:
    """The state that the flow run should have."""

    state: State
    message: str


def report(
    state: str, job: JobState, node: NodeReport, seconds: float, stalls: int, number: str | None
) -> Report | None:
    """What to tell Prefect of a flow run in `state`; None if that is right already.

    `seconds` since the job was last seen in another phase, `stalls` starts in a row without
    progress. What the node says wins over Slurm, which forgets jobs; what Prefect knows wins over
    both.
    """
    stopping, name = state == "CANCELLING", f"job {number}" if number else "no job"
    action = _decide(state, job, node, seconds, stalls)
    if isinstance(action, Done):
        end = f"{name} ended well; its node could not report it ({node.away or 'no answer'})"
        return None if state in FINAL else Report("COMPLETED", end)
    if isinstance(action, Submit):
        return Report("SCHEDULED", f"{name} ended ({action.reason}); it is submitted again")
    if isinstance(action, Fail):
        return Report(*_failure(action, job, node, stopping, name))
    if stopping:
        return None
    if job.phase == "waiting":
        return Report("PENDING", f"{name} waits: {job.reason or 'no reason given'}")
    if job.phase == "running" and state != "RUNNING" and seconds > SILENT_SECONDS:
        return Report("RUNNING", f"{name} runs; {node.away or 'its node has not reported yet'}")
    return None


def _decide(state: str, job: JobState, node: NodeReport, seconds: float, stalls: int) -> Action:
    if node.code is not None and job.phase in ("ended", "unknown"):
        cause: Cause = "done" if node.code == EXIT_OK else "failed"
        job = replace(job, phase="ended", cause=cause, exit_code=node.code)
    elif state == "CANCELLING" and job.phase == "unknown":
        seconds = float("inf")  # Nothing to wait for.
    is_made = state in FINAL or (job.phase == "ended" and job.cause == "done")
    stopping = state == "CANCELLING"
    return decide(Facts(job, is_made, seconds=seconds, stalls=stalls, stopping=stopping))


def _failure(
    action: Fail, job: JobState, node: NodeReport, stopping: bool, name: str
) -> tuple[State, str]:
    kept = "finished work is kept, and another run continues"
    if stopping:
        return "CANCELLED", f"{name}: {kept}"
    if job.cause == "cancelled":
        return "CANCELLED", f"{name} was cancelled in Slurm ({job.reason}); {kept}"
    if node.code in (EXIT_FAILED, EXIT_USAGE):
        return "FAILED", f"{node.message or action.reason} ({name})"
    return "CRASHED", f"{action.reason} ({name}); {kept}"


class FlowJobWatch:
    """The states of the jobs of flow runs, by one squeue for all, and how long each has lasted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._since: dict[str, tuple[str, float]] = {}
        self._starts: dict[str, tuple[str, int, int]] = {}

    def look(self, numbers: Iterable[str], queue: list[dict[str, Any]]) -> dict[str, JobState]:
        """The states of jobs by number; those that Slurm does not know are `unknown`."""
        entries = {str(client.number_of(job["job_id"])): job for job in queue}
        wanted = set(numbers)
        states = {name: client.read_job(entries[name]) for name in wanted & entries.keys()}
        ended = client.ended_jobs(sorted(wanted - entries.keys()))
        return {name: states.get(name) or ended.get(name, UNKNOWN) for name in wanted}

    def seconds(self, flow_run: str, phase: str) -> float:
        """How long the job of a flow run has been in its phase, as far as this worker saw."""
        now, (known, since) = self.clock(), self._since.get(flow_run, ("", 0.0))
        if known != phase:
            if known == "running" and now - since > PROGRESS_SECONDS:
                self._starts.pop(flow_run, None)
            self._since[flow_run] = (phase, since := now)
        return now - since

    def stalls(self, flow_run: str, number: str | None, restarts: int) -> int:
        """Starts in a row that were short."""
        known = self._starts.get(flow_run)
        if number is None:
            return 0 if known is None else known[2]
        count = 0 if known is None else known[2] + ((number, restarts) != known[:2])
        self._starts[flow_run] = (number, restarts, count)
        return count

    def forget(self, live: Iterable[str]) -> None:
        """Keep only what these flow runs need."""
        kept = set(live)
        for known in (self._since, self._starts):
            for name in known.keys() - kept:
                del known[name]


def printed_error(scheduler: SlurmScheduler, number: str, folder: Path) -> str:
    """The last error that a job printed."""
    return last_error(scheduler.output(number, folder)).removeprefix("error: ")


def check_environment(environment: Mapping[str, str | None], api: str) -> None:
    """UsageError if a credential would be in the script of the job."""
    wrong = sorted(set(environment) & set(NOT_FOR_STAGES))
    if "@" in urlsplit(environment.get("PREFECT_API_URL") or api).netloc:
        wrong.append("the password in PREFECT_API_URL")
    if wrong:
        hint = "put it into environment_file, which the node reads"
        raise UsageError(f"{wrong[0]} would be in the job's script", where="env", hint=hint)
