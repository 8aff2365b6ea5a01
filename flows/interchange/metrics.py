"""Metrics of the runs of a store for Prometheus, from run records, events and manifests alone.

Nothing is measured for them, and no stage knows of them: an exporter may start, stop and start
again at any time, on any machine that reads the store. Names follow the conventions of Prometheus:
base units, `_total` for what only grows; what is known of a step once it has committed is a gauge,
as of any batch job. Labels are `recipe` and `run`, and of a step `step` and
`snapshot` (what stands in the brackets of its instance: a snapshot, or a checkpoint). Exported are
the newest run of each recipe, and the one or two before it while they go on, so that the number of
series follows from the recipes; other label values are bounded by `MOST_NAMES`.
"""

from __future__ import annotations

import io
import json
import time
from calendar import timegm
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.lease import Record, process_is_gone
from artifacts_schema.store.runs import (
    Run,
    RunStep,
    StepState,
    recorded_recipes,
    run_ids,
)
from flows.interchange.step_events import StepActivity, count_bounded
from stages.engine.events import EVENTS_FILE, TELEMETRY_FOLDER, EventTail

RUNS = 3
"""Newest runs of a recipe that are looked at."""
FRESH_SECONDS = 2.0
"""Scrapes within this time get one look at the store."""
RUN_STATES = ("running", "lost", "done", "failed", "stopped")
STEP_STATES: tuple[str, ...] = get_args(StepState)
ROWS, TABLE = "telemetry.jsonl", "telemetry.parquet"
"""As `stages/training/telemetry.py` names them, whose import takes seconds."""

RUN_LABELS = ("recipe", "run")
STEP_LABELS = (*RUN_LABELS, "step", "snapshot")


class MetricType(NamedTuple):
    """What a metric means, whether it only grows, and its labels."""

    text: str
    counts: bool
    labels: tuple[str, ...]


def _gauge(text: str, *more: str, labels: tuple[str, ...] = STEP_LABELS) -> MetricType:
    return MetricType(text, False, (*labels, *more))


def _counter(text: str, *more: str) -> MetricType:
    return MetricType(text, True, (*STEP_LABELS, *more))


METRICS: dict[str, MetricType] = {
    "ingot_run_state": _gauge(
        "1 for the state the run is in; lost: its process is gone.", "state", labels=RUN_LABELS
    ),
    "ingot_run_start_time_seconds": _gauge(
        "When the run began, in seconds since 1970.", labels=RUN_LABELS
    ),
    "ingot_run_steps": _gauge("Steps of the run by state.", "state", labels=RUN_LABELS),
    "ingot_step_state": _gauge("1 for the state the step is in.", "state"),
    "ingot_step_start_time_seconds": _gauge("When the run sent the step off."),
    "ingot_step_queue_seconds": _gauge("From then until its program started."),
    "ingot_step_run_seconds": _gauge("What the start that committed took, by the clock."),
    "ingot_step_starts_total": _counter("Starts of its program, above 1 after a kill or stop."),
    "ingot_step_last_event_time_seconds": _gauge("When its program last wrote an event."),
    "ingot_step_progress_done": _gauge("Work done of its current part.", "unit"),
    "ingot_step_progress_expected": _gauge("All work of its current part.", "unit"),
    "ingot_step_rows_total": _counter(
        "Rows that its finished shards wrote, while it runs too; done again, they count twice.",
        "output",
    ),
    "ingot_step_alerts_total": _counter("Alerts of its program.", "kind"),
    "ingot_step_records_in": _gauge("Records that it read, once it has committed."),
    "ingot_step_records_out": _gauge("Records that it wrote, once it has committed."),
    "ingot_step_records_dropped": _gauge("Of these, dropped, by reason.", "reason"),
    "ingot_step_read_bytes": _gauge("Bytes of its inputs, once it has committed."),
    "ingot_step_written_bytes": _gauge("Bytes of its outputs, once it has committed."),
    "ingot_step_cpu_seconds": _gauge("CPU time of the start that committed."),
    "ingot_step_gpu_seconds": _gauge("Time that start held GPUs, times their number."),
    "ingot_step_peak_memory_bytes": _gauge("The most memory that one of its processes had."),
    "ingot_training_step": _gauge("The last training step."),
    "ingot_training_steps_total": _counter("Training steps done, also those done again."),
    "ingot_training_steps_lost_total": _counter(
        "Training steps to do again after a restart, or taken back by a rollback.", "cause"
    ),
    "ingot_training_tokens_total": _counter("Tokens trained on, also those trained on again."),
    "ingot_training_loss": _gauge("Loss of the last training step, nats a token."),
    "ingot_training_held_out_loss": _gauge("Last held-out loss, nats a token.", "source"),
    "ingot_training_gradient_norm": _gauge("Gradient norm of the last training step."),
    "ingot_training_learning_rate": _gauge("Learning rate of the last training step."),
    "ingot_training_mfu_ratio": _gauge("Last model FLOPs utilisation, 0 to 1."),
}
"""Every metric by name."""

