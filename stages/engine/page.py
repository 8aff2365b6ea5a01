"""Figures in plain form: what is shown, not how it is drawn.

A page names its numbers and their meaning; a terminal, an HTML report or a notebook draws them.
Every plot can be written as a table, so no figure hides its data. Texts may come from
documents: the code that draws them escapes them.

A room may hold `page.py` with `page(artifact) -> list[Figure]`: what its artifact holds, and
`summary(artifact) -> list[Figure]`: the few figures worth a glance when a run ends. Both read
manifests and tables only, so a page can be made on any machine that sees the store, long after the
run. They bear no identity: a changed page leaves every key and every resume state as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Literal, cast

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input
from stages.engine.protocol import Stage

Cell = str | int | float | None


@dataclass(frozen=True)
class Column:
    """A column of a figure: its heading, how its cells are shown, and to which side they align."""

    heading: str
    format: str = ""
    align: Literal["left", "right"] = "left"

    def show(self, cell: Cell) -> str:
        """A cell as text; nothing for None. A text in a column of numbers is shown as it is."""
        if cell is None:
            return ""
        return cell if isinstance(cell, str) else format(cell, self.format)


def number(heading: str, format: str = ",") -> Column:
    """A column of numbers, aligned right."""
    return Column(heading, format, "right")


@dataclass(frozen=True)
class TableFigure:
    """A table with a title; cells are values, not text. `note` is a sentence on how to read it."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def without_empty(self) -> TableFigure:
        """The table without the columns in which no row has a value."""
        kept = [i for i in range(len(self.columns)) if any(row[i] is not None for row in self.rows)]
        columns = tuple(self.columns[i] for i in kept)
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return TableFigure(self.title, columns, rows, self.note)


def make_table(
    title: str, headings: str, rows: Iterable[Sequence[Cell]], note: str = ""
) -> TableFigure:
    """A table with its headings in one text: `source | tokens:, | share:.1%`.

    What follows a colon is the format of the cells; such a column is aligned right.
    """
    columns = []
    for text in headings.split(" | "):
        heading, colon, format = text.partition(":")
        columns.append(Column(heading, format, "right" if colon else "left"))
    return TableFigure(title, tuple(columns), tuple(map(tuple, rows)), note)


def make_facts(title: str, rows: Iterable[tuple[str, Cell]], note: str = "") -> TableFigure:
    """A table of named values, without those that are None."""
    return make_table(title, " | value:,", [row for row in rows if row[1] is not None], note)


@dataclass(frozen=True)
class TextFigure:
    """A short text with a title, such as a generated sample or a path."""

    title: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Axis:
    """What an axis shows: its label with the unit, its scale, and the format of its numbers."""

    label: str
    scale: Literal["linear", "log"] = "linear"
    format: str = ",.4g"


@dataclass(frozen=True)
class Series:
    """A named curve; None in `y` is a gap. A `faint` one is drawn below the others.

    `low` and `high` are the ends of the intervals of its points, or empty.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    faint: bool = False
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Mark:
    """Something that happened at `x`: a phase begins, a batch was skipped, a run was resumed."""

    x: float
    label: str


@dataclass(frozen=True)
class CurveFigure:
    """Curves over one axis, with events marked."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    note: str = ""

    def table(self) -> TableFigure:
        """One row for each x, one column for each curve, and two for its interval, if any."""
        points = sorted({x for series in self.series for x in series.x})
        columns, values = [number(self.x.label, self.x.format)], []
        for series in self.series:
            lines = {series.name: series.y}
            if series.low and series.high:
                lines |= {f"{series.name} from": series.low, f"{series.name} to": series.high}
            columns += [number(name, self.y.format) for name in lines]
            values += [dict(zip(series.x, line, strict=True)) for line in lines.values()]
        rows = tuple((x, *(value.get(x) for value in values)) for x in points)
        return TableFigure(self.title, tuple(columns), rows, self.note)


@dataclass(frozen=True)
class Bars:
    """One value for each label of a bar figure."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class BarFigure:
    """Horizontal bars by label; several series are grouped, or stacked."""

    title: str
    labels: tuple[str, ...]
    value: Axis
    series: tuple[Bars, ...]
    stacked: bool = False
    label: str = ""
    note: str = ""

    def table(self) -> TableFigure:
        """One row for each label, one column for each series."""
        columns = (Column(self.label), *_numbers(self.series, self.value.format))
        values = (series.values for series in self.series)
        rows = tuple(zip(self.labels, *values, strict=True))
        return TableFigure(self.title, columns, rows, self.note)


def make_bars(
    title: str,
    labels: Iterable[str],
    value: str,
    series: Mapping[str, Iterable[float | None]],
    *,
    stacked: bool = False,
    label: str = "",
    note: str = "",
) -> BarFigure:
    """Bars of named series; `value` is the label of the axis and the format: `share:.1%`."""
    axis, bars = _axis(value), _bars(series)
    return BarFigure(title, tuple(labels), axis, bars, stacked, label, note)


def _axis(value: str, scale: Literal["linear", "log"] = "linear") -> Axis:
    label, _, format = value.partition(":")
    return Axis(label, scale, format)


def _bars(series: Mapping[str, Iterable[float | None]]) -> tuple[Bars, ...]:
    return tuple(Bars(name, tuple(values)) for name, values in series.items())


@dataclass(frozen=True)
class HistogramFigure:
    """Counts between edges ([bins + 1]); several series are drawn over each other."""

    title: str
    value: Axis
    edges: tuple[float, ...]
    series: tuple[Bars, ...]
    count: str = "documents"
    note: str = ""

    def table(self) -> TableFigure:
        """One row for each bin: from, to, counts."""
        columns = (
            number(f"{self.value.label} from", self.value.format),
            number("to", self.value.format),
            *_numbers(self.series, ","),
        )
        values = (series.values for series in self.series)
        rows = tuple(zip(self.edges[:-1], self.edges[1:], *values, strict=True))
        return TableFigure(self.title, columns, rows, self.note)


def make_histogram(
    title: str,
    value: str,
    edges: Iterable[float],
    series: Mapping[str, Iterable[float]],
    *,
    scale: Literal["linear", "log"] = "linear",
    count: str = "documents",
    note: str = "",
) -> HistogramFigure:
    """Counts of named series between `edges`; `value` as for `make_bars`."""
    axis, bars = _axis(value, scale), _bars(series)
    return HistogramFigure(title, axis, tuple(edges), bars, count, note)


@dataclass(frozen=True)
class MatrixFigure:
    """A matrix of numbers with named rows and columns ([rows][columns]); None is an empty cell."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    format: str = ","
    note: str = ""

    def table(self) -> TableFigure:
        """The same numbers as a table."""
        columns = (Column(""), *(number(name, self.format) for name in self.columns))
        rows = tuple((name, *cells) for name, cells in zip(self.rows, self.values, strict=True))
        return TableFigure(self.title, columns, rows, self.note)


