"""What a Prefect server must know of Ingot: a pool, forms, schedules, how to notice a dead run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

import httpx
from prefect.automations import AutomationCore, ChangeFlowRunState, EventTrigger, Posture
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import (
    DeploymentScheduleCreate,
    DeploymentUpdate,
    WorkPoolCreate,
    WorkPoolUpdate,
)
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.objects import DeploymentSchedule, StateType
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule
from prefect.events import Event
from prefect.exceptions import ObjectNotFound
from prefect.workers.base import BaseWorker
from prefect.workers.process import ProcessWorker
from pydantic import ValidationError

from artifacts_schema.errors import IngotError, UsageError, printable
from flows.orchestration.forms import (
    PIPELINE,
    STAGES,
    TAG,
    Form,
    recipe_form,
    stage_form,
    stored_names,
)
from flows.recipe.recipe import BUNDLED, Recipe, load_recipe
from stages.engine.protocol import all_stages

BUSY = (429, 502, 503, 504)
RETRY_HINT = "it may be busy: run the same command again, finished parts are kept"


@contextmanager
def prefect_client() -> Iterator[SyncPrefectClient]:
    """A client of the server in use; IngotError where it is away, refuses, or is too busy."""
    with get_client(sync_client=True) as client:
        where = str(client.api_url)
        try:
            yield client
        except httpx.TimeoutException:
            raise IngotError(
                "the Prefect server did not answer in time", where=where, hint=RETRY_HINT
            ) from None
        except httpx.TransportError as error:
            raise IngotError(
                f"the Prefect server cannot be reached: {error}", where=where, hint="see `ingot up`"
            ) from None
        except httpx.HTTPStatusError as error:
            reply, hint = error.response, "its log says more"
            if reply.status_code in BUSY:
                hint = RETRY_HINT
            elif reply.status_code in (401, 403):
                hint = "check PREFECT_API_KEY or PREFECT_API_AUTH_STRING"
            what = f"the Prefect server answers {reply.status_code} {reply.reason_phrase}"
            raise IngotError(_busy_reason(reply) or what, where=where, hint=hint) from None


def _busy_reason(reply: httpx.Response) -> str | None:
    """What our own server says when it could not use its database; None for another answer."""
    try:
        detail = reply.json()["detail"] if reply.status_code == 503 else None
    except (ValueError, KeyError, TypeError):
        return None
    return printable(detail) if isinstance(detail, str) else None


def send_event(event: Event) -> None:
    """Send an event to the server in use, which has it when this returns; IngotError if not."""
    with prefect_client() as client:
        answer = client.request("POST", "/events", json=[event.model_dump(mode="json")])
        answer.raise_for_status()


FLOW_RUNS = {"prefect.resource.id": "prefect.flow-run.*"}
OURS = {"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{TAG}"}
"""What an event of a flow run of Ingot is related to."""
DEAD_SECONDS = 90
AUTOMATION = "ingot: mark dead runs"


@dataclass(frozen=True)
class Target:
    """Where the runs of a set of forms go: a work pool, and the profile that they are bound to."""

    store: str
    pool: str
    type: str = ProcessWorker.type
    profile: str | None = None
    """Path or name of a profile that the forms fix; None lets the form choose."""
    suffix: str = ""
    """Of the names of the forms, so that those of several profiles do not replace one another."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of the pool's job variables."""
    limit: int | None = None
    """Flow runs of the pool at a time."""


Outcome = Literal["created", "updated", "unchanged"]


def register(recipes: Iterable[Path], target: Target) -> dict[str, Outcome]:
    """Make pool, a form for each recipe and each stage, and automation; the outcome by name.

    Existing ones are updated where they differ. Raises UsageError for an invalid recipe, for a type
    of pool that no worker has, and for a pool of that name of another type.
    """
    loaded = [load_recipe(path) for path in (*sorted(BUNDLED.glob("*.yaml")), *recipes)]
    names = stored_names(target.store)
    with prefect_client() as client:
        outcomes = {f"work pool {target.pool}": _pool(client, target)}
        for recipe in loaded:
            outcomes[f"pipeline/{recipe.name}{target.suffix}"] = register_recipe(
                client, recipe, target
            )
        for name, stage in all_stages().items():
            outcomes[f"stage/{name}{target.suffix}"] = _deploy(
                client,
                target,
                f"stage/{name}",
                stage_form(stage, target.store, names),
                entrypoint=f"{STAGES}{name}",
                parameters={},
                description=(stage.__doc__ or "").strip(),
            )
        outcomes[f"automation {AUTOMATION}"] = _automation(client)
    return outcomes


