"""Slurm's commands, and what they answer: sbatch, squeue, sacct, scontrol, scancel.

squeue gives JSON since 21.08; `job_state` became a list of flags, and numbers became
`{set, infinite, number}`, with later versions of its data parser (23.02, 23.11), so both are read.
Where a version has no JSON, its text is. A job that ended leaves squeue after MinJobAge (300 s by
default): then sacct is asked, where accounting is on.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from artifacts_schema.errors import IngotError, UsageError
from pools.cluster_job import SubmissionLost
from pools.decide import Cause, JobState
from stages.engine.spec import NOT_FOR_STAGES

SECONDS = 60.0
"""How long a command may take; Slurm's own MessageTimeout is 10 s, and it tries again."""
WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT",
           "RESV_DEL_HOLD", "REVOKED"}  # fmt: skip
ALIVE = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT"}
ENDS: dict[str, Cause] = {
    "COMPLETED": "done",
    "FAILED": "failed",
    "LAUNCH_FAILED": "failed",
    "RECONFIG_FAIL": "failed",
    "DEADLINE": "failed",
    "OUT_OF_MEMORY": "memory",
    "CANCELLED": "cancelled",
    "PREEMPTED": "again",
    "NODE_FAIL": "again",
    "BOOT_FAIL": "again",
    "TIMEOUT": "again",
}
"""States of a job that is over (Slurm's manual of squeue, "JOB STATE CODES")."""
NEVER = (
    "PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints",
    "InvalidAccount", "InvalidQOS", "AccountNotAllowed", "QOSNotAllowed",
    "QOSMaxWallDurationPerJobLimit", "QOSMaxCpuPerJobLimit", "QOSMaxGRESPerJob",
    "QOSMaxMemoryPerJob", "QOSMaxNodePerJobLimit", "AssocMaxWallDurationPerJobLimit",
    "AssocMaxCpuPerJobLimit", "AssocMaxNodePerJobLimit", "FedJobLock", "JobLaunchFailure",
)  # fmt: skip
"""Reasons for which a job waits that do not pass by themselves (the same manual, "JOB REASON
CODES"): a limit of each single job, or a setting that does not exist."""
REFUSALS = ("invalid", "not available", "can not be satisfied", "not permitted", "exceeds",
            "violates", "unrecognized", "not valid", "job submit limit", "access denied",
            "unable to open", "no partition")  # fmt: skip
"""In sbatch's message where it refuses a job; another failure may be a controller that is away."""


def job_environment() -> dict[str, str]:
    """This process's environment without credentials: sbatch gives all of it to the job."""
    return {name: value for name, value in os.environ.items() if name not in NOT_FOR_STAGES}


