"""A run as the UI shows it: a task for each step, and what came of them as artifacts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from prefect import get_run_logger
from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_table_artifact,
)
from prefect.futures import PrefectFuture

from artifacts_schema.errors import IngotError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.orchestration.follow import AWAY, Ended, Messages, follow_step
from flows.orchestration.pages import (
    Made,
    artifact_key,
    figures_page,
    funnel_page,
    lineage_page,
    plan_rows,
)
from flows.orchestration.pictures import loss_figure, picture_page
from flows.orchestration.reports import publish_report
from flows.recipe.execute import Job, start_here
from flows.recipe.observer import Observer
from flows.recipe.plan import Plan, PlannedStep
from stages.engine.page import Artifact, page_of, summary_of
from stages.engine.registry import stage_named


@dataclass
class Shown(Observer):
    """Shows a run under the name `scope`, which its artifacts bear in their keys."""

    scope: str
    queues: dict[str, Messages] = field(default_factory=dict)
    futures: list[PrefectFuture[Any]] = field(default_factory=list)
    """Kept: Prefect calls a future that nobody holds a mistake."""
    is_planned: bool = False
    is_away: bool = False
    """Whether the API went away during the run."""

    def dispatch(self, store: Store, step: PlannedStep) -> Job:
        """Start the child, and a task that shows it."""
        job = start_here(store, step)
        messages = self.queues[step.instance] = Messages()
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
        """Publish the first plan; later ones follow from what happens."""
        if not self.is_planned:
            self.is_planned = True
            self.publish_plan(plan.steps, plan.summary())

    def event(self, step: PlannedStep, event: dict[str, Any]) -> None:
        """Hand an event to the step's task."""
        self.queues[step.instance].put(event)

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """End the step's task."""
        self.queues[step.instance].put(Ended(counts=manifest.counts))

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """Fail the step's task with the step's own error."""
        self.queues[step.instance].put(Ended(error))

    def publish_plan(self, steps: Sequence[PlannedStep], summary: str) -> None:
        """What will happen to each step, and why."""
        self._publish(
            "plan", lambda key: create_table_artifact(plan_rows(steps), key, description=summary)
        )

    def publish_results(self, store: Store, made: Sequence[Made], report: str) -> None:
        """What stands when a run ends: funnel, lineage, losses, evaluations, and its report.

        `report` is what `ingot report` takes. What cannot be shown is logged and left out.
        """
        if any(manifest.conservation is not None for _, manifest in made):
            self._page("funnel", funnel_page(made), "Documents by step")
        self._page("lineage", lineage_page(made), "What each artifact was made of")
        for instance, manifest in made:
            kinds = {output.kind for output in manifest.outputs.values()}
            if "evaluation" in kinds:
                self._evaluation(store, instance, manifest)
            if "training_run" in kinds and instance not in self.queues:
                self._loss(store, instance, manifest)
        self._report(store, report)

    def _evaluation(self, store: Store, instance: str, manifest: Manifest) -> None:
        def show(key: str) -> None:
            figures = summary_of(stage_named(manifest.stage), Artifact(store, manifest))
            create_markdown_artifact(figures_page(figures), key, description=f"Scores: {instance}")

        self._publish(f"evaluation-{instance}", show)

    def _loss(self, store: Store, instance: str, manifest: Manifest) -> None:
        """The loss of a step that this run did not train, so that no task has drawn it."""

        def show(key: str) -> None:
            figures = page_of(stage_named(manifest.stage), Artifact(store, manifest))
            curve = loss_figure(list(figures))
            if curve is not None:
                create_markdown_artifact(picture_page(curve), key, description=f"Loss: {instance}")

        self._publish(f"loss-{instance}", show)

    def _report(self, store: Store, report: str) -> None:
        def show(key: str) -> None:
            file, address = publish_report(store, report)
            _log().info("report: %s", address or file)
            if address is not None:
                create_link_artifact(
                    address, link_text=f"report of {report}", key=key, description="Report"
                )

        self._publish("report", show)

    def _page(self, name: str, markdown: str, description: str) -> None:
        self._publish(
            name, lambda key: create_markdown_artifact(markdown, key, description=description)
        )

    def _publish(self, name: str, create: Callable[[str], Any]) -> None:
        """Make an artifact of this run; one that fails must not fail a run that is done."""
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
