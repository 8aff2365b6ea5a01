"""What a report shows above its steps (key facts, funnel, cost), and the summary in a terminal.

All of it follows from manifests, kinds and figures; no stage is known by name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from artifacts_schema.errors import printable, printable_text
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.report.display import finite_values, format_duration, format_reasons
from flows.report.estimates import measured
from flows.report.subject import Page, Step, Subject
from stages.engine.page import (
    Artifact,
    BarFigure,
    Cell,
    CurveFigure,
    Estimate,
    Figure,
    IntervalFigure,
    PairsFigure,
    SamplesFigure,
    TableFigure,
    TextFigure,
    make_bars,
    make_summary,
    make_table,
)
from stages.engine.protocol import stage_named

SCORES = 3
"""Number of estimates among the key facts."""
REASONS = 3
"""Number of reasons named in a line."""
MADE_OF_A_SAMPLE = {"tokenizer", "tokenizer_comparison", "ngram_model", "classifier"}
"""Kinds whose steps read a sample of the documents; they drop nothing from the corpus."""


@dataclass(frozen=True)
class Fact:
    """One key number: its label, its format, and a line on how to read it."""

    label: str
    value: float
    format: str = ",.4g"
    detail: str = ""

    @property
    def text(self) -> str:
        """The number as text."""
        return (
            format(self.value, self.format) if self.format != "s" else format_duration(self.value)
        )

    def less(self, other: Fact) -> str:
        """This one minus another, with its sign."""
        delta = self.value - other.value
        if self.format == "s":
            return f"{'+' if delta >= 0 else '-'}{format_duration(abs(delta))}"
        return format(delta, f"+{self.format}")


def facts(subject: Subject, pages: Sequence[Page]) -> list[Fact]:
    """The key facts that the artifacts of a run provide."""
    made = subject.made
    return [*_documents(made), *_training(made, pages), *_scores(subject, pages), *effort(made)]


def count_documents(steps: Sequence[Step]) -> tuple[int, int, list[str]]:
    """Records read by the steps that make documents, documents kept by the last, and the readers.

    Zeros if no step makes documents.
    """
    makers = [s for s in steps if "documents" in kinds_out(s) and manifest_of(s).conservation]
    entries = [s for s in makers if brings_documents(s)]
    decided = [s for s in makers if "documents" in kinds_in(s)]
    used = {parent for s in decided for parent in s.parents}
    last = [s for s in decided if s.instance not in used] or entries
    return _sum(entries, "records_in"), _sum(last, "out"), [s.instance for s in entries]


def brings_documents(step: Step) -> bool:
    """Whether documents enter the run here: a filter of conversations alone writes none."""
    from_records = not kinds_in(step) & {"documents", "conversations", "preferences"}
    return "documents" in kinds_out(step) and from_records


def _documents(steps: Sequence[Step]) -> list[Fact]:
    read, kept, entries = count_documents(steps)
    if not read:
        return []
    share = f"{kept / read:.1%} of what was read"
    return [
        Fact("records read", read, ",", ", ".join(entries[:4])),
        Fact("documents kept", kept, ",", share),
    ]


def _training(steps: Sequence[Step], pages: Sequence[Page]) -> list[Fact]:
    """Tokens of the longest training run, and the last value of the first curve of its page."""
    trained = [s for s in steps if "training_run" in kinds_out(s)]
    if not trained:
        return []
    longest = max(trained, key=lambda s: manifest_of(s).counts.get("tokens", 0))
    result = []
    tokens = manifest_of(longest).counts.get("tokens")
    if tokens:
        result.append(Fact("tokens trained on", tokens, ",", longest.instance))
    page = next(page for page in pages if page.step.instance == longest.instance)
    curve = next((f for f in page.figures if isinstance(f, CurveFigure)), None)
    if curve is not None and curve.series:
        series = curve.series[0]
        values = finite_values(series.y)
        if values:
            name = f"{curve.title}: {series.name}" if series.name != curve.title else curve.title
            started = f"{values[0]:,.4g} at first" if len(values) > 1 else ""
            result.append(Fact(name, values[-1], ",.4g", started))
    return result


def _scores(subject: Subject, pages: Iterable[Page]) -> list[Fact]:
    """The estimates that differ most from their baseline, in widths of their interval."""
    ranked = []
    for page in pages:
        checkpoint, precision = measured(subject, page.step)
        what = f"{checkpoint} in {precision}" if precision else checkpoint
        for figure in page.figures:
            if isinstance(figure, IntervalFigure):
                for e in figure.estimates:
                    if None not in (e.low, e.high, e.baseline) and e.high != e.low:
                        clear = abs(e.value - e.baseline) / (e.high - e.low)  # type: ignore[operator]
                        ranked.append((clear, page.step.instance, what, figure, e))
    ranked.sort(key=lambda item: -item[0])
    return [
        Fact(f"{e.name} ({instance})", e.value, figure.value.format, _reading(what, figure, e))
        for _, instance, what, figure, e in ranked[:SCORES]
    ]


def _reading(what: str, figure: IntervalFigure, e: Estimate) -> str:
    """How to read an estimate: unit, what was measured, interval, baseline."""
    show = figure.value.format
    unit = f"{figure.value.label} of {what}" if what else figure.value.label
    interval = f"95 %: {e.low:{show}}–{e.high:{show}}"
    return f"{unit}; {interval}; baseline {e.baseline:{show}}"


def effort(steps: Sequence[Step]) -> list[Fact]:
    """Seconds of all steps by the clock, CPU seconds, and GPU seconds where any were used."""
    seconds, cpu, gpu = (
        sum(_telemetry_value(step, name) for step in steps)
        for name in ("seconds", "cpu_seconds", "gpu_seconds")
    )
    if not seconds:
        return []
    results = [
        Fact("time in all steps", seconds, "s", "by the clock"),
        Fact("CPU time", cpu, "s", "of all processes"),
    ]
    return [*results, *([Fact("GPU time", gpu, "s", "GPUs held")] if gpu else [])]


# The funnel --------------------------------------------------------------------------------------


def funnel(subject: Subject) -> list[Figure]:
    """Records kept and dropped by step, and the reasons, most frequent first."""
    steps = [s for s in subject.made if manifest_of(s).conservation is not None]
    if not steps:
        return []
    accounts: Any = [(s.instance, manifest_of(s).conservation) for s in steps]
    picture = make_bars(
        "Records kept and dropped, by step",
        (name for name, _ in accounts),
        "records:,",
        {
            "kept": [account.out for _, account in accounts],
            "dropped": [account.records_in - account.out for _, account in accounts],
        },
        stacked=True,
        label="step",
        note="Every record that a step read was kept or dropped for a reason: the sums are exact. "
        "A step that reads a sample, such as tokenizer, drops nothing from the corpus.",
    )
    samplers = {s.instance for s in steps if kinds_out(s) & MADE_OF_A_SAMPLE}
    reasons = sorted(
        (
            (name, why, n)
            for name, account in accounts
            if name not in samplers
            for why, n in account.dropped.items()
        ),
        key=lambda row: (-row[2], row[0], row[1]),
    )
    rows = []
    for name, account in accounts:
        read, kept = account.records_in, account.out
        share = kept / read if read else None
        rows.append(
            (name, read, kept, read - kept, share, format_reasons(account.dropped, REASONS))
        )
    headings = "step | in:, | kept:, | dropped:, | share kept:.1% | why"
    shares = make_table("Where every record went", headings, rows)
    return [picture, _reason_bars(reasons), shares] if len(reasons) > 1 else [picture, shares]


def _reason_bars(reasons: Sequence[tuple[str, str, int]]) -> BarFigure:
    several = len({name for name, _, _ in reasons}) > 1
    labels = (f"{name}: {why}" if several else why for name, why, _ in reasons)
    counts = {"dropped": [count for _, _, count in reasons]}
    return make_bars("Why records were dropped", labels, "records:,", counts, label="reason")


# Cost and environment ----------------------------------------------------------------------------


def cost(subject: Subject) -> list[Figure]:
    """Time, memory and bytes by step, and the versions of the libraries."""
    steps = subject.made
    if not steps:
        return []
    return [_time_bars(steps), _cost_table(steps), _libraries(steps)]


def _time_bars(steps: Sequence[Step]) -> BarFigure:
    names = (step.instance for step in steps)
    series = {
        "elapsed": [_telemetry_value(step, "seconds") for step in steps],
        "CPU": [_telemetry_value(step, "cpu_seconds") for step in steps],
    }
    return make_bars("Time by step", names, "seconds:,.1f", series, label="step")


def _cost_table(steps: Sequence[Step]) -> TableFigure:
    rows: list[tuple[Cell, ...]] = [
        (
            step.instance,
            _telemetry_value(step, "seconds"),
            _telemetry_value(step, "cpu_seconds"),
            _telemetry_value(step, "gpu_seconds"),
            _telemetry_value(step, "peak_memory_bytes") / 1e6 or None,
            manifest_of(step).size / 1e6,
            manifest_of(step).count_files,
        )
        for step in steps
    ]
    columns: Any = list(zip(*rows, strict=True))
    peak = max((value for value in columns[4] if value), default=None)
    sums = [sum(columns[i]) for i in (1, 2, 3)], [sum(columns[i]) for i in (5, 6)]
    rows.append(("all steps", *sums[0], peak, *sums[1]))
    return make_table(
        "Cost by step",
        "step | seconds:,.1f | CPU seconds:,.1f | GPU seconds:,.1f | peak memory, MB:,.0f"
        " | stored, MB:,.2f | files:,",
        rows,
        "Of the run that made each artifact, which a later run may have reused: CPU seconds of all "
        "its processes, workers on other machines included, and seconds that GPUs were held. What "
        "earlier attempts at it spent, and lost, is in `ingot cost`.",
    )


def _libraries(steps: Sequence[Step]) -> TableFigure:
    versions: dict[str, dict[str, list[str]]] = {}
    for step in steps:
        for library, version in manifest_of(step).code.libraries.items():
            versions.setdefault(library, {}).setdefault(version, []).append(step.instance)
    rows = tuple(
        (library, version, ", ".join(users) if len(by_version) > 1 else f"{len(users)} steps")
        for library, by_version in sorted(versions.items())
        for version, users in sorted(by_version.items())
    )
    return make_table("Libraries that affect the outputs", "library | version | used by", rows)


def manifest_of(step: Step) -> Manifest:
    """The manifest of a step that is made."""
    assert step.manifest is not None, "called only for steps that are made"
    return step.manifest


def kinds_out(step: Step) -> set[str]:
    """Kinds of the outputs of a step that is made."""
    return {output.kind for output in manifest_of(step).outputs.values()}


def kinds_in(step: Step) -> set[str]:
    """Kinds of its inputs."""
    return {reference.kind for reference in manifest_of(step).references}


def _sum(steps: Iterable[Step], name: str) -> int:
    return sum(getattr(manifest_of(step).conservation, name) for step in steps)


def _telemetry_value(step: Step, name: str) -> float:
    value = manifest_of(step).telemetry.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


WIDTH = 110
"""Columns of text that goes to a file or a pipe."""

Made = tuple[str, Manifest]
"""A step's instance and what it made."""


