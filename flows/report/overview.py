"""What a report tells above its steps: key facts, the funnel, cost and environment.

All of it follows from manifests, kinds and figures; no stage is known by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from flows.report.pages import Page
from flows.report.subject import Step, Subject
from flows.report.thin import known
from stages.engine.figures import (
    Axis,
    BarFigure,
    Bars,
    Cell,
    Column,
    CurveFigure,
    Estimate,
    Figure,
    IntervalFigure,
    TableFigure,
    number,
)

SCORES = 3
"""Estimates among the key facts: those that stand clearest off their baseline."""
REASONS = 3
"""Reasons named in a line."""
MADE_OF_A_SAMPLE = {"tokenizer", "tokenizer_comparison", "ngram_model", "classifier"}
"""Kinds whose steps read a sample of the documents; what they leave out stays in the corpus."""


@dataclass(frozen=True)
class Fact:
    """One number worth a glance: its label, how it is shown, and a line on how to read it."""

    label: str
    value: float
    format: str = ",.4g"
    detail: str = ""

    @property
    def shown(self) -> str:
        """The number as text."""
        return format(self.value, self.format) if self.format != "s" else duration(self.value)

    def less(self, other: Fact) -> str:
        """This one minus another, with its sign."""
        delta = self.value - other.value
        if self.format == "s":
            return f"{'+' if delta >= 0 else '-'}{duration(abs(delta))}"
        return format(delta, f"+{self.format}")


def facts(subject: Subject, pages: Sequence[Page]) -> list[Fact]:
    """The key facts of a run, those that its artifacts have."""
    made = subject.made
    return [
        *_documents(made),
        *_training(made, pages),
        *_scores(subject, pages),
        *_effort(made),
    ]


def _documents(steps: Sequence[Step]) -> list[Fact]:
    """Records read where documents are made of something else, and what the last step kept."""
    makers = [s for s in steps if "documents" in _kinds_out(s) and _manifest(s).conservation]
    entries = [s for s in makers if "documents" not in _kinds_in(s)]
    decided = [s for s in makers if "documents" in _kinds_in(s)]
    used = {parent for s in decided for parent in s.parents}
    last = [s for s in decided if s.instance not in used] or entries
    read, kept = _sum(entries, "records_in"), _sum(last, "out")
    if not read:
        return []
    share = f"{kept / read:.1%} of what was read"
    return [
        Fact("records read", read, ",", ", ".join(s.instance for s in entries[:4])),
        Fact("documents kept", kept, ",", share),
    ]


def _training(steps: Sequence[Step], pages: Sequence[Page]) -> list[Fact]:
    """Tokens of the longest training run, and where the first curve of its page ended."""
    trained = [s for s in steps if "training_run" in _kinds_out(s)]
    if not trained:
        return []
    longest = max(trained, key=lambda s: _manifest(s).counts.get("tokens", 0))
    found = []
    tokens = _manifest(longest).counts.get("tokens")
    if tokens:
        found.append(Fact("tokens trained on", tokens, ",", longest.instance))
    page = next(page for page in pages if page.step.instance == longest.instance)
    curve = next((f for f in page.figures if isinstance(f, CurveFigure)), None)
    if curve is not None and curve.series:
        series = curve.series[0]
        values = known(series.y)
        if values:
            name = f"{curve.title}: {series.name}" if series.name != curve.title else curve.title
            started = f"{values[0]:,.4g} at first" if len(values) > 1 else ""
            found.append(Fact(name, values[-1], ",.4g", started))
    return found


def _scores(subject: Subject, pages: Iterable[Page]) -> list[Fact]:
    """Of all estimates with an interval and a baseline, those that stand clearest off it."""
    found = []
    for page in pages:
        measured = _measured(subject, page.step)
        for figure in page.figures:
            if isinstance(figure, IntervalFigure):
                for e in figure.estimates:
                    if None not in (e.low, e.high, e.baseline) and e.high != e.low:
                        clear = abs(e.value - e.baseline) / (e.high - e.low)  # type: ignore[operator]
                        found.append((clear, page.step.instance, measured, figure, e))
    found.sort(key=lambda item: -item[0])
    return [
        Fact(
            f"{e.name} ({instance})",
            e.value,
            figure.value.format,
            _reading(measured, figure, e),
        )
        for _, instance, measured, figure, e in found[:SCORES]
    ]


def _measured(subject: Subject, step: Step) -> str:
    """`pretrain in float32`: the checkpoint that a step's estimates are of, and their precision."""
    if step.manifest is None:
        return ""
    names = {(s.stage, s.key): s.instance for s in subject.steps}
    checkpoints = [
        names.get((reference.stage, reference.key), f"{reference.stage} {short(reference.key)}")
        for references in step.manifest.inputs.values()
        for reference in references
        if reference.kind == "checkpoint"
    ]
    dtype = step.manifest.layout.get("dtype")
    return " ".join([*checkpoints, *([f"in {dtype}"] if dtype else [])])