_SUMS = {
    "seconds": "ingot_step_run_seconds",
    "cpu_seconds": "ingot_step_cpu_seconds",
    "gpu_seconds": "ingot_step_gpu_seconds",
    "peak_memory_bytes": "ingot_step_peak_memory_bytes",
}
"""Telemetry of a manifest by metric."""
_VALUES = {
    "loss": "ingot_training_loss",
    "grad_norm": "ingot_training_gradient_norm",
    "learning_rate": "ingot_training_learning_rate",
}

Sample = tuple[str, tuple[str, ...], float]
"""A metric's name, the values of its labels, its value."""


@dataclass
class _StepReader:
    """One step of a run, read again and again."""

    store: Store
    activity: StepActivity = field(default_factory=StepActivity)
    events: EventTail = field(init=False)
    rows: EventTail = field(init=False)
    mfu: float | None = None
    manifest: Manifest | None = None
    """Once its end was read: then nothing more will come."""
    read_bytes: int | None = None

    def __post_init__(self) -> None:
        self.events, self.rows = (
            EventTail(self.store.backend.read),
            EventTail(self.store.backend.read),
        )

    def look(self, step: RunStep) -> None:
        """Read what is new."""
        if step.key is None or self.manifest is not None:
            return
        place = layout.work(step.key)
        manifest = self.store.manifest(step.stage, step.key) if step.state == "made" else None
        if manifest is not None:
            place = layout.payload(*manifest.name, manifest.attempt, "telemetry")
        for event in self.events.read(f"{place}/{EVENTS_FILE}"):
            self.activity.add(event)
        if manifest is None:
            for row in self.rows.read(f"{place}/{TELEMETRY_FOLDER}/{ROWS}"):
                self.mfu = row.get("mfu", self.mfu)
            return
        self.mfu = _last_mfu(self.store, f"{place}/{TABLE}") or self.mfu
        self.read_bytes = _input_bytes(self.store, manifest.references)
        self.manifest = manifest

    def samples(self) -> Iterator[tuple[str, tuple[str, ...], float | None]]:
        """Its metrics, without the labels of the step; no value for what is not known."""
        activity = self.activity
        yield "ingot_step_last_event_time_seconds", (), activity.last_time
        if activity.starts:
            yield "ingot_step_starts_total", (), activity.starts
        for kind, count in activity.alerts.items():
            yield "ingot_step_alerts_total", (kind,), count
        for output, rows in activity.rows.items():
            yield "ingot_step_rows_total", (output,), rows
        if (progress := activity.progress) is not None:
            unit = (str(progress.get("unit") or ""),)
            yield "ingot_step_progress_done", unit, progress["done"]
            yield "ingot_step_progress_expected", unit, progress["total"]
        if activity.training.steps:
            yield from self._training()
        if self.manifest is not None:
            yield from self._committed(self.manifest)

    def _training(self) -> Iterator[tuple[str, tuple[str, ...], float | None]]:
        sums = self.activity.training
        yield "ingot_training_step", (), sums.training_step
        yield "ingot_training_steps_total", (), sums.steps
        yield "ingot_training_tokens_total", (), sums.tokens
        for cause in ("restart", "rollback"):
            yield "ingot_training_steps_lost_total", (cause,), sums.lost[cause]
        for name, metric in _VALUES.items():
            yield metric, (), sums.values.get(name)
        for source, loss in sums.held_out.items():
            yield "ingot_training_held_out_loss", (source,), loss
        yield "ingot_training_mfu_ratio", (), self.mfu

    def _committed(self, manifest: Manifest) -> Iterator[tuple[str, tuple[str, ...], float | None]]:
        for name, metric in _SUMS.items():
            value = manifest.telemetry.get(name)
            yield metric, (), value if isinstance(value, int | float) else None
        yield "ingot_step_read_bytes", (), self.read_bytes
        yield "ingot_step_written_bytes", (), manifest.size
        if (account := manifest.conservation) is not None:
            yield "ingot_step_records_in", (), account.records_in
            yield "ingot_step_records_out", (), account.out
            dropped: Counter[str] = Counter()
            for reason, count in sorted(account.dropped.items(), key=lambda item: -item[1]):
                count_bounded(dropped, reason, count)
            for reason, count in dropped.items():
                yield "ingot_step_records_dropped", (reason,), count