def summarise(store: Store, made: Iterable[Made]) -> list[Figure]:
    """The figures of a run, in the order of its steps."""
    steps = list(made)
    records = records_table(steps)
    figures: list[Figure] = [records] if records.rows else []  # Training alone counts no records.
    for instance, manifest in steps:
        for figure in make_summary(stage_named(manifest.stage), Artifact(store, manifest)):
            figures.append(replace(figure, title=f"{instance}: {figure.title}"))
    return figures


def records_table(steps: Iterable[Made]) -> TableFigure:
    """Records in and out of each step that accounts for them, and why the others went."""
    rows = []
    for instance, manifest in steps:
        kept = manifest.conservation
        if kept is not None:
            rows.append((instance, kept.records_in, kept.out, format_reasons(kept.dropped)))
    return make_table("Where every record went", "step | in:, | out:, | dropped", rows)


def flatten_figures(figures: Iterable[Figure]) -> Iterator[TableFigure | TextFigure]:
    """Figures as a terminal shows them: a plot as its table, samples as texts, no pairs."""
    for figure in figures:
        if isinstance(figure, TableFigure | TextFigure):
            yield figure
        elif isinstance(figure, SamplesFigure):
            for sample in figure.samples:
                yield TextFigure(f"{figure.title}: {sample.heading}", sample.text)
        elif not isinstance(figure, PairsFigure):
            yield figure.table()