def _reading(measured: str, figure: IntervalFigure, e: Estimate) -> str:
    """How to read an estimate: unit, what was measured, interval, baseline."""
    show = figure.value.format
    unit = f"{figure.value.label} of {measured}" if measured else figure.value.label
    interval = f"95 %: {e.low:{show}}–{e.high:{show}}"
    return f"{unit}; {interval}; baseline {e.baseline:{show}}"


def _effort(steps: Sequence[Step]) -> list[Fact]:
    seconds = sum(_told(step, "seconds") for step in steps)
    cpu = sum(_told(step, "cpu_seconds") for step in steps)
    gpu = sum(_told(step, "gpu_seconds") for step in steps)
    spent = f"{duration(cpu)} of CPU" + (f", {duration(gpu)} of GPU" if gpu else "")
    return [Fact("work in all steps", seconds, "s", spent)] if seconds else []


# The funnel --------------------------------------------------------------------------------------


def funnel(subject: Subject) -> list[Figure]:
    """Records kept and dropped by step, and the reasons, most frequent first."""
    steps = [s for s in subject.made if _manifest(s).conservation is not None]
    if not steps:
        return []
    accounts: Any = [(s.instance, _manifest(s).conservation) for s in steps]
    picture = BarFigure(
        "Records kept and dropped, by step",
        tuple(name for name, _ in accounts),
        Axis("records", format=","),
        (
            Bars("kept", tuple(a.out for _, a in accounts)),
            Bars("dropped", tuple(a.records_in - a.out for _, a in accounts)),
        ),
        stacked=True,
        label="step",
        note="Every record that a step read was kept or dropped for a reason: the sums are exact. "
        "A step that reads a sample, such as `tokenizer`, drops nothing from the corpus.",
    )
    samplers = {s.instance for s in steps if _kinds_out(s) & MADE_OF_A_SAMPLE}
    reasons = sorted(
        (
            (name, why, n)
            for name, account in accounts
            if name not in samplers
            for why, n in account.dropped.items()
        ),
        key=lambda row: (-row[2], row[0], row[1]),
    )
    shares = TableFigure(
        "Where every record went",
        (
            Column("step"), number("in"), number("kept"), number("dropped"),
            number("share kept", ".1%"), Column("why"),
        ),
        tuple(
            (name, a.records_in, a.out, a.records_in - a.out, _share(a), _reasons(a.dropped))
            for name, a in accounts
        ),
    )  # fmt: skip
    figures: list[Figure] = [picture, shares]
    if len(reasons) > 1:
        figures.insert(1, _reason_bars(reasons))
    return figures


def _reason_bars(reasons: Sequence[tuple[str, str, int]]) -> BarFigure:
    several = len({name for name, _, _ in reasons}) > 1
    return BarFigure(
        "Why records were dropped",
        tuple(f"{name}: {why}" if several else why for name, why, _ in reasons),
        Axis("records", format=","),
        (Bars("dropped", tuple(n for _, _, n in reasons)),),
        label="reason",
    )


