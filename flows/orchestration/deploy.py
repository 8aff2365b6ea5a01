"""What a Prefect server must know of Ingot: a pool, the forms, and how a dead run is noticed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prefect.automations import AutomationCore, ChangeFlowRunState, EventTrigger, Posture
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import DeploymentUpdate, WorkPoolCreate
from prefect.client.schemas.objects import StateType
from prefect.exceptions import ObjectNotFound
from prefect.workers.process import ProcessWorker

from artifacts_schema.errors import UsageError
from flows.orchestration.asking import asking
from flows.orchestration.check import PIPELINE, STAGES
from flows.orchestration.flow import TAG
from flows.orchestration.forms import Form, recipe_form, stage_form
from flows.recipe.recipe import BUNDLED, Recipe, load_recipe
from stages.engine.registry import stages

DEAD_SECONDS = 90
AUTOMATION = "ingot: mark dead runs"


def register(recipes: Iterable[Path], store: str, pool: str) -> list[str]:
    """Make the pool, a form for each recipe and each stage, and the automation; the forms' names.

    What stands already is brought up to date. Raises UsageError for a recipe that is wrong, and for
    a pool of that name whose runs are not processes.
    """
    loaded = [load_recipe(path) for path in (*sorted(BUNDLED.glob("*.yaml")), *recipes)]
    known = stages()
    with asking() as client:
        _pool(client, pool)
        names = [register_recipe(client, recipe, store, pool) for recipe in loaded]
        for name, stage in known.items():
            names.append(
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
            )
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
    told = {
        "version": version("ingot"),
        "tags": [TAG, {"pipeline": "recipe"}.get(flow, flow)],
        "parameter_openapi_schema": form.schema(),
        "enforce_parameter_schema": True,
        **more,
    }
    try:
        standing = client.read_deployment_by_name(f"{flow}/{name}")
    except ObjectNotFound:
        client.create_deployment(client.create_flow_from_name(flow), name, **told)
    else:
        client.update_deployment(standing.id, DeploymentUpdate(**told))
    return f"{flow}/{name}"


def _pool(client: SyncPrefectClient, name: str) -> None:
    try:
        standing = client.read_work_pool(name)
    except ObjectNotFound:
        template = ProcessWorker.get_default_base_job_template()
        client.create_work_pool(
            WorkPoolCreate(name=name, type=ProcessWorker.type, base_job_template=template)
        )
        return
    if standing.type != ProcessWorker.type:
        raise UsageError(
            f"the work pool '{name}' is of type {standing.type}, not {ProcessWorker.type}",
            hint="choose another with --pool",
        )


def _automation(client: SyncPrefectClient) -> None:
    """A run of ours that was heard of once and then falls silent without an end has crashed."""
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
                    message=f"no sign of life for {DEAD_SECONDS} seconds; finished work is kept, "
                    "and a new run continues",
                )
            ],
        )
    )
