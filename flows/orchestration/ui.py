"""What Prefect's UI shows of a run: Markdown pages, the loss as a picture, a task for each step.

The loop in `flows.recipe.execute` owns the step's child process. The task only shows its events and
ends as it ends, so a server that goes away affects nothing but the display.
"""

from __future__ import annotations

import base64
import logging
import queue
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from prefect import task
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.exceptions import PrefectException
from prefect.logging import get_run_logger
from prefect.states import Cancelled

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.identity import short
from flows.recipe.plan import Plan, PlannedStep
from flows.report.display import format_reasons
from flows.report.overview import Made, flatten_figures
from stages.engine.page import (
    Artifact,
    Axis,
    CurveFigure,
    Figure,
    Series,
    TextFigure,
    make_page,
    make_summary,
)
from stages.engine.protocol import stage_named

BAR = 12
MOST_REASONS = 6


def artifact_key(name: str) -> str:
    """A name in the form that Prefect allows: lowercase letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def plan_rows(steps: Iterable[PlannedStep]) -> list[dict[str, Any]]:
    """A row for each step: its action, the cause, and its key if that is known."""
    return [
        {
            "step": step.instance,
            "action": step.action,
            "key": short(step.key or ""),
            "cause": "; ".join(part for part in (step.cause, step.note) if part),
        }
        for step in steps
    ]


def funnel_page(made: Iterable[Made]) -> str:
    """Records in and out of each step that accounts for them, and why the others were dropped."""
    rows = []
    for instance, manifest in made:
        account = manifest.conservation
        if account is not None:
            share = account.out / account.records_in if account.records_in else 0.0
            full = round(BAR * share)
            rows.append(
                (
                    instance,
                    f"{account.records_in:,}",
                    f"{account.out:,}",
                    f"{share:.1%}",
                    "█" * full + "░" * (BAR - full),
                    format_reasons(account.dropped, MOST_REASONS),
                )
            )
    return _table(("step", "in", "out", "kept", "", "dropped"), rows, right={1, 2, 3})


def figures_page(figures: Iterable[Figure]) -> str:
    """Figures as tables; samples and texts are in the report only."""
    parts = []
    for table in flatten_figures(figures):
        if isinstance(table, TextFigure):
            continue
        rows = [
            [column.show(cell) for column, cell in zip(table.columns, row, strict=True)]
            for row in table.rows
        ]
        right = {i for i, column in enumerate(table.columns) if column.align == "right"}
        body = _table([column.heading for column in table.columns], rows, right=right)
        parts.append(f"### {_plain(table.title)}\n\n{body}\n\n{_plain(table.note)}".strip())
    return "\n\n".join(parts)


def lineage_page(made: Sequence[Made]) -> str:
    """The steps' artifacts, a graph of what each was made of, and the same as a table."""
    nodes = {manifest.name: instance for instance, manifest in made}
    lines, rows = ["```mermaid", "flowchart TD"], []
    names = {node: f"n{i}" for i, node in enumerate(nodes)}
    for instance, manifest in made:
        this = names[manifest.name]
        lines.append(f'  {this}["{_label(instance)}"]')
        parents = dict.fromkeys(reference.name for reference in manifest.references)
        for parent in parents:
            if parent not in names:
                names[parent] = f"n{len(names)}"
                lines.append(f'  {names[parent]}["{_label(parent[0])}"]')
            lines.append(f"  {names[parent]} --> {this}")
        parent_names = (nodes.get(p, f"{p[0]} {short(p[1])}") for p in parents)
        key = f"`{short(manifest.key)}`"
        rows.append((instance, manifest.stage, key, ", ".join(parent_names)))
    lines.append("```")
    return "\n".join([*lines, "", _table(("step", "stage", "key", "made of"), rows, code={2})])


def committed_steps(plan: Plan) -> list[Made]:
    """The steps of a plan whose artifact exists."""
    return [(step.instance, step.manifest) for step in plan.steps if step.manifest is not None]


def format_counts(values: Mapping[str, Any]) -> str:
    """Names and numbers in a line of a log."""
    return ", ".join(
        f"{name} {value:,.4g}"
        if isinstance(value, float)
        else f"{name} {value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else f"{name} {value}"
        for name, value in values.items()
    )


