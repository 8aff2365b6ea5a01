"""The pre-flight of a pretraining run: what it needs and what would fail, before its first step.

Some checks come before the model is made; a dry batch follows with the very model that is trained.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from artifacts_schema.config import format_bytes
from artifacts_schema.store import Store
from artifacts_schema.store.backend import Backend
from stages.engine import Context, Input
from stages.parallel.layout import ONE_PROCESS
from stages.parallel.ranks import ALONE
from stages.pretrain.checkpoints import plan_milestones
from stages.pretrain.config import PretrainConfig
from stages.pretrain.preflight_checks import (
    Finding,
    Report,
    check_contamination,
    check_device,
    check_disk,
    check_epochs,
    check_held_out,
    check_ids,
    check_links,
    check_memory,
    check_writable,
    disk_needs,
    merge_findings,
)
from stages.pretrain.preflight_isolation import check_isolation, two_documents
from stages.pretrain.preflight_trial import (
    DryBatch,
    RemainingWork,
    check_resume,
    predict,
    prediction_finding,
    preserve_model,
    try_batch,
)
from stages.pretrain.run_setup import RunSetup
from stages.pretrain.task import PretrainTask
from stages.training.callbacks import Callback
from stages.training.config import TrainingExecution
from stages.training.devices import device_name, explain_compile_error
from stages.training.hardware import StepMemory, explain_out_of_memory, peak_flops
from stages.training.losses import product_type
from stages.training.runtime import Runtime, place, resolve_attention, runtime


@dataclass(frozen=True)
class PlannedRun:
    """A run before its start: what it starts with, how and where it works."""

    ready: RunSetup
    execution: TrainingExecution
    runtime: Runtime
    backend: Backend
    work: Path

    @property
    def peak(self) -> float | None:
        """Operations a second that the device can do at most, where that is known."""
        return peak_flops(device_name(self.runtime.device), self.execution.peak_tflops)

    @property
    def attention(self) -> str:
        """The backend that the run will have."""
        ready = self.ready
        return resolve_attention(
            ready.model_config, self.execution, self.runtime, prefixes=not ready.objective.is_causal
        )

    @property
    def largest(self) -> StepMemory:
        """The step that needs most memory, of those of all phases."""
        ready = self.ready
        steps = [
            StepMemory(
                ready.model_config,
                min(max(one.sequences for one in phase.stretches), self.runtime.micro_batch),
                phase.sequence_length,
                ready.config.precision,
                ready.config.optimizer,
                self.execution,
                self.runtime.device,
                averages=ready.config.averages.kept,
                attention=self.attention,
            )
            for phase in ready.plan.clock.phases
        ]
        return max(steps, key=lambda one: one.need.total)

    def work_ahead(self, done: int, dry: DryBatch) -> RemainingWork:
        """The work after `done` training steps."""
        clock, account = self.ready.plan.clock, self.ready.plan.account
        tokens = [0.0] * len(clock.phases)
        for source in account.sources:
            for phase, planned in enumerate(source.tokens_by_phase):
                tokens[phase] += planned
        for phase, one in enumerate(clock.phases):
            first = clock.first_steps[phase] - 1
            read = clock.tokens_until(max(done, first)) - clock.tokens_until(first)
            tokens[phase] *= 1 - min(1.0, read / one.tokens)
        every = self.ready.config.held_out_every
        measurements = -(-clock.steps // every) - done // every + (done == 0)
        length = clock.phases[-1].sequence_length
        return RemainingWork(
            tokens,
            [phase.sequence_length for phase in clock.phases],
            clock.phase_of(dry.training_step),
            float(measurements * len(self.ready.held_out.sources_B) * length),
        )


def run_checks(flight: PlannedRun) -> list[Finding]:
    """All that is known without the model itself, cheapest first; to be called on all ranks.

    Each rank looks at its own device and memory, rank 0 at all that is shared.
    """
    ranks = flight.runtime.ranks
    own = check_own(flight)
    by_rank = ranks.gather([replace(one, error=None) for one in own])
    links = [check_links(ranks)] if ranks.world > 1 else []
    if not ranks.first:
        return []
    return [*merge_findings([own, *by_rank[1:]]), *links, *check_shared(flight)]


def check_own(flight: PlannedRun) -> list[Finding]:
    """The device of this process, and its memory."""
    runtime = flight.runtime
    products = product_type(runtime.precision)
    device = check_device(runtime.device, device_name(runtime.device), flight.peak, products)
    return [device, *check_memory(flight.largest)]


def check_shared(flight: PlannedRun) -> list[Finding]:
    """Disk, store and data; and whether a tiny model in this process alone resumes."""
    ready, runtime = flight.ready, replace(flight.runtime, ranks=ALONE, parallel=ONE_PROCESS)
    payload = flight.backend.local_path("data") if flight.backend.local else None
    need = flight.largest.need
    permanent = len(plan_milestones(ready.config, ready.plan))
    disk = disk_needs(flight.work, payload, need.weights + need.optimizer, permanent)
    return [
        *check_disk(disk),
        check_writable(flight.backend),
        check_epochs(flight.ready.plan.account),
        check_ids(ready.train),
        check_held_out(ready.held_out),
        check_contamination(Store(flight.backend.url), ready.train),
        check_resume(
            flight.work,
            ready.model_config,
            ready.config.optimizer,
            runtime,
            flight.execution,
            prefixes=not ready.objective.is_causal,
        ),
    ]


FILE = "preflight.json"
"""In the telemetry of the run."""


def dry_findings(flight: PlannedRun, done: int) -> list[Finding]:
    """Try the batch after `done` training steps, and predict the rest of the run from it; to be
    called on all ranks."""
    ready = flight.ready
    task = ready.task(flight.runtime)
    dry = try_batch(
        ready.model,
        task,
        done + 1,
        flight.ready.plan.clock.steps,
        ranks=flight.runtime.ranks,
    )
    if dry is None or not flight.runtime.ranks.first:
        return []
    peak = "" if dry.peak_bytes is None else f", {format_bytes(dry.peak_bytes)} of the GPU at most"
    text = f"{dry.tokens:,} tokens of training step {dry.training_step:,} in {dry.seconds:.2f} s"
    numbers = {"dry_tokens": dry.tokens, "peak_bytes": dry.peak_bytes}
    tried = Finding("dry batch", "ok", text + peak, numbers=numbers)
    if not math.isfinite(dry.loss):
        what = f"the loss of training step {dry.training_step:,} is {dry.loss}"
        tried = Finding("dry batch", "refusal", what, "look at weights and precision", numbers)
    if not dry.tokens:
        return [tried]
    apart = isolation_findings(flight, task, dry.training_step)
    ahead = flight.work_ahead(done, dry)
    results = predict(ready.model.config, ahead, dry, flight.peak)
    return [tried, *apart, prediction_finding(results, ahead, dry, time.time())]


def isolation_findings(flight: PlannedRun, task: PretrainTask, training_step: int) -> list[Finding]:
    """Whether documents of a sequence see each other; nothing where none shares one, where an
    objective moves tokens, or on several ranks."""
    batch = task.batch(training_step)
    if flight.runtime.ranks.world > 1 or not flight.ready.objective.is_causal or batch is None:
        return []
    row = two_documents(batch.rows)
    if row is None:
        return []
    with preserve_model(flight.ready.model):
        return [check_isolation(flight.ready.model, row, flight.runtime)]


@dataclass
class Preflight(Callback):
    """Checks a run: `check` before there is a model, `started` before its first step, with the
    model that is trained; on all ranks. Rank 0 reports: `report_finding` gets each finding, `keep`
    the whole report.
    """

    flight: PlannedRun
    report_finding: Callable[[Finding], None]
    keep: Callable[[Report], None]
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    def check(self) -> None:
        """Raise IngotError where the run would fail; report warnings."""
        self._take(lambda: run_checks(self.flight))

    def started(self, training_step: int, total: int) -> None:
        """The dry batch, and what the rest of the run will take."""
        if training_step < total:
            self._take(lambda: dry_findings(self.flight, training_step))

    def _take(self, look: Callable[[], list[Finding]]) -> None:
        began = time.monotonic()
        results = look()
        self.seconds += time.monotonic() - began
        self.findings += results
        report = Report(tuple(self.findings), self.seconds)
        ranks = self.flight.runtime.ranks
        if ranks.first:
            for one in results:
                self.report_finding(one)
            self.keep(report)
        if self.flight.execution.preflight == "refuse":
            rejections = ranks.share([replace(one, error=None) for one in report.rejections])
            (report if ranks.first else Report(rejections, 0.0)).raise_rejections()


def start_preflight(context: Context, ready: RunSetup, runtime: Runtime) -> list[Callback]:
    """The pre-flight of a run by its execution settings, its first half done.

    Raises IngotError where the run would fail; the callback does the rest before the first step.
    """
    execution: TrainingExecution = context.execution
    if execution.preflight == "off":
        return []
    folder = context.telemetry_folder
    flight = PlannedRun(ready, execution, runtime, context.attempt.backend, context.work)

    def tell(finding: Finding) -> None:
        say = context.log.info if finding.level == "ok" else context.log.warning
        say("%s", finding.line())

    def keep(report: Report) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(json.dumps(report.to_json(), indent=1))

    look = Preflight(flight, tell, keep)
    look.check()
    return [look]


def run_preflight(
    config: PretrainConfig,
    execution: TrainingExecution,
    inputs: Mapping[str, Sequence[Input]],
    *,
    backend: Backend,
    work: Path,
    tell: Callable[[Finding], None] = lambda finding: None,
) -> Report:
    """Check a run that would work in `work`.

    A report with rejections has no dry batch, nor has that of a run of several processes: they try
    one when the run starts, and their links. Raises what the stage would raise for wrong inputs,
    and IngotError where memory runs out.
    """
    execution = execution.model_copy(update={"preflight": "warn"})  # The whole report, always.
    ready = RunSetup.from_inputs(config, inputs)
    kept: list[Report] = []
    with runtime(execution, config.precision, config.seed) as how:
        flight = PlannedRun(ready, execution, how, backend, work)
        look = Preflight(flight, tell, kept.append)
        look.check()
        if kept[-1].rejections or execution.layout.world > 1:  # One process may not hold the model.
            return kept[-1]
        place(ready.model, execution, how, prefixes=not ready.objective.is_causal)
        with explain_out_of_memory(flight.largest), explain_compile_error():
            look.started(ready.begin.training_step, ready.plan.clock.steps)
    return kept[-1]