def _share(account: Any) -> float | None:
    return account.out / account.records_in if account.records_in else None


def _reasons(dropped: dict[str, int]) -> str:
    by_count = sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
    rest = f" and {len(by_count) - REASONS} more" if len(by_count) > REASONS else ""
    return ", ".join(f"{reason} {count:,}" for reason, count in by_count[:REASONS]) + rest


# Cost and environment ----------------------------------------------------------------------------


def cost(subject: Subject) -> list[Figure]:
    """Time, memory and bytes by step, and the versions of what made them."""
    steps = subject.made
    if not steps:
        return []
    return [_time_bars(steps), _cost_table(steps), _libraries(steps)]


def _time_bars(steps: Sequence[Step]) -> BarFigure:
    return BarFigure(
        "Time by step",
        tuple(step.instance for step in steps),
        Axis("seconds", format=",.1f"),
        (
            Bars("elapsed", tuple(_told(step, "seconds") for step in steps)),
            Bars("CPU", tuple(_told(step, "cpu_seconds") for step in steps)),
        ),
        label="step",
    )


def _cost_table(steps: Sequence[Step]) -> TableFigure:
    rows: list[tuple[Cell, ...]] = [
        (
            step.instance,
            _told(step, "seconds"),
            _told(step, "cpu_seconds"),
            _told(step, "gpu_seconds"),
            _told(step, "peak_memory_bytes") / 1e6 or None,
            sum(output.bytes for output in _manifest(step).outputs.values()) / 1e6,
            sum(len(output.files) for output in _manifest(step).outputs.values()),
        )
        for step in steps
    ]
    columns: Any = list(zip(*rows, strict=True))
    peak = max((value for value in columns[4] if value), default=None)
    sums = [sum(columns[i]) for i in (1, 2, 3)], [sum(columns[i]) for i in (5, 6)]
    rows.append(("all steps", *sums[0], peak, *sums[1]))
    return TableFigure(
        "Cost by step",
        (
            Column("step"), number("seconds", ",.1f"), number("CPU seconds", ",.1f"),
            number("GPU seconds", ",.1f"),
            number("peak memory, MB", ",.0f"), number("stored, MB", ",.2f"), number("files"),
        ),
        tuple(rows),
        "Of the run that made each artifact, which a later run may have reused: CPU seconds of all "
        "its processes, workers on other machines included, and seconds that GPUs were held. What "
        "a killed run spent before it was resumed is not in them.",
    )  # fmt: skip


def _libraries(steps: Sequence[Step]) -> TableFigure:
    versions: dict[str, dict[str, list[str]]] = {}
    for step in steps:
        for library, version in _manifest(step).code.libraries.items():
            versions.setdefault(library, {}).setdefault(version, []).append(step.instance)
    rows = tuple(
        (library, version, ", ".join(users) if len(found) > 1 else f"{len(users)} steps")
        for library, found in sorted(versions.items())
        for version, users in sorted(found.items())
    )
    columns = (Column("library"), Column("version"), Column("used by"))
    return TableFigure("Libraries that bear on the outputs", columns, rows)


def duration(seconds: float) -> str:
    """Seconds for people: `4.2 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _manifest(step: Step) -> Manifest:
    assert step.manifest is not None, "asked only of steps that are made"
    return step.manifest


def _kinds_out(step: Step) -> set[str]:
    return {output.kind for output in _manifest(step).outputs.values()}


def _kinds_in(step: Step) -> set[str]:
    return {r.kind for references in _manifest(step).inputs.values() for r in references}


def _sum(steps: Iterable[Step], name: str) -> int:
    return sum(getattr(_manifest(step).conservation, name) for step in steps)


def _told(step: Step, name: str) -> float:
    value = _manifest(step).telemetry.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