def register_recipe(client: SyncPrefectClient, recipe: Recipe, target: Target) -> Outcome:
    """Make or update `pipeline/RECIPE`."""
    bundled = recipe.path.parent == BUNDLED
    return _deploy(
        client,
        target,
        f"pipeline/{recipe.name}",
        recipe_form(recipe, target.store),
        entrypoint=PIPELINE,
        parameters={"recipe": recipe.path.stem if bundled else str(recipe.path.absolute())},
        description=f"{recipe.description}\n\n`{recipe.path}`".strip(),
    )


def _deploy(
    client: SyncPrefectClient,
    target: Target,
    name: str,
    form: Form,
    *,
    parameters: dict[str, Any],
    **more: Any,
) -> Outcome:
    """Make or update a deployment; an update leaves its schedules as they are."""
    flow, name = name.split("/", 1)
    place = {"store": target.store}
    if target.profile is not None:
        form.fix("profile", target.profile)
        place["profile"] = target.profile
    values: dict[str, Any] = {
        "version": version("ingot"),
        "tags": [TAG, {"pipeline": "recipe"}.get(flow, flow)],
        "parameter_openapi_schema": form.schema(),
        "enforce_parameter_schema": True,
        "parameters": {**parameters, **place},
        "work_pool_name": target.pool,
        **more,
    }
    name += target.suffix
    try:
        deployment = client.read_deployment_by_name(f"{flow}/{name}")
    except ObjectNotFound:
        client.create_deployment(client.create_flow_from_name(flow), name, **values)
        return "created"
    if all(getattr(deployment, field) == value for field, value in values.items()):
        return "unchanged"
    client.update_deployment(deployment.id, DeploymentUpdate(**values))
    return "updated"


def _pool(client: SyncPrefectClient, target: Target) -> Outcome:
    """Make or update the work pool; its job variables get the defaults of the target."""
    worker = BaseWorker.get_worker_class_from_type(target.type)
    if worker is None:
        known = ", ".join(BaseWorker.get_all_available_worker_types())
        raise UsageError(
            f"no Prefect worker of type '{target.type}'", hint=f"there are workers for {known}"
        )
    template = worker.get_default_base_job_template()
    for name, value in target.defaults.items():
        if name in template["variables"]["properties"]:
            template["variables"]["properties"][name]["default"] = value
    try:
        pool = client.read_work_pool(target.pool)
    except ObjectNotFound:
        client.create_work_pool(
            WorkPoolCreate(
                name=target.pool,
                type=target.type,
                base_job_template=template,
                concurrency_limit=target.limit,
            )
        )
        return "created"
    if pool.type != target.type:
        raise UsageError(
            f"the work pool '{target.pool}' is of type {pool.type}, not {target.type}",
            hint="choose another with --pool",
        )
    values: dict[str, Any] = {"base_job_template": template} if target.defaults else {}
    if target.limit is not None:
        values["concurrency_limit"] = target.limit
    if all(getattr(pool, name) == value for name, value in values.items()):
        return "unchanged"
    client.update_work_pool(target.pool, WorkPoolUpdate(**values))
    return "updated"


def _automation(client: SyncPrefectClient) -> Outcome:
    """Make the automation that marks a run of Ingot as crashed if its heartbeats stop early.

    A job that waits in a queue again has none, and is not dead.
    """
    automation = _dead_runs()
    for known in client.read_automations_by_name(AUTOMATION):
        if known.trigger == automation.trigger:
            return "unchanged"
        client.update_automation(known.id, automation)
        return "updated"
    client.create_automation(automation)
    return "created"


