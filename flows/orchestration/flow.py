"""The flows that Prefect knows: a recipe, a spec from another process, a single stage's form.

`PrefectObserver` shows a run: a task for each step, and its results as artifacts. Prefect binds the
parameters of a run to the signature of the flow, so each stage has a flow of its own, made when
Prefect asks this module for it.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, cast

import httpx
from prefect import flow, get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.flows import Flow
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import ThreadPoolTaskRunner

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.runs import load_runs, run_ids
from flows.orchestration.forms import (
    NAME_FIELD,
    STAGE_PREFIX,
    list_inputs,
    request_from,
    stage_form,
    stage_spec,
)
from flows.orchestration.node import requested_step, stage_dispatcher
from flows.orchestration.notifications import report_regressions
from flows.orchestration.reports import publish_report
from flows.orchestration.ui import (
    AWAY,
    StepEnd,
    StepMessages,
    artifact_key,
    committed_steps,
    follow_step,
    funnel_page,
    lineage_page,
    loss_page,
    plan_rows,
    scores_page,
)
from flows.recipe.dispatch import Dispatch, Dispatcher, Job, start_here
from flows.recipe.execute import execute, run_step
from flows.recipe.observers import Observer
from flows.recipe.pipeline import Pipeline
from flows.recipe.plan import Plan, PlannedStep
from flows.report.overview import Made
from flows.report.paired_scores import find_regressions
from stages.engine.page import Artifact
from stages.engine.protocol import stage_named
from stages.engine.spec import StageSpec


@dataclass
class PrefectObserver(Observer):
    """Shows a run in Prefect; `scope` is part of the keys of its artifacts."""

    scope: str
    start: Dispatch = start_here
    """Where steps run."""
    queues: dict[str, StepMessages] = field(default_factory=dict)
    futures: list[PrefectFuture[Any]] = field(default_factory=list)
    """Kept, because Prefect warns about futures that are garbage-collected."""
    is_planned: bool = False
    is_away: bool = False
    """Whether the API stopped answering during the run."""

    def dispatch(self, store: Store, step: PlannedStep) -> Job:
        """Start the step, and a task that shows it."""
        job = self.start(store, step)
        messages = self.queues[step.instance] = StepMessages()
        try:
            self.futures.append(
                follow_step.submit(
                    step.instance, step.stage, step.key or "", step.cause, self.scope, messages
                )
            )
        except AWAY as error:
            _log().warning("step %s runs, but is not shown: %s", step.instance, error)
        return job

    def planned(self, plan: Plan) -> None:
        """Publish the first plan; later ones follow from the events."""
        if not self.is_planned:
            self.is_planned = True
            self.publish_plan(plan.steps, plan.summary())

    def event(self, step: PlannedStep, event: dict[str, Any]) -> None:
        """Send an event to the step's task."""
        self.queues[step.instance].put(event)

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """End the step's task."""
        self.queues[step.instance].put(StepEnd(counts=manifest.counts))

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """Fail the step's task with the step's own error."""
        self.queues[step.instance].put(StepEnd(error))

    def publish_plan(self, steps: Sequence[PlannedStep], summary: str) -> None:
        """Publish the action of each step and its cause."""
        self._publish(
            "plan", lambda key: create_table_artifact(plan_rows(steps), key, description=summary)
        )

    def publish_results(self, store: Store, made: Sequence[Made], report: str) -> None:
        """Publish the results of a run: funnel, lineage, losses, evaluations, and its report.

        `report` is what `ingot report` takes. What cannot be shown is logged and skipped.
        """
        if any(manifest.conservation is not None for _, manifest in made):
            self._page("funnel", lambda: funnel_page(made), "Documents by step")
        self._page("lineage", lambda: lineage_page(made), "What each artifact was made of")
        for instance, manifest in made:
            kinds = {output.kind for output in manifest.outputs.values()}
            stage, artifact = manifest.stage, Artifact(store, manifest)
            if "evaluation" in kinds:
                render = partial(scores_page, stage, artifact)
                self._page(f"evaluation-{instance}", render, f"Scores: {instance}")
            # A step that this run trained has a task that drew its loss.
            if "training_run" in kinds and instance not in self.queues:
                self._page(
                    f"loss-{instance}", partial(loss_page, stage, artifact), f"Loss: {instance}"
                )

        def link(key: str) -> None:
            file, address = publish_report(store, report)
            _log().info("report: %s", address or file)
            if address is not None:
                create_link_artifact(
                    address, link_text=f"report of {report}", key=key, description="Report"
                )

        self._publish("report", link)

    def _page(self, name: str, render: Callable[[], str | None], description: str) -> None:
        def create(key: str) -> None:
            if (markdown := render()) is not None:
                create_markdown_artifact(markdown, key, description=description)

        self._publish(name, create)

    def _publish(self, name: str, create: Callable[[str], Any]) -> None:
        """Make an artifact of this run; a failure is logged and does not fail the run."""
        if self.is_away:
            return  # Each attempt would take its seconds of retries.
        first, _, rest = name.partition("-")
        try:
            create(artifact_key(f"{first}-{self.scope}-{rest}"))
        except Exception as error:
            self.is_away = isinstance(error, httpx.HTTPError)
            _log().warning("%s is not shown in the UI: %s: %s", name, type(error).__name__, error)