def figures_to_json(figures: Iterable[Figure]) -> list[dict[str, object]]:
    """Figures as JSON-ready values."""
    plain: list[dict[str, object]] = []
    for figure in flatten_figures(figures):
        if isinstance(figure, TextFigure):
            plain.append({"title": figure.title, "text": figure.text})
        else:
            headings = [column.heading for column in figure.columns]
            rows = [dict(zip(headings, row, strict=True)) for row in figure.rows]
            plain.append({"title": figure.title, "rows": rows})
    return plain


def print_figures(figures: Iterable[Figure]) -> None:
    """Print figures to the terminal as aligned tables."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, force_jupyter=False, force_terminal=sys.stdout.isatty())
    if not console.is_terminal:
        console.width = WIDTH
    for figure in flatten_figures(figures):
        console.print()
        console.print(Text(printable(figure.title), style="bold"))
        if isinstance(figure, TextFigure):
            console.print(Text(printable_text(figure.text)), soft_wrap=True)
            continue
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for column in figure.columns:
            table.add_column(printable(column.heading), justify=column.align, overflow="fold")
        for row in figure.rows:
            cells = (c.show(v) for c, v in zip(figure.columns, row, strict=True))
            table.add_row(*(Text(printable(cell)) for cell in cells))
        console.print(table)
