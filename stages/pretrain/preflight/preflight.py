"""The pre-flight of a run: what is told before the model is made, and by a dry batch with it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.engine.sizes import amount
from stages.pretrain.preflight.dry_batch import dry_batch
from stages.pretrain.preflight.flight import Flight, checks
from stages.pretrain.preflight.prediction import predict, prediction_finding
from stages.pretrain.preflight.report import Finding, Report
from stages.training.config import TrainingExecution
from stages.training.listener import Listener

if TYPE_CHECKING:
    from stages.engine import Context
    from stages.pretrain.prepared import Prepared
    from stages.training.runtime import Runtime

FILE = "preflight.json"
"""In the telemetry of the run."""


def dry_findings(flight: Flight, done: int) -> list[Finding]:
    """The batch behind `done` training steps, tried; and what it says of the rest of the run."""
    ready = flight.ready
    dry = dry_batch(ready.model, ready.task(flight.runtime), done + 1, flight.plan.clock.steps)
    if dry is None:
        return []
    peak = "" if dry.peak_bytes is None else f", {amount(dry.peak_bytes)} of the GPU at most"
    said = f"{dry.tokens:,} tokens of training step {dry.training_step:,} in {dry.seconds:.2f} s"
    numbers = {"dry_tokens": dry.tokens, "peak_bytes": dry.peak_bytes}
    tried = Finding("dry batch", "ok", said + peak, numbers=numbers)
    if not math.isfinite(dry.loss):
        what = f"the loss of training step {dry.training_step:,} is {dry.loss}"
        tried = Finding("dry batch", "refusal", what, "look at weights and precision", numbers)
    if not dry.tokens:
        return [tried]
    ahead = flight.work_ahead(done, dry)
    found = predict(ready.model.config, ahead, dry, flight.peak)
    return [tried, prediction_finding(found, ahead, dry, time.time())]


@dataclass
class Preflight(Listener):
    """Looks before the run leaps: `check` before there is a model, `started` before its first
    step, with the very model that is trained. `tell` is given each finding, `keep` the report.
    """

    flight: Flight
    tell: Callable[[Finding], None]
    keep: Callable[[Report], None]
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    def check(self) -> None:
        """Raise IngotError where the run would fail; warnings are told."""
        self._take(lambda: checks(self.flight))

    def started(self, training_step: int, total: int) -> None:
        """The dry batch, and what the rest of the run will take."""
        if training_step < total:
            self._take(lambda: dry_findings(self.flight, training_step))

    def _take(self, look: Callable[[], list[Finding]]) -> None:
        began = time.monotonic()
        found = look()
        self.seconds += time.monotonic() - began
        self.findings += found
        for one in found:
            self.tell(one)
        report = Report(tuple(self.findings), self.seconds)
        self.keep(report)
        if self.flight.execution.preflight == "refuse":
            report.raise_refusals()


def look_before(context: Context, ready: Prepared, runtime: Runtime) -> list[Listener]:
    """The pre-flight of a run as its execution asks for it, its first half done.

    Raises IngotError where the run would fail; the listener does the rest before the first step.
    """
    execution: TrainingExecution = context.execution
    if execution.preflight == "off":
        return []
    folder = context.telemetry_folder
    flight = Flight(ready, execution, runtime, context.attempt.backend, context.work)

    def tell(finding: Finding) -> None:
        say = context.log.info if finding.level == "ok" else context.log.warning
        say("%s", finding.line())

    def keep(report: Report) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(json.dumps(report.to_json(), indent=1))

    look = Preflight(flight, tell, keep)
    look.check()
    return [look]
