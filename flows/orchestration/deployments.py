"""What a Prefect server must know of Ingot: a pool, forms, schedules, how to notice a dead run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
from prefect.automations import AutomationCore, ChangeFlowRunState, EventTrigger, Posture
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import (
    DeploymentScheduleCreate,
    DeploymentUpdate,
    WorkPoolCreate,
)
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.objects import DeploymentSchedule, StateType
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectNotFound
from prefect.workers.process import ProcessWorker
from pydantic import ValidationError

from artifacts_schema.errors import IngotError, UsageError
from flows.orchestration.flow import TAG
from flows.orchestration.forms import PIPELINE, STAGES, Form, recipe_form, stage_form
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
            raise IngotError(what, where=where, hint=hint) from None


DEAD_SECONDS = 90
AUTOMATION = "ingot: mark dead runs"


def register(recipes: Iterable[Path], store: str, pool: str) -> list[str]:
    """Make the pool, a form for each recipe and each stage, and the automation; the forms' names.

    Existing ones are updated. Raises UsageError for an invalid recipe, and for a pool of that name
    whose runs are not processes.
    """
    loaded = [load_recipe(path) for path in (*sorted(BUNDLED.glob("*.yaml")), *recipes)]
    known = all_stages()
    with prefect_client() as client:
        _pool(client, pool)
        names = [register_recipe(client, recipe, store, pool) for recipe in loaded]
        names += [
            _deploy(
                client,
                "stage",
                name,
                stage_form(stage, store),
                entrypoint=f"{STAGES}{name}",
                parameters={"store": store},
                work_pool_name=pool,
                description=(stage.__doc__ or "").strip(),
            )
            for name, stage in known.items()
        ]
        _automation(client)
    return names


def register_recipe(client: SyncPrefectClient, recipe: Recipe, store: str, pool: str) -> str:
    """Make or update `pipeline/RECIPE`; returns that name."""
    bundled = recipe.path.parent == BUNDLED
    return _deploy(
        client,
        "pipeline",
        recipe.name,
        recipe_form(recipe, store),
        entrypoint=PIPELINE,
        parameters={
            "recipe": recipe.path.stem if bundled else str(recipe.path.absolute()),
            "store": store,
        },
        work_pool_name=pool,
        description=f"{recipe.description}\n\n`{recipe.path}`".strip(),
    )


def _deploy(client: SyncPrefectClient, flow: str, name: str, form: Form, **more: Any) -> str:
    """Make or update a deployment; an update leaves its schedules as they are."""
    values = {
        "version": version("ingot"),
        "tags": [TAG, {"pipeline": "recipe"}.get(flow, flow)],
        "parameter_openapi_schema": form.schema(),
        "enforce_parameter_schema": True,
        **more,
    }
    try:
        deployment = client.read_deployment_by_name(f"{flow}/{name}")
    except ObjectNotFound:
        client.create_deployment(client.create_flow_from_name(flow), name, **values)
    else:
        client.update_deployment(deployment.id, DeploymentUpdate(**values))
    return f"{flow}/{name}"


def _pool(client: SyncPrefectClient, name: str) -> None:
    try:
        pool = client.read_work_pool(name)
    except ObjectNotFound:
        template = ProcessWorker.get_default_base_job_template()
        client.create_work_pool(
            WorkPoolCreate(name=name, type=ProcessWorker.type, base_job_template=template)
        )
        return
    if pool.type != ProcessWorker.type:
        raise UsageError(
            f"the work pool '{name}' is of type {pool.type}, not {ProcessWorker.type}",
            hint="choose another with --pool",
        )


def _automation(client: SyncPrefectClient) -> None:
    """Make the automation that marks a run of Ingot as crashed if its heartbeats stop early."""
    if client.read_automations_by_name(AUTOMATION):
        return
    ends = {
        f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")
    }
    heartbeat = "prefect.flow-run.heartbeat"
    client.create_automation(
        AutomationCore(
            name=AUTOMATION,
            description="Marks a run of Ingot as crashed once its process is gone.",
            trigger=EventTrigger(
                after={heartbeat},
                expect={heartbeat, *ends},
                match={"prefect.resource.id": "prefect.flow-run.*"},
                match_related={
                    "prefect.resource.role": "tag",
                    "prefect.resource.id": f"prefect.tag.{TAG}",
                },
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
        deployment = _deployment(client, recipe.name)
        if deployment is None:
            register_recipe(client, recipe, store, pool)
            deployment = client.read_deployment_by_name(f"pipeline/{recipe.name}")
        if all(_recipe_schedule(deployment, known) != new for known in deployment.schedules):
            schedule = DeploymentScheduleCreate(schedule=cron, parameters=new.parameters)
            client.create_deployment_schedules(deployment.id, [schedule])
    return new


def remove_schedules(recipe: str, cron: str | None) -> list[RecipeSchedule]:
    """Remove the schedules of a recipe (only those of `cron` if given); returns the removed."""
    removed = []
    with prefect_client() as client:
        deployment = _deployment(client, recipe)
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


def _deployment(client: SyncPrefectClient, recipe: str) -> DeploymentResponse | None:
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
