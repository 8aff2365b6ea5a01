"""The flows that Prefect knows: a whole recipe, and a single stage."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import ThreadPoolTaskRunner

from artifacts_schema.errors import IngotError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.orchestration.follow import AWAY, Ended, Messages, artifact_key, follow_step
from flows.recipe.execute import Job, execute, run_step, start_here
from flows.recipe.observer import Observer
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.plan import Plan, PlannedStep

_also_told: ContextVar[Observer | None] = ContextVar("also_told", default=None)
_jobs: ContextVar[int | None] = ContextVar("jobs", default=None)


def _pipeline_name() -> str:
    given = flow_run.parameters
    name = str(given.get("recipe", "recipe")).rsplit("/", 1)[-1].removesuffix(".yaml")
    through = f" through {given['through']}" if given.get("through") else ""
    return f"{name}{through} {flow_run.id[:8] if flow_run.id else ''}".strip()


@flow(
    name="pipeline",
    flow_run_name=_pipeline_name,
    task_runner=cast(Any, ThreadPoolTaskRunner(max_workers=64)),
    persist_result=False,
    retries=0,
)
def pipeline(
    recipe: str,
    store: str = "ingot-store",
    profile: str | None = None,
    overrides: list[str] | None = None,
    start: str | None = None,
    through: str | None = None,
    force: list[str] | None = None,
    strict_code: bool = False,
) -> dict[str, str]:
    """Bring a recipe up to date in a store; returns the key that each step came to.

    Args:
        recipe: name of a recipe that comes with Ingot, or path of a YAML file.
        store: URL or folder of the store.
        profile: where and how the steps run; never changes a key.
        overrides: changes such as `filter.duplicates.threshold=0.7`.
        start: first step to run.
        through: last step to run.
        force: steps to run although their artifact stands.
        strict_code: run steps anew whose program changed at an equal version.
    """
    request = Request(
        recipe,
        store,
        profile,
        tuple(overrides or ()),
        start,
        through,
        tuple(force or ()),
        strict_code,
    )
    bound = Pipeline.open(request)
    shown = Shown(_also_told.get())
    final = execute(bound, dispatch=shown.dispatch, observer=shown, jobs=_jobs.get())
    shown.publish_result(bound, final)
    return {step.instance: short(step.key or "") for step in final.steps}


@flow(name="stage", flow_run_name="{stage} {expected_key}", persist_result=False, retries=0)
def single_stage(stage: str, store: str, spec_uri: str, expected_key: str) -> dict[str, str]:
    """Run one stage from a spec; the key is computed again here and must be `expected_key`.

    Args:
        stage: name of the stage.
        store: URL or folder of the store.
        spec_uri: path or URL of the stage spec (JSON), as `ingot stage --write-spec` makes it.
        expected_key: the key that the one who asked has computed.
    """
    import fsspec

    from stages.engine.spec import StageSpec

    with fsspec.open(spec_uri, "rb") as file:
        spec = StageSpec.from_json(file.read(), where=spec_uri)
    if spec.key != expected_key:
        raise IngotError(
            f"the key here is {short(spec.key)}, expected {short(expected_key)}", where=stage
        )
    opened = Store.open(store)
    step = PlannedStep(stage, stage, stage, "run", "asked for", spec.key, spec)
    shown = Shown(None)
    manifest = run_step(opened, step, dispatch=shown.dispatch, observer=shown)
    return {output: short(found.digest) for output, found in manifest.outputs.items()}


@contextmanager
def told_also(observer: Observer | None, jobs: int | None) -> Iterator[None]:
    """While this lasts, `observer` hears what the flow's own observer hears."""
    tokens = (_also_told.set(observer), _jobs.set(jobs))
    try:
        yield
    finally:
        _also_told.reset(tokens[0])
        _jobs.reset(tokens[1])


@dataclass
class Shown(Observer):
    """Shows a run in Prefect: a task for each step, the plan as a table, the funnel as a page."""

    also: Observer | None
    queues: dict[str, Messages] = field(default_factory=dict)
    futures: list[PrefectFuture[Any]] = field(default_factory=list)
    first_plan: bool = True

    def dispatch(self, store: Store, step: PlannedStep) -> Job:
        """Start the child, and a task that shows it."""
        job = start_here(store, step)
        messages: Messages = Messages()
        self.queues[step.instance] = messages
        try:
            self.futures.append(
                follow_step.submit(
                    step.instance, step.stage, step.key or "", step.cause, _Opaque(messages)
                )
            )
        except AWAY as error:
            _log().warning("step %s runs, but is not shown: %s", step.instance, error)
        return job

    def planned(self, plan: Plan) -> None:
        """Publish the first plan; later ones follow from what happens."""
        if self.also:
            self.also.planned(plan)
        if self.first_plan:
            self.first_plan = False
            rows = [
                {
                    "step": s.instance,
                    "action": s.action,
                    "cause": s.cause,
                    "key": short(s.key or ""),
                }
                for s in plan.steps
            ]
            _publish(lambda: create_table_artifact(rows, key="plan", description=plan.summary()))

    def started(self, step: PlannedStep) -> None:
        """Pass it on."""
        if self.also:
            self.also.started(step)

    def event(self, step: PlannedStep, event: dict[str, Any]) -> None:
        """Hand an event to the step's task."""
        if self.also:
            self.also.event(step, event)
        self.queues[step.instance].put(event)

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """End the step's task."""
        if self.also:
            self.also.finished(step, manifest, seconds)
        self.queues[step.instance].put(Ended(counts=manifest.counts))

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """Fail the step's task with the step's own error."""
        if self.also:
            self.also.failed(step, error)
        self.queues[step.instance].put(Ended(error))

    def publish_result(self, bound: Pipeline, plan: Plan) -> None:
        """The funnel of the run, as a page in the UI."""
        lines = ["| step | in | out | dropped |", "|---|---:|---:|---|"]
        for step in plan.steps:
            conservation = step.manifest.conservation if step.manifest else None
            if conservation is not None:
                lost = ", ".join(
                    f"{reason} {count:,}" for reason, count in conservation.dropped.items()
                )
                kept = f"{conservation.records_in:,} | {conservation.out:,}"
                lines.append(f"| {step.instance} | {kept} | {lost} |")
        key = artifact_key(f"funnel-{bound.name}")
        _publish(
            lambda: create_markdown_artifact(
                "\n".join(lines), key=key, description="Documents by step"
            )
        )


class _Opaque:
    """Keeps Prefect from walking into, copying or printing what it carries."""

    def __init__(self, messages: Messages) -> None:
        self.get = messages.get

    def __repr__(self) -> str:
        return "events"


def _publish(create: Any) -> None:
    try:
        create()
    except AWAY as error:
        _log().warning("not shown in the UI: %s", error)


def _log() -> logging.Logger | logging.LoggerAdapter[Any]:
    try:
        return get_run_logger()
    except RuntimeError:
        return logging.getLogger(__name__)
