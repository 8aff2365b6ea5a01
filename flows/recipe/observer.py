"""Who is told what happens in a run: a terminal, Prefect, the run's own record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artifacts_schema.errors import IngotError
from artifacts_schema.manifest import Manifest
from flows.recipe.plan import Plan, PlannedStep


class Observer:
    """Told what happens, in order, from one thread. Every method does nothing here."""

    def planned(self, plan: Plan) -> None:
        """A plan was made: at the start, and after each commit."""

    def started(self, step: PlannedStep) -> None:
        """A step was started."""

    def event(self, step: PlannedStep, event: dict[str, Any]) -> None:
        """A running step told something: `type` is started, progress, metric, finished, …"""

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """A step committed."""

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """A step failed or was stopped."""


@dataclass(frozen=True)
class Several(Observer):
    """Tells each of several observers, in order."""

    observers: tuple[Observer, ...]

    def planned(self, plan: Plan) -> None:
        """Pass it on."""
        for observer in self.observers:
            observer.planned(plan)

    def started(self, step: PlannedStep) -> None:
        """Pass it on."""
        for observer in self.observers:
            observer.started(step)

    def event(self, step: PlannedStep, event: dict[str, Any]) -> None:
        """Pass it on."""
        for observer in self.observers:
            observer.event(step, event)

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """Pass it on."""
        for observer in self.observers:
            observer.finished(step, manifest, seconds)

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """Pass it on."""
        for observer in self.observers:
            observer.failed(step, error)
