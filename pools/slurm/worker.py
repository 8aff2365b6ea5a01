"""Prefect's worker of type `slurm`: `prefect worker start --type slurm --pool POOL`.

A flow run becomes a batch job that executes it on a node (`flows.orchestration.node`); for a recipe
that is the loop, a small job that waits for the jobs of its steps. The worker submits and returns.
Its observer compares, every few seconds, the pool's flow runs with the jobs in Slurm's queue and
tells each side what the other did. It keeps no state that matters: see `flow_job`.

Prefect's own cancellation of a worker (`PREFECT_WORKER_ENABLE_CANCELLATION`) is not needed; it ends
only runs that have not started.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import anyio
import anyio.abc
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterId,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import InfrastructureNotFound, ObjectNotFound
from prefect.settings import PREFECT_API_URL
from prefect.states import AwaitingRetry
from prefect.workers.base import (
    BaseJobConfiguration,
    BaseVariables,
    BaseWorker,
    BaseWorkerResult,
)
from pydantic import AfterValidator, BaseModel, Field, PrivateAttr, model_validator

from artifacts_schema.config import MemorySize
from artifacts_schema.errors import IngotError
from flows.orchestration.node import FlowJobFolder
from flows.recipe.profile import Resources, parse_minutes
from pools.cluster_job import ESTIMATE, ESTIMATE_SECONDS
from pools.decide import UNKNOWN, JobState
from pools.slurm import client
from pools.slurm.flow_job import (
    FINAL,
    SILENT_SECONDS,
    FlowJob,
    FlowJobWatch,
    Report,
    check_environment,
    flow_run_tag,
    keep_first,
    printed_error,
    report,
    tagged_runs,
)
from pools.slurm.pool import SlurmScheduler
from pools.slurm.settings import SlurmSettings

OBSERVE_SECONDS = 5.0
MOST_RUNS = 200
"""Flow runs in one answer of the API."""
ACTIVE = (StateType.PENDING, StateType.RUNNING, StateType.CANCELLING)
STATES = {
    "PENDING": "InfrastructurePending",
    "RUNNING": "Running",
    "COMPLETED": "Completed",
    "FAILED": "Failed",
    "CRASHED": "Crashed",
    "CANCELLED": "Cancelled",
}
"""Type of a state → the name under which Prefect shows it."""
NO_JOB = "none"
"""In place of a job's number; the API takes no empty one."""
NODE_SETTINGS = {
    "PREFECT_CLIENT_MAX_RETRIES": "2",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    "PREFECT_LOGGING_TO_API_ENABLED": "true",
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
    "DO_NOT_TRACK": "1",
}


def _check_minutes(text: str) -> str:
    parse_minutes(text)
    return text


class JobFields(BaseModel):
    """What a job asks for; the fields of the pool's form."""

    partition: str | None = Field(
        default=None, title="Partition", description="Slurm's default one if empty."
    )
    qos: str | None = Field(default=None, title="QOS", description="Quality of service.")
    account: str | None = Field(
        default=None, title="Account", description="Account that is charged."
    )
    cpus: int = Field(
        default=1,
        ge=1,
        title="CPUs",
        description="Cores. A recipe whose steps are jobs of their own needs one; steps without "
        "a pool run in this job.",
    )
    gpus: int = Field(default=0, ge=0, title="GPUs", description="For stages that run in this job.")
    memory: MemorySize | None = Field(
        default=None, title="Memory", description="As `2 GB`; the partition's default if empty."
    )
    time: Annotated[str, AfterValidator(_check_minutes)] | None = Field(
        default=None,
        title="Time limit",
        description="As `90 min`, `24 h`, `2 d`; near it the job hands over to its next start.",
    )
    setup: list[str] = Field(
        default_factory=list,
        title="Setup lines",
        description="Shell commands before the flow, as `module load python/3.11`. They are in the "
        "script of the job, which others may read: no secrets.",
    )
    environment_file: str | None = Field(
        default=None,
        title="Environment file",
        description="Shell file that the node reads: `PREFECT_API_AUTH_STRING=…` or "
        "`PREFECT_API_KEY=…` and other secrets. Mode 0600, on a file system that nodes see.",
    )
    python: str | None = Field(
        default=None,
        title="Python",
        description="Path of the Python on the nodes; the worker's own if empty.",
    )
    options: list[str] = Field(
        default_factory=list,
        title="Options of sbatch",
        description="As `--constraint=cpu`, one each.",
    )
    folder: str | None = Field(
        default=None,
        title="Folder",
        description="For scripts and outputs, seen by all nodes; `$INGOT_HOME/jobs` if empty.",
    )
    warning_seconds: int = Field(
        default=120,
        ge=10,
        title="Warning",
        description="Seconds before the time limit at which the job hands over.",
    )
    stop_seconds: float = Field(
        default=360.0,
        gt=0,
        title="Grace",
        description="Seconds for the last save after a cancellation; more than the same value of "
        "the pools of its steps.",
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, values: Any) -> Any:
        """A field that was cleared in the UI is an empty text."""
        if not isinstance(values, dict):
            return values
        return {name: value for name, value in values.items() if value != ""}