@dataclass(eq=False)
class StoreMetrics:
    """The metrics of a store; a collector of `prometheus_client`. Not for several threads at once.

    `recipes` are those to export, by default all that ran. `collect` raises StoreError if the store
    cannot be read: a scrape fails then, rather than say that nothing runs.
    """

    store: Store
    recipes: Sequence[str] = ()
    clock: Callable[[], float] = time.monotonic
    _records: dict[str, Run] = field(default_factory=dict)
    """Records of runs that are over, by path."""
    _steps: dict[tuple[str, str, str], _StepReader] = field(default_factory=dict)
    _metrics: tuple[float, list[Metric]] | None = None

    def collect(self) -> Iterable[Metric]:
        """Every metric now, as of at most `FRESH_SECONDS` ago."""
        now = self.clock()
        if self._metrics is None or now - self._metrics[0] > FRESH_SECONDS:
            self._metrics = now, _families(self._look())
        return self._metrics[1]

    def describe(self) -> Iterable[Metric]:
        """Nothing: a registry would otherwise read the store when this is registered."""
        return ()

    def text(self) -> bytes:
        """Every metric now, in Prometheus's text format, version 0.0.4."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def _look(self) -> list[Sample]:
        samples: list[Sample] = []
        steps: dict[tuple[str, str, str], _StepReader] = {}
        for run in self._runs():
            samples += _run_samples(run)
            for step in run.steps:
                name = (run.name, step.instance, step.key or "")
                reader = steps[name] = self._steps.get(name) or _StepReader(self.store)
                samples += self._step(run, step, reader)
        self._steps = steps  # Those of runs that are no longer exported go.
        return samples

    def _runs(self) -> Iterator[Run]:
        seen = set()
        for recipe in self.recipes or recorded_recipes(self.store):
            for place, id in enumerate(reversed(run_ids(self.store, recipe)[-RUNS:])):
                run = self._record(recipe, id)
                seen.add(layout.run(recipe, id))
                if run is not None and (place == 0 or _state(run) == "running"):
                    yield run
        self._records = {path: run for path, run in self._records.items() if path in seen}

    def _record(self, recipe: str, id: str) -> Run | None:
        path = layout.run(recipe, id)
        if path not in self._records:
            try:
                run = Run.load(self.store.backend.read(path), where=path)
            except (CorruptArtifact, FileNotFoundError):  # Removed since it was listed.
                return None
            if run.state == "running":
                return run
            self._records[path] = run
        return self._records[path]

    def _step(self, run: Run, step: RunStep, reader: _StepReader) -> Iterator[Sample]:
        if step.state in ("running", "made", "failed", "stopped"):
            with suppress(CorruptArtifact):  # `ingot verify` reports it.
                reader.look(step)
        name, _, label = step.instance.partition("[")
        labels = (run.recipe, run.id, name, label.removesuffix("]"))
        for state in STEP_STATES:
            yield "ingot_step_state", (*labels, state), state == step.state
        if step.began is not None:
            yield "ingot_step_start_time_seconds", labels, step.began
        if step.queue_seconds is not None:
            yield "ingot_step_queue_seconds", labels, step.queue_seconds
        for metric, more, value in reader.samples():
            if value is not None:
                yield metric, (*labels, *more), value


def _run_samples(run: Run) -> Iterator[Sample]:
    labels = (run.recipe, run.id)
    for state in RUN_STATES:
        yield "ingot_run_state", (*labels, state), state == _state(run)
    yield "ingot_run_start_time_seconds", labels, _seconds(run.started)
    counts = Counter(step.state for step in run.steps)
    for state in STEP_STATES:
        yield "ingot_run_steps", (*labels, state), counts.get(state, 0)  # type: ignore[call-overload]


def _state(run: Run) -> str:
    record = Record("", run.machine, run.process, run.process_started)
    return "lost" if run.state == "running" and process_is_gone(record) else run.state


def _families(samples: Iterable[Sample]) -> list[Metric]:
    """Samples by metric, in the order of `METRICS`, without metrics that have none."""
    families: dict[str, Any] = {
        name: (CounterMetricFamily if kind.counts else GaugeMetricFamily)(
            name, kind.text, labels=kind.labels
        )
        for name, kind in METRICS.items()
    }
    for name, labels, value in samples:
        families[name].add_metric(labels, value)
    return [family for family in families.values() if family.samples]


def _seconds(utc: str) -> float:
    """Seconds since 1970 of a time in a run record."""
    return float(timegm(time.strptime(utc, "%Y-%m-%dT%H:%M:%SZ")))


def _last_mfu(store: Store, path: str) -> float | None:
    """The last value in a run's table of telemetry; None where there is no table or value."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        content = store.backend.read(path)
        values = pq.read_table(io.BytesIO(content), columns=["mfu"])["mfu"].drop_null()
    except (FileNotFoundError, pa.ArrowInvalid, KeyError):
        return None
    return float(values[-1].as_py()) if len(values) else None


def _input_bytes(store: Store, references: Iterable[InputRef]) -> int | None:
    """Bytes of all inputs, those of a snapshot's files included; None if one was collected."""
    total = 0
    for reference in references:
        try:
            manifest = store.manifest(*reference.name)
            if manifest is None:
                return None
            output = manifest.output(reference.output)
            if output.kind == "snapshot":
                path = store.payload(manifest, reference.output, "snapshot.json")
                total += sum(
                    file["bytes"] for file in json.loads(store.backend.read(path))["files"]
                )
            else:
                total += output.bytes
        except (CorruptArtifact, FileNotFoundError, ValueError, KeyError, TypeError):
            return None
    return total