def _log() -> logging.Logger | logging.LoggerAdapter[Any]:
    try:
        return get_run_logger()
    except RuntimeError:
        return logging.getLogger(__name__)


_extra_observers: ContextVar[tuple[Observer, ...]] = ContextVar("extra_observers", default=())
_jobs: ContextVar[int | None] = ContextVar("jobs", default=None)


_GENERATED = re.compile(r"[A-Za-z][a-z]+-[A-Za-z][a-z]+")


def run_name(name: str) -> str:
    """`name #3f2a`: the end of Prefect's id distinguishes runs of one name.

    A name that somebody typed is kept: Prefect's own are two words with a hyphen.
    """
    typed = flow_run.name if flow_run.id else None
    if typed and not _GENERATED.fullmatch(typed):
        return typed
    return f"{name} #{str(flow_run.id)[-4:]}" if flow_run.id else name


def _pipeline_name() -> str:
    parameters = flow_run.parameters
    name = Path(str(parameters.get("recipe", "recipe"))).stem
    for word, key in (("from", "start"), ("through", "through")):
        if parameters.get(key):
            name += f" {word} {parameters[key]}"
    return run_name(name)


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
    values: dict[str, Any] | None = None,
    force: list[str] | None = None,
    strict_code: bool = False,
    accept_code: bool = False,
    by: str | None = None,
) -> dict[str, str]:
    """Bring a recipe up to date in a store; returns the key of each step.

    Args:
        recipe: name of a recipe that comes with Ingot, or path of a YAML file.
        store: URL or folder of the store.
        profile: where and how the steps run; never changes a key.
        overrides: changes such as `filter.duplicates.threshold=0.7`.
        values: the form's fields of what the recipe writes; they become overrides.
        start: first step to run.
        through: last step to run.
        force: steps to run even if their artifact exists.
        strict_code: rerun steps whose program changed at an equal version.
        accept_code: continue from checkpoints that another program left under the same key.
        by: who asks, for accounts of what runs cost; by default the user of the process.
    """
    bound = Pipeline.open(request_from(locals()))
    observer = PrefectObserver(bound.name, Dispatcher(bound.profile))
    observers = (*_extra_observers.get(), observer)
    known = set(run_ids(bound.store, bound.name))
    try:
        final = execute(bound, dispatch=observer.dispatch, observers=observers, jobs=_jobs.get())
    except Exception:
        _publish(observer, bound)
        raise
    _publish(observer, bound)
    _look_for_regressions(bound, known)
    return {step.instance: short(step.key or "") for step in final.steps}


@flow(name="spec", flow_run_name=lambda: run_name(flow_run.parameters["stage"]),
      persist_result=False, retries=0)  # fmt: skip