@dataclass(frozen=True)
class Estimate:
    """A measured value with its interval, and what chance or a baseline would give.

    `marks` are further values to compare it with, by name: what simpler methods get.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    count: int | None = None
    marks: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class IntervalFigure:
    """Estimates below each other, each with its interval; `note` says which interval it is."""

    title: str
    value: Axis
    estimates: tuple[Estimate, ...]
    note: str = ""

    def table(self) -> TableFigure:
        """One row for each estimate."""
        form = self.value.format
        marks = list(dict.fromkeys(name for e in self.estimates for name, _ in e.marks))
        names = (self.value.label, "from", "to", "baseline", *marks)
        columns = (Column(""), *(number(name, form) for name in names), number("n"))
        rows = tuple(
            (
                *(e.name, e.value, e.low, e.high, e.baseline),
                *(dict(e.marks).get(name) for name in marks),
                e.count,
            )
            for e in self.estimates
        )
        return TableFigure(self.title, columns, rows, self.note)


@dataclass(frozen=True)
class Sample:
    """An excerpt of a document: its group (such as a verdict), its heading, and facts about it."""

    group: str
    heading: str
    text: str
    facts: tuple[tuple[str, Cell], ...] = ()


@dataclass(frozen=True)
class SamplesFigure:
    """Samples, grouped by verdict, reason or form."""

    title: str
    samples: tuple[Sample, ...]
    note: str = ""


@dataclass(frozen=True)
class Part:
    """A part of a text; `differs` if the other side has another text there."""

    text: str
    differs: bool = False


@dataclass(frozen=True)
class Pair:
    """Two texts side by side, their differences marked."""

    heading: str
    left_heading: str
    right_heading: str
    left: tuple[Part, ...]
    right: tuple[Part, ...]
    facts: tuple[tuple[str, Cell], ...] = ()


@dataclass(frozen=True)
class PairsFigure:
    """Pairs of texts, such as near-duplicates."""

    title: str
    pairs: tuple[Pair, ...]
    note: str = ""


Plot = CurveFigure | BarFigure | HistogramFigure | MatrixFigure | IntervalFigure
Figure = TableFigure | TextFigure | Plot | SamplesFigure | PairsFigure


def _numbers(series: Sequence[Series] | Sequence[Bars], format: str) -> tuple[Column, ...]:
    return tuple(number(one.name, format) for one in series)


@dataclass(frozen=True)
class Artifact:
    """A committed artifact as a page sees it."""

    store: Store
    manifest: Manifest

    def output(self, name: str) -> Input:
        """One of its outputs, readable like a stage's input."""
        return Input.from_manifest(self.store, self.manifest, name, full_check=False)

    def input(self, role: str) -> list[Input]:
        """The inputs of a role; InputError if one was collected since."""
        references = self.manifest.inputs.get(role, ())
        return [Input.load(self.store, reference, full_check=False) for reference in references]

    def place(self, output: str) -> str:
        """Path or URL of an output's folder, for people."""
        return self.store.backend.full(self.store.payload(self.manifest, output))


def make_summary(stage: type[Stage], artifact: Artifact) -> Sequence[Figure]:
    """The few figures of a stage's `page.py` for the end of a run; none if it has none."""
    return _figures(stage, "summary", artifact)


def make_page(stage: type[Stage], artifact: Artifact) -> Sequence[Figure]:
    """All figures of a stage's `page.py`; none if its room has no page."""
    return _figures(stage, "page", artifact)


def _figures(stage: type[Stage], function: str, artifact: Artifact) -> Sequence[Figure]:
    package, _, module = stage.__module__.rpartition(".")
    if artifact.manifest.interim_of is not None:  # A page is about a run that is over.
        return ()
    if module != "stage" or find_spec(f"{package}.page") is None:
        return ()
    make = getattr(import_module(f"{package}.page"), function, None)
    return cast(Sequence[Figure], make(artifact)) if make is not None else ()
