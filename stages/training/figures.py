"""Curves over a training run: what pretrain, sft and dpo show of the steps they took."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from artifacts_schema.store import layout
from stages.engine.events import EVENTS_FILE
from stages.engine.page import (
    Artifact,
    Axis,
    Cell,
    CurveFigure,
    Figure,
    Mark,
    Series,
    TableFigure,
    make_facts,
    make_table,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from stages.engine.page import Artifact

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

RAW = " of a step"
"""End of the name of a curve that is not smoothed."""
POINTS = 5_000
"""Points of a curve at most; what is left out lies between the lowest and highest kept nearby."""

WINDOWS = 200
"""Stretches of training steps over which the speed of a run is averaged."""

SKIPS_MARKED = 100

LOSS = Axis("loss, nats", format=".4f")


class TrainingRun:
    """A committed training run over one axis; columns of its metrics are read one at a time."""

    def __init__(self, artifact: Artifact, axis: Literal["tokens", "training_step"]) -> None:
        self.artifact = artifact
        self.output = artifact.output("training_run")
        self.account: dict[str, Any] = self.output.read_json("run.json")
        self.axis_column = axis
        self.axis = Axis(axis.replace("_", " "), format=",.0f")
        self.steps, self.x = self.metric("training_step"), self.metric(axis)

    def metric(self, name: str) -> Floats:
        """A column of `metrics.parquet`; NaN where it holds nothing."""
        table = self.output.read_table("metrics.parquet", [name])
        column: Floats = table[name].to_numpy().astype("float64")
        return column

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of `metrics.parquet`."""
        first = next(self.output.row_groups("metrics.parquet"), None)
        return tuple(first.schema.names) if first is not None else ()

    def named(self, prefix: str) -> tuple[str, ...]:
        """What follows `prefix` in the names of columns: sources, languages."""
        return tuple(n.removeprefix(prefix) for n in self.columns if n.startswith(prefix))

    @cached_property
    def window(self) -> int:
        """Training steps that a smoothed curve averages over: about 2 % of the run, odd."""
        steps = len(self.steps)
        return 1 if steps < 20 else max(5, steps // 50) | 1

    @cached_property
    def telemetry(self) -> Telemetry:
        """Speed and resumptions, as the events of the run tell them."""
        return Telemetry.from_events(_events(self.artifact), len(self.steps))

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """Where phases begin, permanent checkpoints were kept, updates were skipped (the first of
        them), and where the run continued after a rollback or a restart."""
        import numpy as np

        phases = self.metric("phase")
        begins = np.flatnonzero(np.diff(phases)) + 1
        skipped = np.flatnonzero(self.metric("skipped"))
        results = [Mark(float(self.x[i]), f"phase {int(phases[i]) + 1}") for i in begins]
        results += [Mark(float(self.x[i]), "update skipped") for i in skipped[:SKIPS_MARKED]]
        rolled_back = [first for first, _ in self.account.get("left_out_training_steps", ())]
        happened = [
            *(("rolled back", step) for step in rolled_back),
            *(("resumed", step) for step in self.telemetry.resumed_at),
            *((f"kept @{one.label}", one.at) for one in self.artifact.manifest.interims),
        ]
        for name, step in happened:
            row = min(int(np.searchsorted(self.steps, step)), len(self.x) - 1)
            results.append(Mark(float(self.x[row]), name))
        return tuple(sorted(results, key=lambda mark: mark.x))

    def curve(
        self,
        title: str,
        y: Axis,
        curves: Mapping[str, Floats],
        *,
        levels: Mapping[str, float] | None = None,
        more: Sequence[Series] = (),
        note: str = "",
    ) -> list[Figure]:
        """One figure of `curves` (values by training step) with the run's marks.

        `levels` are horizontal lines, `more` are series with an x of their own. Nothing comes of
        curves without a finite value.
        """
        import numpy as np

        drawable = {name: _drawable(values, y) for name, values in curves.items()}
        drawable = {name: values for name, values in drawable.items() if np.isfinite(values).any()}
        if not drawable:
            return []
        rows = kept_rows(list(drawable.values()), POINTS)
        series = [
            _series(name, self.x[rows], curve[rows], faint=name.endswith(RAW) and len(drawable) > 1)
            for name, curve in drawable.items()
        ]
        series += more
        ends = (float(self.x[0]), float(self.x[-1]))
        series += [Series(name, ends, (level, level)) for name, level in (levels or {}).items()]
        if len(rows) < len(self.x):
            note += f" {len(rows):,} of {len(self.x):,} steps are drawn, highs and lows kept."
        return [CurveFigure(title, self.axis, y, tuple(series), self.marks, note.strip())]

    def raw_and_smoothed(self, name: str, column: str) -> dict[str, Floats]:
        """A metric as it is, and its running mean where the run is long enough for one."""
        raw = self.metric(column)
        curves = {f"{name}{RAW}": raw}
        if self.window > 1:
            curves[f"mean over {self.window:,} steps"] = smoothed(raw, self.window)
        return curves

    def held_out(
        self, value: str, by: Literal["source", "language"] = "source"
    ) -> dict[str, Series]:
        """`loss` or `bits_per_byte` on held-out data by source or by language.

        Of a single source, only the series `all`.
        """
        import pyarrow.compute as pc

        names = [self.axis_column, "source", "language", value]
        table = self.output.read_table("held_out.parquet", names)
        of_language = pc.is_valid(table["language"])
        chosen = of_language if by == "language" else pc.invert(of_language)
        table = table.filter(pc.and_(chosen, pc.is_valid(table[value])))
        results = {}
        for name in sorted(table[by].unique().to_pylist()):
            part = table.filter(pc.equal(table[by], name))
            x, y = (part[name].to_numpy().astype("float64") for name in (self.axis_column, value))
            rows = kept_rows([y], POINTS)
            results[name] = _series(name or "(none)", x[rows], y[rows])
        if by == "source" and len(results) <= 2 and "all" in results:
            return {"all": results["all"]}
        return results


def loss(run: TrainingRun, title: str, note: str, **levels: float) -> list[Figure]:
    """Loss of each step, its running mean, and that on held-out data."""
    measured = run.held_out("loss").get("all")
    held_out = [Series("held out", measured.x, measured.y)] if measured else []
    curves = run.raw_and_smoothed("loss", "loss")
    return run.curve(title, LOSS, curves, levels=levels, more=held_out, note=note)


def loss_by_source(run: TrainingRun) -> list[Figure]:
    """Running mean of the loss of each source, every target counting alike."""
    sources = run.named("loss/")
    if len(sources) < 2:
        return []
    curves = {
        source: smoothed(run.metric(f"loss/{source}"), run.window, run.metric(f"targets/{source}"))
        for source in sources
    }
    note = f"Mean over the targets of {run.window:,} training steps around each point."
    return run.curve("Training loss by source, nats", LOSS, curves, note=note)


def learning_rate(run: TrainingRun) -> list[Figure]:
    """The schedule as it was followed."""
    curves = {"learning rate": run.metric("learning_rate")}
    return run.curve("Learning rate", Axis("learning rate", format=".3g"), curves)


def gradient_norm(run: TrainingRun) -> list[Figure]:
    """Global gradient norm before clipping, on a logarithmic scale."""
    clip = run.artifact.manifest.config.get("optimizer", {}).get("clip")
    note = "Before clipping. A spike is a batch that pulls hard; one that is not finite is skipped."
    return run.curve(
        "Gradient norm",
        Axis("gradient norm", "log", ".3g"),
        run.raw_and_smoothed("norm", "grad_norm"),
        levels={"clipped at": clip} if clip else None,
        note=note,
    )


def throughput(run: TrainingRun) -> list[Figure]:
    """Tokens per second over the run; none where the run left no events."""
    import numpy as np

    last, speed = run.telemetry.last_steps, run.telemetry.tokens_per_second
    if not speed:
        return []
    rows = np.minimum(np.searchsorted(run.steps, last), len(run.x) - 1)
    note = (
        f"Training steps averaged for a point: {run.telemetry.window:,}. Writing of checkpoints is "
        "included; held-out measurement and the time from a kill to the next start are not."
    )
    x = tuple(run.x[rows].tolist())
    y = Axis("tokens/s", format=",.0f")
    series = (Series("tokens/s", x, speed),)
    return [CurveFigure("Throughput, tokens per second", run.axis, y, series, run.marks, note)]


def run_facts(run: TrainingRun, *more: tuple[str, Cell]) -> TableFigure:
    """How far the run went, what it lost on the way, and how fast it was."""
    telemetry = run.artifact.manifest.telemetry
    speed, layout_ = telemetry.get("tokens_per_second"), run.artifact.manifest.layout
    losses = smoothed(run.metric("loss"), run.window)
    rows: list[tuple[str, Cell]] = [
        ("training steps", run.account["training_steps"]),
        ("tokens read", run.account["tokens"]),
        ("updates skipped", run.account["skipped_updates"]),
        *more,
        ("loss at the end, nats", _rounded(losses[-1]) if len(losses) else None),
        ("times resumed", len(run.telemetry.resumed_at) if run.telemetry.present else None),
        ("tokens per second", None if speed is None else round(speed)),
        ("device", layout_.get("device")),
        ("precision", layout_.get("precision")),
    ]
    note = f"The loss is the mean over the last {run.window // 2 + 1:,} steps."
    return make_facts("Run", rows, note)


def examples_table(title: str, account: Mapping[str, Any], *more: tuple[str, Cell]) -> TableFigure:
    """How many examples were learnt, held out, cut and left out; what was not used."""
    from stages.training.examples import unused_rows

    rows = (
        ("learnt", account["train"]),
        ("held out", account["held_out"]),
        ("of these cut to the context", account["truncated"]),
        ("left out: longer than the context", account["too_long"]),
        ("left out: nothing to learn", account["nothing_to_learn"]),
        *more,
        *unused_rows(account),
    )
    return make_table(title, " | count:,", rows)


def optimizer_and_speed(run: TrainingRun) -> list[Figure]:
    """What every run shows after its losses: learning rate, gradient norm, throughput."""
    return [*learning_rate(run), *gradient_norm(run), *throughput(run)]


def kept_rows(curves: Sequence[Floats], most: int) -> Ints:
    """Rows to draw of curves over one axis, at most `most`; all if they are few.

    The first and the last, and of equal stretches the lowest, the highest and the first missing
    value of every curve, so that no spike and no gap is lost.
    """
    import numpy as np

    rows = len(curves[0])
    if rows <= most:
        return np.arange(rows)
    kept = {0, rows - 1}
    stretches = max(1, (most - 2) // (3 * len(curves)))
    edges = np.linspace(0, rows, stretches + 1).astype(int).tolist()
    for curve in curves:
        finite = np.isfinite(curve)
        low, high = np.where(finite, curve, np.inf), np.where(finite, curve, -np.inf)
        for start, stop in pairwise(edges):
            kept.add(start + int(low[start:stop].argmin()))
            kept.add(start + int(high[start:stop].argmax()))
            kept.add(start + int(finite[start:stop].argmin()))
    return np.array(sorted(kept))


def smoothed(values: Floats, window: int, weights: Floats | None = None) -> Floats:
    """Weighted mean over `window` values around each, fewer at the ends; what is not finite is out.

    NaN where nothing in the window is finite.
    """
    import numpy as np

    weights = np.ones(len(values)) if weights is None else weights
    counted = np.isfinite(values) & np.isfinite(weights)
    weights = np.where(counted, weights, 0.0)
    sums = np.concatenate([[0.0], np.cumsum(np.where(counted, values, 0.0) * weights)])
    totals = np.concatenate([[0.0], np.cumsum(weights)])
    rows = np.arange(len(values))
    start = np.maximum(rows - window // 2, 0)
    stop = np.minimum(rows + window // 2 + 1, len(values))
    total = totals[stop] - totals[start]
    mean: Floats = np.full(len(values), np.nan)
    np.divide(sums[stop] - sums[start], total, out=mean, where=total > 0)
    return mean


@dataclass(frozen=True)
class Telemetry:
    """What the events of a run tell: tokens/s over windows of training steps, and resumptions."""

    present: bool
    window: int
    last_steps: tuple[int, ...]
    tokens_per_second: tuple[float, ...]
    resumed_at: tuple[int, ...]

    @classmethod
    def from_events(cls, events: Iterator[Mapping[str, Any]], steps: int) -> Telemetry:
        """Fold events, oldest first, of a run of `steps` training steps.

        The time of a step is that since the last number before it, in the same process; so
        held-out measurement, which tells its numbers at its end, counts for no step.
        """
        window = max(1, -(-steps // WINDOWS))
        tokens, seconds = [0.0] * (WINDOWS + 1), [0.0] * (WINDOWS + 1)
        resumed: list[int] = []
        starts, fresh = 0, False
        time: float | None = None
        before: int | None = None
        for event in events:
            if event["type"] == "started":
                starts, fresh, time, before = starts + 1, True, None, None
                continue
            step, read = event.get("training_step"), event.get("tokens")
            if step is None:
                continue
            if read is not None:
                if fresh and starts > 1:
                    resumed.append(step)
                place = min((step - 1) // window, WINDOWS)
                before = 0 if step == 1 else before
                forward = before is not None and read > before  # A rollback leads back.
                if time is not None and forward and event["time"] > time:
                    tokens[place] += read - (before or 0)
                    seconds[place] += event["time"] - time
                before, fresh = read, False
            time = event["time"]
        measured = [place for place, value in enumerate(seconds) if value > 0]
        return cls(
            present=starts > 0,
            window=window,
            last_steps=tuple(min((place + 1) * window, steps) for place in measured),
            tokens_per_second=tuple(tokens[place] / seconds[place] for place in measured),
            resumed_at=tuple(resumed),
        )


def _events(artifact: Artifact) -> Iterator[dict[str, Any]]:
    """`started` and `metric` events of the run; a line that a kill cut short is left out."""
    made, backend = artifact.manifest, artifact.store.backend
    path = f"{layout.payload(made.stage, made.key, made.attempt, 'telemetry')}/{EVENTS_FILE}"
    size = backend.size(path)
    if size is None:
        return
    for line in _lines(backend.blocks(path, size)):
        if b'"started"' in line:  # maybe behind what a kill left of another line
            yield {"type": "started"}
        elif b'"metric"' in line:
            try:
                yield json.loads(line)
            except ValueError:
                continue


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    yield rest


def _drawable(values: Floats, y: Axis) -> Floats:
    """Values with NaN for what has no place on the axis."""
    import numpy as np

    labels = np.isfinite(values)
    if y.scale == "log":
        labels &= values > 0
    return np.where(labels, values, np.nan)


def _series(name: str, x: Floats, y: Floats, *, faint: bool = False) -> Series:
    values = tuple(value if math.isfinite(value) else None for value in y.tolist())
    return Series(name, tuple(x.tolist()), values, faint)


def _rounded(value: float) -> Cell:
    return round(float(value), 4) if math.isfinite(value) else "not finite"