class SlurmVariables(JobFields, BaseVariables):
    """The form of a work pool of type `slurm`."""


class SlurmJobConfiguration(JobFields, BaseJobConfiguration):
    """What one flow run is submitted with."""

    _job: FlowJob | None = PrivateAttr(default=None)

    @property
    def job(self) -> FlowJob:
        """The job; known once the configuration is prepared for a flow run."""
        assert self._job is not None, "prepare_for_flow_run comes first"
        return self._job

    @staticmethod
    def _base_flow_run_command() -> str:
        """None of Prefect's: `FlowJob` has its own."""
        return ""

    @classmethod
    def _base_environment(cls) -> dict[str, str]:
        """The API's address, and no other setting of the worker: some hold credentials."""
        return {**NODE_SETTINGS, "PREFECT_API_URL": PREFECT_API_URL.value() or ""}

    def prepare_for_flow_run(self, flow_run: FlowRun, *related: Any, **more: Any) -> None:
        """Make the job of a flow run; IngotError if its script would show a credential."""
        check_environment(self.env, PREFECT_API_URL.value() or "")
        # Not the flow run's own name, which changes when it starts: `singleton` goes by the job's.
        title = self.name or Path(str(flow_run.parameters.get("recipe") or "run")).stem
        super().prepare_for_flow_run(flow_run, *related, **more)
        run, pool = str(flow_run.id), more.get("work_pool") or flow_run.work_pool_id
        root = self.folder or os.path.join(os.environ.get("INGOT_HOME", "~/.ingot"), "jobs")
        self._job = FlowJob(
            run,
            flow_run_tag(str(getattr(pool, "id", pool)), run),
            f"ingot-{title}",
            FlowJobFolder(Path(root).expanduser().absolute() / run),
            Resources(
                cpus=self.cpus,
                gpus=self.gpus,
                memory=(self.memory,) if self.memory else (),
                time=self.time,
            ),
            SlurmScheduler(self._settings()),
            {name: value for name, value in self.env.items() if value is not None},
            self.command or None,
        )

    def _settings(self) -> SlurmSettings:
        names = set(SlurmSettings.model_fields) & set(JobFields.model_fields)
        values = {name: getattr(self, name) for name in names}
        return SlurmSettings.parse(
            {name: value for name, value in values.items() if value not in (None, [])},
            where="job variables",
        )


class SlurmWorkerResult(BaseWorkerResult):
    """The job that was submitted."""


