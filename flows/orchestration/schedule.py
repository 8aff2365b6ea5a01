"""Recipes by the clock: schedules of the deployment `pipeline/RECIPE`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.objects import DeploymentSchedule
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectNotFound
from pydantic import ValidationError

from artifacts_schema.errors import UsageError
from flows.orchestration.asking import asking
from flows.orchestration.deploy import register_recipe
from flows.orchestration.flow import TAG
from flows.recipe.recipe import Recipe


@dataclass(frozen=True)
class Scheduled:
    """One schedule of a recipe, and what it asks for beyond the deployment's own values."""

    recipe: str
    cron: str
    timezone: str
    asked: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return dict(self.__dict__)


def check_cron(cron: str, timezone: str) -> CronSchedule:
    """The schedule; UsageError if it is none."""
    try:
        return CronSchedule(cron=cron, timezone=timezone)
    except ValidationError as error:
        wrong = {str(part) for problem in error.errors() for part in problem["loc"]}
        if "timezone" in wrong:
            raise UsageError(
                f"no timezone '{timezone}'", where="--timezone", hint="as Europe/Berlin, or UTC"
            ) from None
        raise UsageError(
            f"'{cron}' is no cron schedule",
            where="--cron",
            hint="minute hour day month weekday, as in '0 3 * * *' for every day at three",
        ) from None


def add_schedule(
    recipe: Recipe, cron: CronSchedule, asked: Mapping[str, Any], store: str, pool: str
) -> Scheduled:
    """Run `recipe` by the clock; one that is scheduled so already is left as it is."""
    new = Scheduled(recipe.name, cron.cron, cron.timezone or "UTC", {**asked, "store": store})
    with asking() as client:
        deployment = _deployment(client, recipe.name)
        if deployment is None:
            register_recipe(client, recipe, store, pool)
            deployment = client.read_deployment_by_name(f"pipeline/{recipe.name}")
        if all(_told(deployment, standing) != new for standing in deployment.schedules):
            schedule = DeploymentScheduleCreate(schedule=cron, parameters=new.asked)
            client.create_deployment_schedules(deployment.id, [schedule])
    return new


def remove_schedules(recipe: str, cron: str | None) -> list[Scheduled]:
    """Remove the schedules of a recipe (of one clock if `cron` is given); those removed."""
    removed = []
    with asking() as client:
        deployment = _deployment(client, recipe)
        for standing in deployment.schedules if deployment else ():
            told = _told(deployment, standing) if deployment else None
            if told is not None and deployment is not None and cron in (None, told.cron):
                client.delete_deployment_schedule(deployment.id, standing.id)
                removed.append(told)
    return removed


def schedules() -> list[Scheduled]:
    """Every schedule of a recipe, by name."""
    ours = DeploymentFilter(tags=DeploymentFilterTags(all_=[TAG, "recipe"]))
    with asking() as client:
        found = client.read_deployments(deployment_filter=ours)
    told = (_told(one, standing) for one in found for standing in one.schedules)
    return sorted((one for one in told if one), key=lambda one: (one.recipe, one.cron))


def _deployment(client: SyncPrefectClient, recipe: str) -> DeploymentResponse | None:
    try:
        return client.read_deployment_by_name(f"pipeline/{recipe}")
    except ObjectNotFound:
        return None


def _told(deployment: DeploymentResponse, standing: DeploymentSchedule) -> Scheduled | None:
    """A schedule of the clock; None for one of another sort, made in the UI."""
    if not isinstance(standing.schedule, CronSchedule):
        return None
    return Scheduled(
        deployment.name,
        standing.schedule.cron,
        standing.schedule.timezone or "UTC",
        dict(standing.parameters or {}),
    )