def _dead_runs() -> AutomationCore:
    states = (
        "Completed",
        "Failed",
        "Cancelled",
        "Crashed",
        "InfrastructurePending",
        "AwaitingRetry",
    )
    ends = {f"prefect.flow-run.{state}" for state in states}
    heartbeat = "prefect.flow-run.heartbeat"
    return AutomationCore(
        name=AUTOMATION,
        description="Marks a run of Ingot as crashed once its process is gone.",
        trigger=EventTrigger(
            after={heartbeat},
            expect={heartbeat, *ends},
            match=cast(Any, FLOW_RUNS),
            match_related=cast(Any, OURS),
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=DEAD_SECONDS),
        ),
        actions=[
            ChangeFlowRunState(
                name=None,
                force=False,
                state=StateType.CRASHED,
                message=f"no heartbeat for {DEAD_SECONDS} seconds; finished work is kept, "
                "and a new run continues",
            )
        ],
    )


@dataclass(frozen=True)
class RecipeSchedule:
    """One schedule of a recipe, with its parameters beyond those of the deployment."""

    recipe: str
    cron: str
    timezone: str
    parameters: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return dict(self.__dict__)


def check_cron(cron: str, timezone: str) -> CronSchedule:
    """The schedule; UsageError if `cron` or `timezone` is invalid."""
    try:
        return CronSchedule(cron=cron, timezone=timezone)
    except ValidationError as error:
        wrong = {str(part) for problem in error.errors() for part in problem["loc"]}
        if "timezone" in wrong:
            raise UsageError(
                f"no timezone '{timezone}'", where="--timezone", hint="as Europe/Berlin, or UTC"
            ) from None
        raise UsageError(
            f"'{cron}' is not a cron schedule",
            where="--cron",
            hint="minute hour day month weekday, as in '0 3 * * *' for every day at three",
        ) from None


def add_schedule(
    recipe: Recipe, cron: CronSchedule, parameters: Mapping[str, Any], store: str, pool: str
) -> RecipeSchedule:
    """Schedule `recipe`; an equal schedule is left as it is."""
    new = RecipeSchedule(
        recipe.name, cron.cron, cron.timezone or "UTC", {**parameters, "store": store}
    )
    with prefect_client() as client:
        deployment = find_deployment(client, recipe.name)
        if deployment is None:
            register_recipe(client, recipe, Target(store, pool))
            deployment = client.read_deployment_by_name(f"pipeline/{recipe.name}")
        if all(_recipe_schedule(deployment, known) != new for known in deployment.schedules):
            schedule = DeploymentScheduleCreate(schedule=cron, parameters=new.parameters)
            client.create_deployment_schedules(deployment.id, [schedule])
    return new


def remove_schedules(recipe: str, cron: str | None) -> list[RecipeSchedule]:
    """Remove the schedules of a recipe (only those of `cron` if given); returns the removed."""
    removed = []
    with prefect_client() as client:
        deployment = find_deployment(client, recipe)
        if deployment is None:
            return []
        for known in deployment.schedules:
            schedule = _recipe_schedule(deployment, known)
            if schedule is not None and cron in (None, schedule.cron):
                client.delete_deployment_schedule(deployment.id, known.id)
                removed.append(schedule)
    return removed


def list_schedules() -> list[RecipeSchedule]:
    """Every schedule of a recipe, by name."""
    ours = DeploymentFilter(tags=DeploymentFilterTags(all_=[TAG, "recipe"]))
    with prefect_client() as client:
        deployments = client.read_deployments(deployment_filter=ours)
    schedules = (
        _recipe_schedule(one, schedule) for one in deployments for schedule in one.schedules
    )
    return sorted((one for one in schedules if one), key=lambda one: (one.recipe, one.cron))


def find_deployment(client: SyncPrefectClient, recipe: str) -> DeploymentResponse | None:
    """The form of a recipe, or None."""
    try:
        return client.read_deployment_by_name(f"pipeline/{recipe}")
    except ObjectNotFound:
        return None


def _recipe_schedule(
    deployment: DeploymentResponse, schedule: DeploymentSchedule
) -> RecipeSchedule | None:
    """A cron schedule; None for another kind, made in the UI."""
    if not isinstance(schedule.schedule, CronSchedule):
        return None
    return RecipeSchedule(
        deployment.name,
        schedule.schedule.cron,
        schedule.schedule.timezone or "UTC",
        dict(schedule.parameters or {}),
    )