def _table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: set[int] = frozenset(),  # type: ignore[assignment]
    code: set[int] = frozenset(),  # type: ignore[assignment]
) -> str:
    line = ["---:" if i in right else "---" for i in range(len(heads))]
    body = [[cell if i in code else _plain(cell) for i, cell in enumerate(row)] for row in rows]
    lines = [[_plain(head) for head in heads], line, *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _plain(text: str) -> str:
    """Text with its markup escaped; names and reasons may come from outside."""
    return re.sub(r"([\\`*<>|\[\]!&$~])", r"\\\1", " ".join(text.split()))


def _label(text: str) -> str:
    return re.sub(r"[^\w .\[\]-]", "", text)


PICTURE_SECONDS, PROGRESS_SECONDS, METRIC_SECONDS = 20.0, 2.0, 10.0
"""Least time between two updates of a picture, of a progress bar, and between two log lines."""
AWAY_SECONDS = 60.0
"""Between attempts while the API is away: each lasts as long as the client's own retries."""
AWAY = (httpx.HTTPError, PrefectException, RuntimeError, OSError)
"""The exceptions of a call to an API that does not answer."""
MOST_POINTS = 2000
LOSSES = ("loss", "held_out/")

log = logging.getLogger(__name__)


class _StepArtifact:
    """An artifact of a running step, updated at a bounded rate; rarely while the API is away."""

    seconds: float

    def __init__(self, key: str) -> None:
        self.key = key
        self._id: Any = None
        self._next = 0.0
        self._is_away = False

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last update."""
        return time.monotonic() >= self._next

    def _update(self, put: Callable[[], None]) -> None:
        """Call `put`, which sends the artifact; a failure is logged and delays the next update."""
        self._next = time.monotonic() + self.seconds
        try:
            put()
            self._is_away = False
        except Exception as error:
            self._is_away = True
            self._next = time.monotonic() + AWAY_SECONDS
            level = logging.DEBUG if isinstance(error, AWAY) else logging.WARNING
            log.log(level, "artifact %s is not shown: %s", self.key, error)


class LossPicture(_StepArtifact):
    """The loss curve of a training step, drawn from its metrics."""

    seconds = PICTURE_SECONDS

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.points: dict[str, list[tuple[float, float]]] = {}

    def add(self, metric: Mapping[str, Any]) -> None:
        """Add a metric event, and draw if the last picture is old."""
        for name, value in metric.items():
            if name.startswith(LOSSES) and isinstance(value, int | float):
                series = self.points.setdefault(name, [])
                series.append((float(metric["training_step"]), float(value)))
                if len(series) > MOST_POINTS:
                    del series[1::2]
        if self.points and self.is_due:
            self.show()

    def show(self) -> None:
        """Draw the points so far, unless the API did not answer a short time ago."""
        has_line = any(len(series) > 1 for series in self.points.values())
        if has_line and (self.is_due or not self._is_away):
            self._update(self._put)

    def _put(self) -> None:
        series = tuple(
            Series(name, tuple(x for x, _ in points), tuple(y for _, y in points))
            for name, points in self.points.items()
        )
        page = picture_page(
            CurveFigure("loss", Axis("training step", format=",.0f"), Axis("loss"), series)
        )
        if self._id is None:
            self._id = create_markdown_artifact(page, key=self.key, description="Loss")
        else:
            with get_client(sync_client=True) as client:
                client.update_artifact(self._id, ArtifactUpdate(data=page))


class ProgressArtifact(_StepArtifact):
    """The progress bar of a step."""

    seconds = PROGRESS_SECONDS

    def show(self, event: Mapping[str, Any]) -> None:
        """Show a progress event, unless one was shown a moment ago."""
        if not self.is_due or not event.get("total"):
            return
        share = 100.0 * float(event["done"]) / float(event["total"])
        label = f"{event['label']}: " if event.get("label") else ""
        text = f"{label}{event['done']:,} of {event['total']:,} {event['unit']}"
        self._update(lambda: self._put(share, text))

    def finish(self) -> None:
        """Show that the step is done."""
        if self._id is not None and not self._is_away:
            self._update(lambda: self._put(100.0, "done"))

    def _put(self, share: float, description: str) -> None:
        if self._id is None:
            self._id = create_progress_artifact(share, key=self.key, description=description)
        else:
            update_progress_artifact(self._id, share, description=description)


def picture_page(figure: CurveFigure) -> str:
    """A figure as Markdown that contains the picture itself, so that nothing is loaded for it."""
    from flows.report.draw import draw_svg

    data = base64.b64encode(draw_svg(figure).encode()).decode()
    return f"![loss](data:image/svg+xml;base64,{data})"


def loss_figure(figures: Iterable[Figure]) -> CurveFigure | None:
    """The first curve whose title names a loss."""
    curves = (figure for figure in figures if isinstance(figure, CurveFigure))
    return next((curve for curve in curves if "loss" in curve.title.lower()), None)


def loss_page(stage: str, artifact: Artifact) -> str | None:
    """The loss curve of a training step's page as a picture; None if there is none."""
    curve = loss_figure(make_page(stage_named(stage), artifact))
    return picture_page(curve) if curve is not None else None


def scores_page(stage: str, artifact: Artifact) -> str:
    """The summary of an evaluation, as tables."""
    return figures_page(make_summary(stage_named(stage), artifact))


@dataclass
class StepEnd:
    """The last message of a step."""

    error: IngotError | None = None
    counts: Mapping[str, Any] = field(default_factory=dict)


class StepMessages:
    """The messages from a step to its task; opaque to Prefect, which would copy and print them."""

    def __init__(self) -> None:
        messages: queue.SimpleQueue[dict[str, Any] | StepEnd] = queue.SimpleQueue()
        self.put, self.get = messages.put, messages.get

    def __repr__(self) -> str:
        return "events"


@task(
    name="step", task_run_name="{instance}", cache_policy=NO_CACHE, persist_result=False, retries=0
)
def follow_step(
    instance: str, stage: str, key: str, cause: str, scope: str, messages: StepMessages
) -> Any:
    """Show the events of one step until it ends; raise its error if it fails."""
    run_log = get_run_logger()
    run_log.info("%s %s: %s", stage, key[:12], cause or "missing")
    progress = ProgressArtifact(artifact_key(f"progress-{scope}-{instance}"))
    picture = LossPicture(artifact_key(f"loss-{scope}-{instance}"))
    next_line = 0.0
    while True:
        message = messages.get()
        if isinstance(message, StepEnd):
            picture.show()
            if isinstance(message.error, Stopped):
                return Cancelled(message=str(message.error))
            if message.error is not None:
                raise message.error
            progress.finish()
            run_log.info("made %s", format_counts(message.counts))
            return {"key": key, **dict(message.counts)}
        if message["type"] == "progress":
            progress.show(message)
        elif message["type"] == "job":
            run_log.info("%s", message["text"])
        elif message["type"] == "metric":
            picture.add(message)
            if time.monotonic() >= next_line:
                next_line = time.monotonic() + METRIC_SECONDS
                values = {k: v for k, v in message.items() if k not in ("type", "time")}
                run_log.info("%s", format_counts(values))
