"""A step as a job of a scheduler: sent once, followed, sent again, until its artifact is committed.

Everything that decides is in the store and in the scheduler, nothing in this process: a run that
died and was started again finds the job of a key by its tag, and submits no second one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import re
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifacts_schema.errors import EXIT_FAILED, EXIT_OK, IngotError, StoreError, UsageError
from artifacts_schema.store import Store, layout
from artifacts_schema.store.lease import DEAD_SECONDS, latest_record
from flows.recipe.plan import PlannedStep
from flows.recipe.profile import Resources
from pools.decide import UNKNOWN, Done, Facts, Fail, JobState, Submit, decide
from stages.engine.events import EVENTS_FILE, EventTail
from stages.engine.spec import StageSpec, last_error

LEASE_WAIT_SECONDS = 60
"""How long a job waits for another run of its key: it holds nodes meanwhile."""
CANCEL_SECONDS = 60.0
"""How long a job that was removed may still be in the queue before it is left alone."""
ESTIMATE = re.compile(r", starts about .*")
"""What a scheduler guesses of a waiting job, at the end of its reason."""
ESTIMATE_SECONDS = 300.0
"""Between two messages that differ in it alone."""
LOST_SECONDS = 600.0
"""How long a scheduler may not answer at all before a submission fails."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobRequest:
    """One submission: what runs, with what, and the tag that finds it again."""

    stage: str
    key: str
    tag: str
    store: str
    spec: str
    flags: tuple[str, ...]
    resources: Resources
    memory: int | None
    """Bytes on each node: those of the resource class."""
    folder: Path
    """Where the job's script and output lie; the nodes see it."""

    def arguments(self) -> list[str]:
        """What the Python of a node is called with."""
        return [
            "-P", "-m", "stages", self.stage,
            "--store", self.store, "--spec", self.spec, "--key", self.key,
            "--lease-wait", str(LEASE_WAIT_SECONDS), *self.flags,
        ]  # fmt: skip


class SubmissionLost(Exception):
    """It is not known whether a job was submitted: the scheduler did not answer."""


class Scheduler(ABC):
    """One cluster's scheduler. Methods raise IngotError where it cannot be reached."""

    poll_seconds: float = 10.0
    stop_seconds: float = 300.0
    """Grace of a job that was asked to save and end."""

    @abstractmethod
    def find(self, tag: str) -> str | None:
        """The job with this tag that waits or runs, if there is one."""

    @abstractmethod
    def submit(self, request: JobRequest) -> str:
        """Submit a job; its name. UsageError in the scheduler's own words where it refuses,
        SubmissionLost where there was no answer."""

    @abstractmethod
    def look(self, jobs: Iterable[str]) -> Mapping[str, JobState]:
        """The states of these jobs, by one query; those that it does not know are left out."""

    def explain(self, state: JobState, output: str) -> JobState:
        """The state of a job that failed, by what it printed as well."""
        return state

    @abstractmethod
    def save_and_end(self, job: str) -> None:
        """Ask a running job to save and end; no-op for one that is gone."""

    @abstractmethod
    def cancel(self, job: str) -> None:
        """Remove a job at once; no-op for one that is gone."""

    @abstractmethod
    def output(self, job: str, folder: Path) -> str:
        """What the job printed so far."""


@dataclass
class Watch:
    """The states of all jobs of a scheduler, asked for together and not too often."""

    scheduler: Scheduler
    clock: Callable[[], float] = time.monotonic
    jobs: set[str] = field(default_factory=set)
    states: dict[str, JobState] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    """When the phase of each was first seen."""
    error: IngotError | None = None
    """Why the last question had no answer."""
    rounds: int = 0
    """How often the scheduler was asked."""
    _next: float = 0.0

    def state(self, job: str) -> JobState:
        """As last asked; `unknown` for a job that the scheduler did not know then."""
        self.jobs.add(job)
        if job not in self.states or self.clock() >= self._next:
            self._ask()
        return self.states.get(job, UNKNOWN)

    def seconds(self, job: str) -> float:
        """How long it has been in its phase."""
        return self.clock() - self.since.get(job, self.clock())

    def _ask(self) -> None:
        try:
            states = self.scheduler.look(self.jobs)
            self.error = None
        except IngotError as error:  # A scheduler that is away: all stays as it was.
            self.error = error
            states = self.states
        now = self.clock()
        for job in self.jobs:
            state = states.get(job, UNKNOWN)
            if job not in self.since or state.phase != self.states.get(job, UNKNOWN).phase:
                self.since[job] = now
            self.states[job] = state
        self.rounds += 1
        self._next = now + self.scheduler.poll_seconds * random.uniform(0.9, 1.1)

    def forget(self, job: str) -> None:
        """It is over: ask no more for it."""
        self.jobs.discard(job)