def spec(stage: str, store: str, spec_uri: str, expected_key: str) -> dict[str, str]:
    """Run one stage from a spec; the key is computed again here and begins with `expected_key`.

    Args:
        stage: name of the stage.
        store: URL or folder of the store.
        spec_uri: path or URL of the stage spec (JSON), as `ingot stage --write-spec` makes it.
        expected_key: the key that the caller computed; its first 8 digits or more.
    """
    import fsspec

    with fsspec.open(spec_uri, "rb") as file:
        stage_spec = StageSpec.from_json(file.read(), where=spec_uri)
    stage_spec.check_key(expected_key)
    return run_spec(Store.open(store, create=False), stage_spec)


def run_spec(store: Store, spec: StageSpec, start: Dispatch = start_here) -> dict[str, str]:
    """Run one stage and show it; returns the digest of each output."""
    step = requested_step(spec)
    observer = PrefectObserver("stage", start)
    observer.publish_plan([step], f"{spec.stage} {short(spec.key)}")
    manifest = run_step(store, step, dispatch=observer.dispatch, observer=observer)
    observer.publish_results(store, [(spec.stage, manifest)], manifest.key)
    return {name: short(output.digest) for name, output in manifest.outputs.items()}


@contextmanager
def extra_observer(observer: Observer | None, jobs: int | None) -> Iterator[None]:
    """While active, a flow also notifies `observer` and runs at most `jobs` steps at once."""
    tokens = (_extra_observers.set((observer,) if observer else ()), _jobs.set(jobs))
    try:
        yield
    finally:
        _extra_observers.reset(tokens[0])
        _jobs.reset(tokens[1])


def _publish(observer: PrefectObserver, bound: Pipeline) -> None:
    """Publish the existing artifacts and the report of the last recorded run."""
    newest = next(load_runs(bound.store, bound.name), None)
    if newest is not None:
        observer.publish_results(bound.store, committed_steps(bound.plan()), newest.name)


def _look_for_regressions(bound: Pipeline, known: set[str]) -> None:
    """Send an event if scores of this run fell; `known` are the ids of the runs before it.

    A run that reused everything leaves no record. A failure here only shows in the log.
    """
    try:
        own = (one for one in load_runs(bound.store, bound.name) if one.process == os.getpid())
        newest = next((one for one in own if one.id not in known), None)
        worse = find_regressions(bound.store, newest) if newest is not None else []
        if newest is not None and worse:
            report_regressions(newest, bound.store.url, worse, str(flow_run.id))
            _log().warning("%d scores are worse than in the run before", len(worse))
    except IngotError as error:
        _log().warning("scores are not compared with those of the run before: %s", error)


def stage_flow(name: str) -> Flow[..., dict[str, str]]:
    """The flow `stage` of the stage called `name`."""

    def run(**values: Any) -> dict[str, str]:
        store = Store.open(values.pop("store"))
        ref = values.pop(NAME_FIELD, None)
        spec = stage_spec(store, name, values)
        dispatch = stage_dispatcher(values)
        digests = run_spec(store, spec, dispatch)
        while ref:
            manifest = store.manifest(spec.stage, spec.key)
            if manifest is not None and store.name(ref, manifest):
                break
            digests = run_spec(store, spec, dispatch)  # Collected before it was named.
        return digests

    def title() -> str:
        return run_name(" ".join([name, *list_inputs(flow_run.parameters)]))

    stage = stage_named(name)
    fields = stage_form(stage, "").fields
    run.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(key, Parameter.KEYWORD_ONLY, default=None) for key in fields]
    )
    run.__doc__ = stage.__doc__
    return flow(name="stage", flow_run_name=title, persist_result=False, retries=0)(run)


def __getattr__(name: str) -> Any:
    """`stage_NAME`: the flow of a stage, which Prefect looks up by its entrypoint."""
    if name.startswith(STAGE_PREFIX):
        try:
            return stage_flow(name.removeprefix(STAGE_PREFIX))
        except UsageError as error:
            raise AttributeError(str(error)) from None
    raise AttributeError(name)