def run_command(*command: str, text: str | None = None) -> str:
    """What a command of Slurm prints. IngotError where it fails, with its own last words."""
    try:
        done = subprocess.run(
            command, input=text, stdin=None if text is not None else subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS, env=job_environment(), check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise UsageError(
            f"no command '{command[0]}'", hint="run it where Slurm's commands are installed"
        ) from None
    except subprocess.TimeoutExpired:
        raise SlurmAway(f"no answer within {SECONDS:.0f} s", where=command[0]) from None
    if done.returncode:
        raise SlurmAway(_last_line(done.stderr) or f"exit code {done.returncode}", where=command[0])
    return done.stdout


class SlurmAway(IngotError):
    """A command of Slurm failed: its controller may be away for a moment."""


def submit(script: str) -> str:
    """Submit a batch script; the number of the job."""
    try:
        printed = run_command("sbatch", "--parsable", text=script)
    except SlurmAway as error:
        words = error.what.lower()
        if any(text in words for text in REFUSALS):
            raise UsageError(error.what, where="sbatch") from None
        raise SubmissionLost(str(error)) from None
    return printed.strip().splitlines()[-1].partition(";")[0]


def read_queue() -> list[dict[str, Any]]:
    """All jobs of this user that the controller knows, ended ones too; see `read_job`."""
    try:
        printed = run_command("squeue", "--me", "--states=all", "--json")
    except SlurmAway as error:
        if "json" not in error.what.lower() and "unrecognized" not in error.what.lower():
            raise
        return parse_text(run_command("squeue", "--me", "--states=all", "--noheader", "-o", TEXT))
    # 22.05.8 prints all users' jobs with --json, whatever else it is asked for.
    mine = (None, os.getuid())
    return [job for job in parse_json(printed) if number_of(job.get("user_id")) in mine]


def live_jobs(jobs: Iterable[Mapping[str, Any]], tag: str) -> list[str]:
    """The numbers of those that wait or run with this tag as their comment, lowest first."""
    numbers = [
        number_of(job["job_id"]) or 0
        for job in jobs
        if job.get("comment") == tag and read_job(job).phase in ("waiting", "running")
    ]
    return [str(number) for number in sorted(numbers)]


TEXT = "%i|%T|%r|%S|%k"
"""Number, state, reason, start; the comment last, since it may hold anything."""


def parse_text(printed: str) -> list[dict[str, Any]]:
    """Lines of `squeue -o TEXT` in the form of its JSON."""
    rows = []
    for line in printed.splitlines():
        number, state, reason, _, comment = line.split("|", 4)
        rows.append(
            {"job_id": number, "job_state": state, "state_reason": reason, "comment": comment}
        )
    return rows


def parse_json(printed: str) -> Iterable[dict[str, Any]]:
    """The jobs in what `squeue --json` or `sacct --json` prints."""
    start = printed.find("{")  # Some versions print warnings before it.
    try:
        value = json.loads(printed[start:])
    except ValueError as error:
        raise SlurmAway(f"its JSON cannot be read: {error}", where="squeue") from None
    return value.get("jobs") or []


def ended_jobs(jobs: Sequence[str]) -> Mapping[str, JobState]:
    """States of jobs that squeue does not show any more; {} where accounting is off."""
    if not jobs:
        return {}
    try:
        printed = run_command(
            "sacct", "-X", "-n", "-P", "-j", ",".join(jobs), "-S", "now-30days",
            "-o", "jobidraw,state,exitcode,reason",
        )  # fmt: skip
    except (SlurmAway, UsageError):
        return {}
    states = {}
    for line in printed.splitlines():
        number, state, code, reason = [*line.split("|"), "", "", ""][:4]
        own, _, killed = code.partition(":")
        exit_code = int(own or 0) or _signal_code(int(killed or 0))
        states[number] = _state([state.partition(" ")[0].rstrip("+")], reason or state, exit_code)
    return states


def read_job(job: Mapping[str, Any]) -> JobState:
    """The state in one entry of squeue's JSON."""
    states = job.get("job_state") or []
    flags = [states] if isinstance(states, str) else list(states)
    reason = str(job.get("state_reason") or "")
    start = number_of(job.get("start_time"))
    if start and reason and not set(flags) & ALIVE and start > time.time():
        reason += time.strftime(", starts about %Y-%m-%d %H:%M", time.localtime(start))
    restarts = number_of(job.get("restart_cnt")) or 0
    state = _state(flags, reason, _exit_code(job.get("exit_code")))
    return JobState(state.phase, state.cause, state.reason, state.exit_code, restarts)


def _state(flags: Sequence[str], reason: str, exit_code: int | None) -> JobState:
    """By the flags of a state: CANCELLED+COMPLETING is alive, PENDING+REQUEUED waits."""
    known = [flag.upper() for flag in flags]
    for flag in known:
        if flag in ALIVE:
            return JobState("running", reason=flag if flag != "RUNNING" else "")
    for flag in known:
        if flag in WAITING:
            never = reason.partition(",")[0] in NEVER
            # Slurm has not looked at a new job yet.
            text = "" if flag == "PENDING" and reason == "None" else reason or flag
            return JobState("waiting", "never" if never else "", text)
    for flag in known:
        if flag in ENDS:
            text = flag if reason in ("", "None", flag) else f"{flag}, {reason}"
            return JobState("ended", ENDS[flag], text, exit_code)
    return JobState("unknown", reason=" ".join(known))


def number_of(value: Any) -> int | None:
    """A number as any version writes it; None where it is not set."""
    if isinstance(value, Mapping):
        return int(value["number"]) if value.get("set") and not value.get("infinite") else None
    return int(value) if value not in (None, "") else None


def _exit_code(value: Any) -> int | None:
    """The exit code: a wait status in 22.05, `{return_code, status, signal}` later.

    A process that a signal ended has 128 and its number, as a shell says.
    """
    if isinstance(value, Mapping):
        killed = value.get("signal") or {}
        number = number_of(killed.get("id") or killed.get("signal_id"))
        return number_of(value.get("return_code")) or _signal_code(number or 0)
    status = number_of(value)
    return None if status is None else status >> 8 or _signal_code(status & 127)


def _signal_code(number: int) -> int:
    return 128 + number if number else 0


_MEMORY_KILL = re.compile(
    r"^slurmstepd\S*: error: (.*(?:exceeded memory limit|oom[-_]kill event|OOM Killed).*)$", re.M
)


def find_memory_kill(output: str) -> str | None:
    """The line in a job's output in which slurmstepd says that memory ran out."""
    match = _MEMORY_KILL.search(output)
    return match[1] if match else None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(line.removeprefix("sbatch: error: ") for line in lines[-2:])