def job_tag(store: Store, key: str) -> str:
    """What names the job of a key of a store in any list of jobs."""
    place = hashlib.sha256(store.url.encode()).hexdigest()[:12]
    return f"ingot store={place} key={key}"


class ClusterJob:
    """The job of one step; a `flows.recipe.dispatch.Job`.

    `folder` is where its scripts and outputs lie, which the nodes see as this machine does.
    """

    in_pool = True

    def __init__(
        self, watch: Watch, store: Store, step: PlannedStep, resources: Resources, folder: Path
    ) -> None:
        assert step.spec is not None, "a ready step has a spec"
        self.watch, self.store, self.resources = watch, store, resources
        self.spec: StageSpec = step.spec
        self.key, self.tag = self.spec.key, job_tag(store, self.spec.key)
        flags = (("--force", step.force), ("--accept-code", step.accept_code))
        self.flags = tuple(flag for flag, on in flags if on)
        self.folder = folder
        self.job: str | None = None
        self.stopping = False
        self.force = step.force
        self._class, self._stalls, self._starts = 0, 0, 0
        self._progress: str | None = None
        self._restarts, self._round = 0, 0
        self._beat: tuple[str, int] | None = None
        self._beat_since = 0.0
        self._asked_since: float | None = None
        self._next_attempt = 0.0
        self._words = ""
        self._told = ("", 0.0)
        self._events: deque[dict[str, Any]] = deque()
        self._tail = EventTail(store.backend.read)
        self._tail.skip(layout.work(self.key, EVENTS_FILE))
        self._read_at = 0

    # What `execute` asks -------------------------------------------------------------------------

    def events(self) -> list[dict[str, Any]]:
        """Those of the stage, and what the scheduler says of the job."""
        results = [*self._events]
        self._events.clear()
        # A file is read at every call, a bucket when the scheduler is asked as well.
        if self.store.backend.local or self._read_at != self.watch.rounds:
            self._read_at = self.watch.rounds
            results += self._tail.read(layout.work(self.key, EVENTS_FILE))
        return results

    def poll(self) -> int | None:
        """Submit, look, submit again: what `decide` says; the exit code at the end."""
        if self.job is None:
            return self._start()
        state = self.watch.state(self.job)
        if self._round == self.watch.rounds:
            return None  # Nothing new since the last decision.
        self._round = self.watch.rounds
        if isinstance(self.watch.error, UsageError):  # It would be the same the next time.
            self._words = f"error: {self.watch.error} (job {self.job} goes on)"
            return self.watch.error.exit_code
        if self.watch.error is not None:
            self._tell(f"job {self.job}: {self.watch.error}")
            return None
        self._count_restarts(state)
        if state.cause == "failed":
            state = self.watch.scheduler.explain(state, self._read_output())
        action = decide(self._facts(state))
        if isinstance(action, Done):
            return self._end(EXIT_OK)
        if isinstance(action, Fail):
            if state.phase in ("waiting", "running"):
                self.watch.scheduler.cancel(self.job)
            self._words = self._describe_failure(action, state)
            return self._end(action.exit_code)
        if isinstance(action, Submit):
            self._tell(f"job {self.job} ended ({action.reason}); the step is submitted again")
            self._class += action.larger
            self.watch.forget(self.job)
            self.job = None
            return None
        self._tell_state(state)
        return None

    def stop(self, wait: Callable[[float], None] = time.sleep) -> int:
        """Remove it while it waits; else ask it to save, and end it by force after the grace.

        What cannot be ended (the scheduler is away, the job is another user's) goes on.
        """
        self.stopping = True
        scheduler, signalled = self.watch.scheduler, False
        deadline = self.watch.clock() + scheduler.stop_seconds
        while self.watch.clock() < deadline + CANCEL_SECONDS:
            try:
                self.job = self.job or scheduler.find(self.tag)
                if self.job is None:
                    return EXIT_FAILED
                state = dict(scheduler.look([self.job])).get(self.job, UNKNOWN)
                if state.phase in ("ended", "unknown"):
                    return state.exit_code or EXIT_OK
                if state.phase == "waiting" or self.watch.clock() > deadline:
                    scheduler.cancel(self.job)
                elif not signalled:
                    scheduler.save_and_end(self.job)
                    signalled = True
            except IngotError as error:
                log.warning("%s cannot be stopped for now: %s", self.job or self.key, error)
            wait(1.0)
        return EXIT_FAILED

    def last_words(self) -> str:
        """Its error: its own, or the scheduler's reason."""
        return self._words

    # Submission ----------------------------------------------------------------------------------

    def _start(self) -> int | None:
        """Find the job of this key, or submit one; nothing twice, even if a reply is lost."""
        clock = self.watch.clock
        if clock() < self._next_attempt:
            return None
        if self._asked_since is None:
            self._asked_since = clock()
        elif not self.force and self._is_made():  # By a job whose submission was not confirmed.
            return EXIT_OK
        try:
            self.job = self.watch.scheduler.find(self.tag)
            if self.job is None:
                self.job = self.watch.scheduler.submit(self._request())
                self._tell(f"job {self.job} submitted to {self.resources.describe()}")
            else:
                self._tell(f"job {self.job} makes this key already; it is followed")
        except UsageError as error:  # The scheduler's own words; nothing is queued.
            self._words = f"error: {error}"
            return error.exit_code
        except (SubmissionLost, IngotError, StoreError) as error:
            waited = clock() - self._asked_since
            if waited > LOST_SECONDS:
                self._words = f"error: no answer for {waited:.0f} s: {error}"
                return EXIT_FAILED
            self._tell(f"the scheduler does not answer ({error}); trying again")
            self._next_attempt = clock() + min(60.0, 2.0 + waited)
            return None
        self._asked_since, self._restarts = None, 0
        self._note_start()
        return None

    def _request(self) -> JobRequest:
        backend = self.store.backend
        path = layout.work(self.key, "spec.json")
        backend.replace(path, self.spec.to_json())
        self.folder.mkdir(parents=True, exist_ok=True)
        sizes = self.resources.memory_bytes
        return JobRequest(
            self.spec.stage,
            self.key,
            self.tag,
            self.store.url,
            backend.full(path),
            self.flags,
            self.resources,
            sizes[min(self._class, len(sizes) - 1)] if sizes else None,
            self.folder,
        )

    # Facts ---------------------------------------------------------------------------------------

    def _facts(self, state: JobState) -> Facts:
        assert self.job is not None
        settled = state.phase in ("ended", "unknown")
        return Facts(
            state,
            committed=self._is_made() and (not self.force or state.cause == "done"),
            lease_beats=settled and self._lease_beats(),
            seconds=self.watch.seconds(self.job),
            stalls=self._stalls,
            larger=self._class + 1 < len(self.resources.memory),
            stopping=self.stopping,
        )

    def _is_made(self) -> bool:
        return self.store.manifest(self.spec.stage, self.key) is not None

    def _lease_beats(self) -> bool:
        """Whether the counter of the key's lease was raised within the time after which it is dead;
        for so long after the first look it counts as alive."""
        record = latest_record(self.store.backend, self.key)
        if record is None or record.released:
            return False
        now, beat = self.watch.clock(), (record.owner, record.counter)
        if beat != self._beat:
            self._beat, self._beat_since = beat, now
        return now - self._beat_since < DEAD_SECONDS

    def _count_restarts(self, state: JobState) -> None:
        if state.restarts > self._restarts:
            self._restarts = state.restarts
            self._note_start()

    def _note_start(self) -> None:
        """A start counts as a stall if nothing was finished since the one before."""
        self._starts += 1
        progress = self._read_progress()
        self._stalls = 0 if self._starts == 1 or progress != self._progress else self._stalls + 1
        self._progress = progress

    def _read_progress(self) -> str:
        """The finished shards and checkpoints of the key, as text that differs when they do."""
        backend = self.store.backend
        names = sorted(
            name
            for folder in ("done", "state")
            for name in backend.files(layout.work(self.key, folder))
            if folder == "done" or "checkpoint" in name
        )
        return hashlib.sha256(json.dumps(names).encode()).hexdigest()

    # Words ---------------------------------------------------------------------------------------

    def _describe_failure(self, action: Fail, state: JobState) -> str:
        printed = last_error(self._read_output())
        own = printed.removeprefix("error: ") if state.cause == "failed" else ""
        return f"error: {own or action.reason} (job {self.job})"

    def _read_output(self) -> str:
        assert self.job is not None
        return self.watch.scheduler.output(self.job, self.folder)

    def _tell_state(self, state: JobState) -> None:
        if state.phase == "waiting" and state.reason:
            self._tell(f"job {self.job} waits: {state.reason}")
        elif state.phase == "unknown":
            self._tell(f"the scheduler does not know job {self.job}")

    def _tell(self, text: str) -> None:
        """Say it once; an estimated start that moves, every few minutes."""
        now, (known, since) = self.watch.clock(), self._told
        same = ESTIMATE.sub("", text) == ESTIMATE.sub("", known)
        if text != known and (not same or now - since > ESTIMATE_SECONDS):
            self._told = text, now
            self._events.append({"type": "job", "time": time.time(), "text": text})

    def _end(self, code: int) -> int:
        if self.job is not None:
            self.watch.forget(self.job)
        return code
