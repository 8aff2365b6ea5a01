"""What to do next about a step that was sent to a scheduler: a pure function of what is known.

Three things are known of a step: what the scheduler says of its job, whether its artifact is
committed, and whether some run works on its key now (the lease beats). The manifest wins over the
scheduler, whose reply may be late, lost or purged; and a job that ended without one is no failure
while what ended it was the scheduler (a limit, preemption, a lost node): the same key continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from artifacts_schema.errors import EXIT_FAILED, EXIT_RESUME, EXIT_USAGE

Phase = Literal["waiting", "running", "ended", "unknown"]
Cause = Literal["", "done", "failed", "again", "memory", "cancelled", "never"]
"""Why a job ended: by itself (`done`, `failed`), for something that has nothing to do with the step
(`again`: preempted, time limit, node lost), for memory, cancelled by a person; or a waiting job
that can `never` start."""

MOST_STALLS = 3
"""Starts in a row that brought no step forward."""
UNKNOWN_SECONDS = 90.0
"""How long a scheduler may not know a job before it counts as gone: it may be restarting."""
KILLED = (128 + 9, 128 + 15)
"""Exit codes of a process that something else ended: KILL, or TERM before it had a handler."""
COMMIT_SECONDS = 60.0
"""How long a job may have ended well before its manifest is seen: a network file system caches."""


@dataclass(frozen=True)
class JobState:
    """What a scheduler says of a job; `reason` in its own words, `restarts` by itself."""

    phase: Phase
    cause: Cause = ""
    reason: str = ""
    exit_code: int | None = None
    restarts: int = 0


UNKNOWN = JobState("unknown")


@dataclass(frozen=True)
class Facts:
    """All that a decision depends on."""

    job: JobState
    committed: bool = False
    """Whether the artifact of the key exists."""
    lease_beats: bool = False
    """Whether some run works on the key now, this job's or another."""
    seconds: float = 0.0
    """Since the job was last seen in another phase than this one."""
    stalls: int = 0
    """Starts of this key in a row without a new finished shard or checkpoint."""
    larger: bool = False
    """Whether there is a next resource class."""
    stopping: bool = False
    """Whether the run was asked to stop."""


@dataclass(frozen=True)
class Wait:
    """Nothing is to be done now."""


@dataclass(frozen=True)
class Done:
    """The artifact is committed."""


@dataclass(frozen=True)
class Submit:
    """Send the step again; `larger` with the next resource class."""

    reason: str
    larger: bool = False


@dataclass(frozen=True)
class Fail:
    """The step ends with this exit code and reason; a job that still lives is to be cancelled."""

    exit_code: int
    reason: str


Action = Wait | Done | Submit | Fail


def decide(facts: Facts) -> Action:
    """The next action, in this order: a commit, what lives, what a person did, what may go on."""
    job = facts.job
    if facts.committed:
        return Done()
    if job.phase == "waiting" and job.cause == "never":
        return Fail(EXIT_USAGE, f"the job can never start: {job.reason}")
    # A scheduler may start it again between two looks: then one start more is let live.
    most = MOST_STALLS + (job.phase == "running")
    if facts.stalls >= most and job.phase != "unknown":
        text = f"started {facts.stalls} times without progress: {job.reason or 'no reason given'}"
        return Fail(EXIT_FAILED, text)
    if job.phase in ("waiting", "running"):
        return Wait()
    if job.phase == "unknown":
        if facts.seconds < UNKNOWN_SECONDS or facts.lease_beats:
            return Wait()
        return _again(facts, "the scheduler does not know the job any more")
    return _ended(facts)


def _ended(facts: Facts) -> Action:
    job = facts.job
    if job.cause == "cancelled":
        return Fail(EXIT_RESUME, f"the job was cancelled: {job.reason}")
    if job.cause == "memory":
        if facts.larger:
            return Submit(f"out of memory: {job.reason}", larger=True)
        return Fail(EXIT_FAILED, f"out of memory, and there is no larger class: {job.reason}")
    if job.cause == "again" or job.exit_code in (EXIT_RESUME, *KILLED):
        # Another run has the key (this job waited for it and gave up): its end decides.
        if facts.lease_beats and not facts.stopping:
            return Wait()
        return _again(facts, job.reason or "stopped")
    if job.cause == "done":
        if facts.seconds < COMMIT_SECONDS:
            return Wait()
        return Fail(EXIT_FAILED, "the job ended without an error but committed nothing")
    return Fail(job.exit_code or EXIT_FAILED, job.reason or f"exit code {job.exit_code}")


def _again(facts: Facts, reason: str) -> Action:
    return Fail(EXIT_RESUME, f"stopped: {reason}") if facts.stopping else Submit(reason)