class SlurmWorker(BaseWorker[SlurmJobConfiguration, SlurmVariables, SlurmWorkerResult]):
    """Runs flow runs as batch jobs of Slurm."""

    type = "slurm"
    job_configuration = SlurmJobConfiguration
    job_configuration_variables = SlurmVariables
    _description = "Runs flows as batch jobs of Slurm, by sbatch and squeue; survives restarts."
    _display_name = "Slurm"

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._watch = FlowJobWatch()
        self._prepared: dict[UUID, SlurmJobConfiguration] = {}
        self._stops: dict[UUID, float] = {}
        self._messages: dict[UUID, tuple[str, float]] = {}
        self._observer: anyio.CancelScope | None = None

    @classmethod
    def get_default_base_job_template(cls) -> dict[str, Any]:
        """The form; without labels, which Slurm does not have."""
        template = super().get_default_base_job_template()
        template["variables"]["properties"].pop("labels")
        template["job_configuration"].pop("labels")
        for name, shape in template["variables"]["properties"].items():
            types = [one for one in shape.pop("anyOf", []) if one != {"type": "null"}]
            if types:  # Else the UI asks for the type of each empty field.
                del shape["default"]
                template["variables"]["properties"][name] = {**types[0], **shape}
        return template

    async def setup(self) -> None:
        """As Prefect's, and start the observer."""
        await super().setup()
        assert self._runs_task_group is not None
        self._runs_task_group.start_soon(self._observe_forever)

    async def teardown(self, *exc_info: Any) -> None:
        """End the observer; jobs go on, and the next worker finds them."""
        if self._observer is not None:
            self._observer.cancel()
        await super().teardown(*exc_info)

    async def run(
        self,
        flow_run: FlowRun,
        configuration: SlurmJobConfiguration,
        task_status: anyio.abc.TaskStatus[Any] | None = None,
    ) -> SlurmWorkerResult:
        """Submit the job of a flow run, or find it; the observer follows it."""
        job = configuration.job
        deployment: Any = configuration._related_objects.get("deployment")
        entrypoint = str(getattr(deployment, "entrypoint", None))
        if not client.live_jobs(await _in_thread(client.read_queue), job.tag):
            job.folder.prepare(job.flow_run, entrypoint, flow_run.parameters)
        number = await _in_thread(job.submit)
        self.get_flow_run_logger(flow_run).info("job %s: %s", number, job.folder.path)
        if task_status is not None:
            task_status.started(number)
        return SlurmWorkerResult(identifier=number, status_code=0)

    async def kill_infrastructure(
        self, infrastructure_pid: str, configuration: SlurmJobConfiguration, grace_seconds: int = 30
    ) -> None:
        """Remove a job that has not started; for Prefect's own cancellation."""
        scheduler = configuration.job.scheduler
        states = await _in_thread(partial(scheduler.look, [infrastructure_pid]))
        if states.get(infrastructure_pid, UNKNOWN).phase not in ("waiting", "running"):
            raise InfrastructureNotFound(f"no job {infrastructure_pid}")
        await _in_thread(partial(scheduler.cancel, infrastructure_pid))

    # The observer --------------------------------------------------------------------------------

    async def _observe_forever(self) -> None:
        away = ""
        with anyio.CancelScope() as self._observer:
            while True:
                try:
                    if self._work_pool is not None:
                        await self.observe()
                    away = ""
                except Exception as error:  # The API or Slurm is away: jobs do not need us.
                    if away != (away := str(error)):
                        self._logger.warning("jobs are not observed for now: %s", error)
                await anyio.sleep(OBSERVE_SECONDS)

    async def observe(self) -> None:
        """Compare the pool's flow runs with Slurm's jobs once, and act on what differs."""
        active = {run.id: run for run in await self._active_runs()}
        submitting = set(self._submitting_flow_run_ids)
        queue = await _in_thread(client.read_queue)
        tagged = tagged_runs(queue, str(self.work_pool.id))
        for id in [UUID(run) for run in tagged if UUID(run) not in active]:
            await self._settle_orphan(id, tagged[str(id)])
        runs = [run for run in active.values() if run.id not in submitting]
        numbers = {
            run.id: number
            for run in runs
            if (number := tagged.get(str(run.id), [run.infrastructure_pid])[0]) and number != NO_JOB
        }
        states = await _in_thread(partial(self._watch.look, numbers.values(), queue))
        for run in runs:
            number = numbers.get(run.id)
            try:
                await self._observe_run(run, number, states.get(number or "", UNKNOWN))
                if len(live := tagged.get(str(run.id), [])) > 1:
                    await _in_thread(
                        partial(keep_first, self._prepared[run.id].job.scheduler, live)
                    )
            except ObjectNotFound:
                continue  # Deleted in the meantime; its job is settled as an orphan.
            except IngotError as error:
                self.get_flow_run_logger(run).warning("job %s: %s", number, error)
        self._watch.forget({*tagged, *(str(run.id) for run in runs)})
        for known in (self._prepared, self._stops, self._messages):
            for id in [id for id in known if id not in active]:
                del known[id]

    async def _active_runs(self) -> list[FlowRun]:
        states = FlowRunFilterState(type=FlowRunFilterStateType(any_=list(ACTIVE)))
        runs: list[FlowRun] = []
        while True:
            page = await self.client.read_flow_runs(
                flow_run_filter=FlowRunFilter(state=states),
                work_pool_filter=WorkPoolFilter(id=WorkPoolFilterId(any_=[self.work_pool.id])),
                limit=MOST_RUNS,
                offset=len(runs),
            )
            runs += page
            if len(page) < MOST_RUNS:
                return runs

    async def _observe_run(self, run: FlowRun, number: str | None, job: JobState) -> None:
        if run.id not in self._prepared:
            self._prepared[run.id] = await self._prepare(run)
        flow_job = self._prepared[run.id].job
        state = run.state.type.value if run.state is not None else "PENDING"
        seconds = self._watch.seconds(str(run.id), job.phase)
        stalls = self._watch.stalls(str(run.id), number, job.restarts)
        node = await _in_thread(flow_job.folder.read_report)
        wanted = report(state, job, node, seconds, stalls, number)
        if state == "CANCELLING" and number is not None:
            await self._stop(run, flow_job, number, job)
        if wanted is None:
            return
        if wanted.state == "CRASHED" and number and job.cause == "failed":
            text = await _in_thread(
                partial(printed_error, flow_job.scheduler, number, flow_job.folder.path)
            )
            wanted = Report(wanted.state, f"{text or wanted.message} (job {number})")
        if wanted.state in FINAL and job.phase == "waiting" and number is not None:
            await _in_thread(partial(flow_job.scheduler.cancel, number))
        await self._tell(run, state, wanted)

    async def _prepare(self, run: FlowRun) -> SlurmJobConfiguration:
        return await self.job_configuration.resolve_for_flow_run(
            run,
            client=self.client,
            work_pool=self.work_pool,
            worker_name=self.name,
            worker_id=self.backend_id,
        )

    async def _stop(self, run: FlowRun, job: FlowJob, number: str, state: JobState) -> None:
        """TERM once, and scancel after the grace; scancel at once for a job that waits."""
        now = self._watch.clock()
        if state.phase == "running" and run.id not in self._stops:
            self._stops[run.id] = now
            await _in_thread(job.folder.cancel)
            await _in_thread(partial(job.scheduler.save_and_end, number))
            self.get_flow_run_logger(run).info("job %s was asked to save and end", number)
        late = now - self._stops.get(run.id, now) > job.scheduler.stop_seconds
        if state.phase == "waiting" or (state.phase == "running" and late):
            await _in_thread(partial(job.scheduler.cancel, number))

    async def _settle_orphan(self, id: UUID, numbers: Sequence[str]) -> None:
        """End the jobs of a run that was cancelled or deleted; revive one that counts as crashed.

        An automation calls a run crashed whose node lost the API while its job goes on.
        """
        try:
            run = await self.client.read_flow_run(id)
        except ObjectNotFound:
            run = None
        if run is None or (run.state is not None and run.state.is_cancelled()):
            for number in numbers:
                await _in_thread(partial(client.run_command, "scancel", number))
            return
        is_crashed = run.state is not None and run.state.is_crashed()
        if is_crashed and self._watch.seconds(str(id), "crashed") > SILENT_SECONDS / 2:
            text = f"job {numbers[0]} goes on; its node did not reach the API"
            await self._tell(run, "CRASHED", Report("RUNNING", text))

    async def _tell(self, run: FlowRun, state: str, wanted: Report) -> None:
        """Set the state that a flow run should have, unless it has changed in the meantime."""
        text, now = ESTIMATE.sub("", wanted.message), self._watch.clock()
        known, since = self._messages.get(run.id, ("", 0.0))
        is_new = known != text or now - since > ESTIMATE_SECONDS or state != "PENDING"
        if wanted.state == "PENDING" and not is_new:
            return
        current = (await self.client.read_flow_run(run.id)).state
        if current is None or current.type.value != state:
            return
        self._messages[run.id] = (text, now)
        if wanted.state == "PENDING" and current.message == wanted.message:
            return
        if wanted.state == "SCHEDULED":
            new: State[Any] = AwaitingRetry(message=wanted.message)
            # Else another worker would take the ended job for that of the next submission.
            await self.client.update_flow_run(run.id, infrastructure_pid=NO_JOB)
        else:
            kind = StateType(wanted.state)
            new = State(type=kind, name=STATES[wanted.state], message=wanted.message)
        # Prefect's rules would refuse what they take for a second submission.
        await self.client.set_flow_run_state(run.id, new, force=True)
        self.get_flow_run_logger(run).info("%s", wanted.message)


async def _in_thread(call: Any, *args: Any) -> Any:
    """The result of a call that waits for a command or a file."""
    return await anyio.to_thread.run_sync(call, *args)
