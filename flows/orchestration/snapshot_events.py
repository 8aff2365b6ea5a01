"""The event that a snapshot was taken, and the automation that starts a recipe at it.

The event says so and no more: what is to be done follows from the store, where a plan finds every
snapshot of a series. So an event that is lost, comes twice or too early changes nothing but when a
run starts; a schedule (`ingot schedule --cron`) beside it is the way to be sure.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any

from prefect.automations import AutomationCore, EventTrigger, Posture, RunDeployment
from prefect.events import Event, Resource
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest
from flows.orchestration.deployments import (
    Target,
    find_deployment,
    prefect_client,
    register_recipe,
    send_event,
)
from flows.recipe.recipe import Recipe
from flows.recipe.snapshots import OUTPUT

TAKEN = "ingot.snapshot.taken"


class SnapshotTaken(BaseModel):
    """The payload of the event; every field is there, and none else."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    store: str = Field(min_length=1)
    name: str = Field(min_length=1)
    key: str = Field(pattern="[0-9a-f]{64}")
    digest: str = Field(pattern="[0-9a-f]{64}")
    files: int = Field(ge=1)
    bytes: int = Field(ge=0)

    @classmethod
    def about(cls, store: str, name: str, manifest: Manifest) -> SnapshotTaken:
        """The payload about a snapshot; UsageError for a manifest that lacks something."""
        counts = manifest.counts
        try:
            return cls(
                store=store,
                name=name,
                key=manifest.key,
                digest=manifest.output(OUTPUT).digest,
                files=int(counts.get("files", 0)),
                bytes=int(counts.get("bytes", -1)),
            )
        except ValidationError as error:
            fields = ", ".join(str(problem["loc"][0]) for problem in error.errors())
            raise UsageError(f"no event about {name}: wrong {fields}") from None


def send(payload: SnapshotTaken) -> None:
    """Send the event to the server in use, which has stored it when this returns.

    IngotError where the server is away or refuses.
    """
    resource = {"prefect.resource.id": resource_id(payload.store, payload.name)}
    send_event(
        Event(
            event=TAKEN,
            resource=Resource.model_validate(resource),
            payload=payload.model_dump(),
        )
    )


def resource_id(store: str, name: str) -> str:
    """Names a snapshot in events, or several by a pattern; the store by 12 digits of a hash."""
    return f"ingot.snapshot.{sha256(store.encode()).hexdigest()[:12]}.{name}"


def automation_name(recipe: str, series: str) -> str:
    """Of the automation that starts a recipe at the snapshots of a series."""
    return f"ingot: {recipe} on {series}"


def start_on_snapshots(
    recipe: Recipe, series: str, parameters: Mapping[str, Any], store: str, pool: str
) -> str:
    """Make the automation that runs `recipe` when a snapshot named as `series` is taken; its name.

    `series` is a name, or the beginning of names and a star. An equal automation is left as it is.
    """
    if "*" in series[:-1] or "?" in series or "[" in series:
        raise UsageError(
            f"'{series}': a server matches a name, or the beginning of names and a star",
            where="--on-snapshot",
            hint="as 'crawl-*'",
        )
    with prefect_client() as client:
        deployment = find_deployment(client, recipe.name)
        if deployment is None:
            register_recipe(client, recipe, Target(store, pool))
            deployment = client.read_deployment_by_name(f"pipeline/{recipe.name}")
        automation = AutomationCore(
            name=automation_name(recipe.name, series),
            description=f"Runs {recipe.name} when `ingot snapshot watch` took a snapshot.",
            trigger=EventTrigger(
                expect={TAKEN},
                match={"prefect.resource.id": resource_id(store, series)},
                posture=Posture.Reactive,
                threshold=1,
                within=timedelta(0),
            ),
            actions=[
                RunDeployment(
                    source="selected",
                    deployment_id=deployment.id,
                    parameters={**parameters, "store": store},
                    job_variables=None,
                )
            ],
        )
        for known in client.read_automations_by_name(automation.name):
            same = known.trigger == automation.trigger and known.actions == automation.actions
            if not same:
                client.update_automation(known.id, automation)
            return automation.name
        client.create_automation(automation)
    return automation.name


def stop_on_snapshots(recipe: str, series: str | None) -> list[str]:
    """Remove the automations of a recipe (of one series, if given); the series they were for."""
    removed = []
    with prefect_client() as client:
        for series_of, automation in _automations(client).items():
            if series_of[0] == recipe and series in (None, series_of[1]):
                answer = client.request(
                    "DELETE", "/automations/{id}", path_params={"id": automation}
                )
                answer.raise_for_status()
                removed.append(series_of[1])
    return removed


def list_on_snapshots() -> list[tuple[str, str]]:
    """(recipe, series) of every automation that starts a recipe."""
    with prefect_client() as client:
        return sorted(_automations(client))


def _automations(client: Any) -> dict[tuple[str, str], str]:
    """(recipe, series) → id."""
    answer = client.request("POST", "/automations/filter", json={"limit": 200})
    answer.raise_for_status()
    automations = {}
    for one in answer.json():
        name = one["name"].removeprefix("ingot: ")
        recipe, middle, series = name.partition(" on ")
        if name != one["name"] and middle:
            automations[recipe, series] = one["id"]
    return automations
