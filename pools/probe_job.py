"""The probe of `ingot doctor` as a job of a scheduler: sent, waited for, removed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artifacts_schema.errors import IngotError
from artifacts_schema.store import Store, layout
from flows.recipe.dispatch import ProbeAnswer
from flows.recipe.profile import Resources
from pools.cluster_job import JobRequest, Scheduler, SubmissionLost, job_tag
from pools.decide import COMMIT_SECONDS, UNKNOWN, JobState
from stages.engine.probe import ANSWER, Machine
from stages.engine.spec import last_error

POLL_SECONDS = 1.0
END_SECONDS = 15.0
"""How long a job that has answered may take to end before it is removed."""


@dataclass(frozen=True)
class ProbeRequest(JobRequest):
    """A job that runs `stages.engine.probe`."""

    def arguments(self) -> list[str]:
        """What the Python of a node is called with."""
        gpus = ["--gpus"] if self.resources.gpus else []
        return [
            "-P", "-m", "stages.engine.probe", "--store", self.store, "--key", self.key, *gpus,
        ]  # fmt: skip


def probe_request(store: Store, key: str, resources: Resources, folder: Path) -> ProbeRequest:
    """The request of a probe whose question lies in `work/KEY/`."""
    sizes = resources.memory_bytes
    tag, memory = job_tag(store, key), sizes[0] if sizes else None
    return ProbeRequest("doctor", key, tag, store.url, "", (), resources, memory, folder)


@dataclass
class ProbeJob:
    """One probe; `run` sends it and returns its answer."""

    scheduler: Scheduler
    store: Store
    request: ProbeRequest
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self, wait: float) -> ProbeAnswer:
        """Send it and wait for its answer, `wait` seconds at most. Whatever happens, no job stays.

        IngotError says why there is no answer, in the scheduler's words or the job's own.
        """
        self._path = layout.work(self.request.key, ANSWER)
        self.store.backend.remove(self._path)
        self.request.folder.mkdir(parents=True, exist_ok=True)
        job: str | None = None
        try:
            job = self.scheduler.submit(self.request)
            return self._follow(job, self.clock() + wait, wait)
        except SubmissionLost as error:
            job = self.scheduler.find(self.request.tag)
            raise IngotError(f"no answer to the submission: {error}") from None
        finally:
            if job is not None:
                self._end(job)

    def _follow(self, job: str, deadline: float, wait: float) -> ProbeAnswer:
        earliest, ended_since = time.time(), None
        while True:
            looked = time.time()
            state = dict(self.scheduler.look([job])).get(job, UNKNOWN)
            machine = self._read()
            if machine is not None:
                return ProbeAnswer(machine, earliest, time.time(), job)
            if state.phase == "waiting":
                earliest = looked
                if state.cause == "never":
                    raise IngotError(
                        f"job {job} can never start: {state.reason}",
                        hint="correct the pool's settings, or ask the administrator",
                    )
            if state.phase == "ended":
                ended_since = ended_since or self.clock()
                # A node's file may be seen late; one that failed wrote none.
                if state.cause != "done" or self.clock() - ended_since > COMMIT_SECONDS:
                    raise self._silence(job, state)
            if self.clock() > deadline:
                reason = state.reason or state.phase
                raise IngotError(
                    f"job {job} gave no answer within {wait:.0f} s: {reason}",
                    hint="a busy queue: try again with a longer --wait"
                    if state.phase == "waiting"
                    else "see whether the node reaches the store",
                )
            self.sleep(POLL_SECONDS)

    def _read(self) -> Machine | None:
        try:
            return Machine.from_json(self.store.backend.read(self._path))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            raise IngotError(
                "another version of Ingot answers there", hint="install the same Ingot everywhere"
            ) from None

    def _silence(self, job: str, state: JobState) -> IngotError:
        """The error of a job that ended without an answer."""
        printed = last_error(self.scheduler.output(job, self.request.folder))
        words = printed.removeprefix("error: ").strip()
        text = f"job {job} ended without an answer ({state.reason})"
        if words:
            return IngotError(f"{text}: {words}")
        return IngotError(
            f"{text}, and printed nothing", hint=f"is {self.store.url} mounted on the nodes?"
        )

    def _end(self, job: str) -> None:
        """Let it end by itself for a moment, then remove it."""
        deadline = self.clock() + END_SECONDS
        with suppress(IngotError):
            while True:
                state = dict(self.scheduler.look([job])).get(job, UNKNOWN)
                if state.phase in ("ended", "unknown"):
                    return
                if state.phase == "waiting" or self.clock() > deadline:
                    break
                self.sleep(POLL_SECONDS)
        self.scheduler.cancel(job)
