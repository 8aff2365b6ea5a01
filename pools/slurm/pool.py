"""The pool of type `slurm`: steps as batch jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.store import Store, layout
from flows.recipe.dispatch import Check, Job, Pool, ProbeAnswer
from flows.recipe.plan import PlannedStep
from flows.recipe.profile import Resources
from pools.cluster_job import ClusterJob, JobRequest, Scheduler, Watch
from pools.decide import JobState
from pools.probe_job import ProbeJob, probe_request
from pools.slurm import client
from pools.slurm.doctor import check_slurm
from pools.slurm.script import OUTPUT, BatchJob, render_script, stage_job
from pools.slurm.settings import SlurmSettings, check_environment_file

SCRIPT = "job.sh"


class SlurmScheduler(Scheduler):
    """Slurm, by its commands."""

    def __init__(self, settings: SlurmSettings) -> None:
        self.settings = settings
        self.poll_seconds = settings.poll_seconds
        self.stop_seconds = settings.stop_seconds

    def find(self, tag: str) -> str | None:
        """The number of the first job that waits or runs with this tag as its comment."""
        jobs = client.read_queue()
        return next(iter(client.live_jobs(jobs, tag)), None)

    def submit(self, request: JobRequest) -> str:
        """The number of the new job of a step."""
        return self.submit_job(stage_job(request, self.settings))

    def submit_job(self, job: BatchJob) -> str:
        """The number of the new job; its script stays in the job's folder, for people."""
        if self.settings.environment_file is not None:
            check_environment_file(self.settings.environment_file)
        script = render_script(job, self.settings)
        (job.folder / SCRIPT).write_text(script, encoding="utf-8")
        return client.submit(script)

    def look(self, jobs: Iterable[str]) -> Mapping[str, JobState]:
        """By one squeue, and one sacct for those that are not in it."""
        wanted = set(jobs)
        known = {str(client.number_of(job["job_id"])): job for job in client.read_queue()}
        states = {name: client.read_job(known[name]) for name in wanted if name in known}
        return {**client.ended_jobs(sorted(wanted - states.keys())), **states}

    def explain(self, state: JobState, output: str) -> JobState:
        """Out of memory, if Slurm says so in the job's output alone.

        The state is OUT_OF_MEMORY where the batch step itself exceeds its cgroup; for a step of
        srun, and under OverMemoryKill, it is FAILED with signal 9 (22.05).
        """
        line = client.find_memory_kill(output)
        return state if line is None else replace(state, cause="memory", reason=line)

    def save_and_end(self, job: str) -> None:
        """TERM to the batch shell, which passes it on."""
        with suppress(client.SlurmAway):
            client.run_command("scancel", "--batch", "--signal=TERM", job)

    def cancel(self, job: str) -> None:
        """scancel."""
        with suppress(client.SlurmAway):
            client.run_command("scancel", job)

    def output(self, job: str, folder: Path) -> str:
        """The file that the job prints to."""
        try:
            path = folder / OUTPUT.replace("%j", job)
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


class SlurmPool(Pool):
    """A partition of a Slurm cluster, whose nodes see the store under the same path."""

    Settings: ClassVar[type[Config]] = SlurmSettings

    def __init__(self, name: str, settings: Config) -> None:
        super().__init__(name, settings)
        assert isinstance(settings, SlurmSettings)
        self.slurm = settings
        self.watch = Watch(SlurmScheduler(settings))

    def start(self, store: Store, step: PlannedStep, resources: Resources) -> Job:
        """The job of a step; it is submitted at its first `poll`."""
        assert step.key is not None, "a ready step has a key"
        return ClusterJob(self.watch, store, step, resources, self._folder(store, step.key))

    def check(self, resources: Resources, where: str) -> None:
        """A limit shorter than twice the warning leaves a job no time to work; nor may others read
        the environment file."""
        if self.slurm.environment_file is not None:
            check_environment_file(self.slurm.environment_file)
        minutes = resources.minutes
        if minutes is not None and minutes * 60 < 2 * self.slurm.warning_seconds:
            raise UsageError(
                f"{minutes} minutes, of which {self.slurm.warning_seconds} s are the warning",
                where=f"{where}.time",
                hint="ask for more time, or set the pool's warning_seconds",
            )

    def doctor(self, resources: Mapping[str, Resources]) -> Iterator[Check]:
        """Slurm's commands, controller, partition, and whether each stage's job could start."""
        return check_slurm(self.slurm, resources)

    def probe(self, store: Store, key: str, resources: Resources, wait: float) -> ProbeAnswer:
        """One job on a node of the partition; it is too short for the warning of a stage."""
        settings = self.slurm.model_copy(update={"warning_seconds": 10})
        request = probe_request(store, key, resources, self._folder(store, key))
        return ProbeJob(SlurmScheduler(settings), store, request).run(wait)

    def _folder(self, store: Store, key: str) -> Path:
        if self.slurm.folder is not None:
            return Path(self.slurm.folder) / short(key)
        if store.backend.local:
            return Path(store.backend.local_path(layout.work(key, "jobs")))
        return Path.home() / ".ingot-jobs" / short(key)
