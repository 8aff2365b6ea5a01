"""Figures as a page shows them: cut to what a reader can take in, numbers as text, plots drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from markupsafe import Markup

from flows.report.display import one_line, sample_evenly, visible
from flows.report.draw import EMPTY, NARROW, WIDE, page_svg
from flows.report.plots import is_empty, not_drawn
from stages.engine.page import (
    BarFigure,
    Cell,
    Column,
    CurveFigure,
    Figure,
    HistogramFigure,
    MatrixFigure,
    Pair,
    PairsFigure,
    Part,
    Plot,
    Sample,
    SamplesFigure,
    TableFigure,
    TextFigure,
)

ROWS, COLUMNS, CELL = 200, 40, 400
TEXT = 20_000
"""Characters of a text; of a sample or one side of a pair, less."""
EXCERPT = 3_000
IN_GROUP, SAMPLES, PAIRS = 12, 96, 24
CHARACTERS = 200_000
"""Of one table, or of all the samples of one figure."""
PHONE = 44
"""Characters that have room across a phone, or half of a page."""
SHORT, LONG = 24, 44
"""Characters up to which a column holds words, and beyond which it holds sentences."""
EQUAL = 280
"""Characters of an equal stretch between two differences that are shown."""


@dataclass(frozen=True)
class CellView:
    """A cell; `was` and `delta` if it differs between two runs."""

    text: str
    was: str | None = None
    delta: str = ""

    @property
    def changed(self) -> bool:
        """Whether two runs differ here."""
        return self.was is not None

    @property
    def length(self) -> int:
        """Characters of all that it shows."""
        return len(self.text) + len(self.was or "") + len(self.delta)


@dataclass(frozen=True, kw_only=True)
class View:
    """A figure of a page; `cut` says what is not shown, `half` that half a page's width will do."""

    kind: ClassVar[str]
    title: str
    note: str = ""
    cut: str = ""
    half: bool = False


@dataclass(frozen=True, kw_only=True)
class TableView(View):
    """A table; `only` names the side of a row that exists in one of two runs."""

    kind = "table"
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[CellView, ...], ...]
    only: tuple[str, ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        """Of each column: its side, and whether it holds words or sentences."""
        classes = []
        for i, (_, align) in enumerate(self.columns):
            longest = max((row[i].length for row in self.rows), default=0)
            size = "short" if longest <= SHORT else "long" if longest > LONG else "middle"
            classes.append(align if align == "right" else f"{align} {size}")
        return tuple(classes)

    @property
    def stacked(self) -> bool:
        """Whether it is wider than a phone, which then shows each row as a list of its cells."""
        return table_width(self.columns, self.rows) > PHONE


@dataclass(frozen=True, kw_only=True)
class TextView(View):
    """A text in its own lines."""

    kind = "text"
    text: str


@dataclass(frozen=True, kw_only=True)
class PlotView(View):
    """A plot for two widths, and its numbers. Without pictures, `note` says why."""

    kind = "plot"
    pictures: tuple[tuple[str, Markup], ...]
    table: TableView


@dataclass(frozen=True)
class ExcerptView:
    """A sample: heading, facts, text."""

    heading: str
    facts: tuple[tuple[str, str], ...]
    text: str
    cut: str


@dataclass(frozen=True, kw_only=True)
class SamplesView(View):
    """Samples by group."""

    kind = "samples"
    groups: tuple[tuple[str, tuple[ExcerptView, ...]], ...]


@dataclass(frozen=True)
class PairView:
    """Two texts side by side, in parts of (text, whether it differs)."""

    heading: str
    facts: tuple[tuple[str, str], ...]
    sides: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]


@dataclass(frozen=True, kw_only=True)
class PairsView(View):
    """Pairs of texts."""

    kind = "pairs"
    pairs: tuple[PairView, ...]


@dataclass
class Viewer:
    """Makes views; `place` is the folder of all data. The ids of each picture are unique."""

    place: str = ""
    drawn: int = field(default=0)

    def view(self, figure: Figure, *, widths: Sequence[int] = ()) -> View:
        """`figure` as the page shows it, a plot in `widths` (by default those that suit it)."""
        if isinstance(figure, TableFigure):
            return table_view(figure, self.place)
        if isinstance(figure, TextFigure):
            text, cut = _truncate(figure.text, TEXT)
            return TextView(title=figure.title, text=text, note=figure.note, cut=cut)
        if isinstance(figure, SamplesFigure):
            return _samples_view(figure)
        if isinstance(figure, PairsFigure):
            return _pairs_view(figure)
        table = plot_table(figure, self.place)
        return table if is_single_bar(figure) else self.plot(figure, table, widths=widths)

    def plot(
        self, figure: Plot, table: TableView, *, widths: Sequence[int] = (), paired: bool = False
    ) -> PlotView:
        """A plot with the table of its values."""
        if is_empty(figure):
            note = f"{EMPTY} {figure.note}".strip()
            return PlotView(title=figure.title, pictures=(), table=table, note=note)
        half = _is_small_plot(figure)
        pictures = []
        widths = widths or ((NARROW,) if half else (WIDE, NARROW))
        for width in widths:
            self.drawn += 1
            widest = width == max(widths)  # A phone, which gets the narrow one, has no pointer.
            prefix = f"p{self.drawn}-"
            svg = page_svg(figure, width=width, prefix=prefix, paired=paired, hover=widest)
            name = "any" if len(widths) == 1 else "wide" if widest else "narrow"
            pictures.append((name, Markup(svg)))
        return PlotView(
            title=figure.title,
            pictures=tuple(pictures),
            table=table,
            note=figure.note,
            cut=not_drawn(figure),
            half=half,
        )


def plot_table(figure: Plot, place: str) -> TableView:
    """The values of a plot as a table; of long curves every k-th."""
    note, table = "", figure.table()
    if isinstance(figure, MatrixFigure):
        return table_view(replace(table, note=""), place)
    if isinstance(figure, CurveFigure):
        events = "; ".join(f"{mark.label} at {mark.x:,.6g}" for mark in figure.marks[:40])
        note = f"Events: {events}." if events else ""
    rows, step = sample_evenly(table.rows, ROWS)
    cut = f"Every {_nth(step)} of {len(table.rows):,} rows.{_all_in(place)}" if step > 1 else ""
    return table_view(replace(table, rows=tuple(rows), note=note), place, cut)


def table_view(figure: TableFigure, place: str, cut_note: str = "") -> TableView:
    """The first rows of a table, as text; `place` is where the others are."""
    columns = figure.columns[:COLUMNS]
    rows, used = [], 0
    for row in figure.rows[:ROWS]:
        cells = tuple(CellView(format_cell(c, v)) for c, v in zip(columns, row, strict=False))
        used += sum(len(cell.text) for cell in cells)
        if used > CHARACTERS:
            break
        rows.append(cells)
    missing = []
    if len(rows) < len(figure.rows):
        missing.append(f"The first {len(rows):,} of {len(figure.rows):,} rows.{_all_in(place)}")
    if len(columns) < len(figure.columns):
        missing.append(f"The first {COLUMNS} of {len(figure.columns):,} columns.")
    headings = tuple((one_line(column.heading, CELL), column.align) for column in columns)
    return TableView(
        title=figure.title,
        columns=headings,
        rows=tuple(rows),
        note=figure.note,
        cut=" ".join([cut_note, *missing]).strip(),
        half=is_small_table(headings, rows),
    )


def is_single_bar(figure: Plot) -> bool:
    """Whether a figure has one bar, which says no more than its number."""
    return isinstance(figure, BarFigure) and len(figure.labels) * len(figure.series) <= 1


def _is_small_plot(figure: Plot) -> bool:
    """Whether a plot is readable at half the width of a page."""
    if isinstance(figure, HistogramFigure):
        return len(figure.series) <= 4
    if isinstance(figure, BarFigure):
        return len(figure.labels) * len(figure.series) <= 10 and not any(
            len(label) > 22 for label in figure.labels
        )
    return isinstance(figure, MatrixFigure) and len(figure.columns) <= 4


def is_small_table(headings: Sequence[tuple[str, str]], rows: Sequence[Sequence[CellView]]) -> bool:
    """Whether a table has room in half the width of a page."""
    return len(rows) <= 14 and table_width(headings, rows) <= PHONE


def table_width(headings: Sequence[tuple[str, str]], rows: Sequence[Sequence[CellView]]) -> int:
    """Characters of a table's widest cells side by side, three for the space between two."""
    lines = [[len(heading) for heading, _ in headings], *([c.length for c in r] for r in rows)]
    return sum(max(lengths) + 3 for lengths in zip(*lines, strict=True))


def format_cell(column: Column, cell: Cell) -> str:
    """A cell as text, also if the column's format does not fit it."""
    try:
        text = column.show(cell)
    except (ValueError, TypeError):
        text = str(cell)
    return visible(text if len(text) <= CELL else f"{text[:CELL]}…")


def facts_view(facts: Iterable[tuple[str, Cell]]) -> tuple[tuple[str, str], ...]:
    """Names and values; numbers with thousands set apart."""
    return tuple(
        (one_line(name, 80), _format_fact(value))
        for name, value in facts
        if value not in (None, "")
    )


def _format_fact(value: Cell) -> str:
    if isinstance(value, str):
        return one_line(value, CELL)
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"


def _samples_view(figure: SamplesFigure) -> SamplesView:
    groups: dict[str, list[Sample]] = {}
    for sample in figure.samples:
        groups.setdefault(sample.group, []).append(sample)
    by_group: list[tuple[str, tuple[ExcerptView, ...]]] = []
    count = used = 0
    for name, samples in groups.items():
        excerpts = []
        for sample in samples[:IN_GROUP]:
            text, cut = _truncate(sample.text, EXCERPT)
            used += len(text)
            if count < SAMPLES and used <= CHARACTERS:
                count += 1
                heading = one_line(sample.heading, 200)
                facts = facts_view(sample.facts[:24])
                excerpts.append(ExcerptView(heading, facts, text, cut))
        if excerpts:
            by_group.append((one_line(name, 120), tuple(excerpts)))
    rest = len(figure.samples) - count
    note = f"{count:,} of {len(figure.samples):,} samples are shown." if rest else ""
    return SamplesView(title=figure.title, groups=tuple(by_group), note=figure.note, cut=note)


def _pairs_view(figure: PairsFigure) -> PairsView:
    views: list[PairView] = []
    used = 0
    for pair in figure.pairs[:PAIRS]:
        view = _pair(pair)
        used += sum(len(text) for _, parts in view.sides for text, _ in parts)
        if used > CHARACTERS:
            break
        views.append(view)
    rest = len(figure.pairs) - len(views)
    note = f"{len(views):,} of {len(figure.pairs):,} pairs are shown." if rest else ""
    return PairsView(title=figure.title, pairs=tuple(views), note=figure.note, cut=note)


def _pair(pair: Pair) -> PairView:
    sides = (
        (one_line(pair.left_heading, 120), _around_differences(pair.left)),
        (one_line(pair.right_heading, 120), _around_differences(pair.right)),
    )
    return PairView(one_line(pair.heading, 200), facts_view(pair.facts), sides)


def _around_differences(parts: Sequence[Part]) -> tuple[tuple[str, bool], ...]:
    """Parts of a text with long equal stretches cut in their middle, the whole one to a limit."""
    excerpt: list[tuple[str, bool]] = []
    used = 0
    for part in parts:
        text = part.text
        if not part.differs and len(text) > 2 * EQUAL + 80:
            hidden = len(text) - 2 * EQUAL
            text = f"{text[:EQUAL]}\n… {hidden:,} equal characters …\n{text[-EQUAL:]}"
        cut = text[: EXCERPT - used]
        used += len(cut)
        excerpt.append((cut, part.differs))
        if len(cut) < len(text) or used >= EXCERPT:
            excerpt.append((" … (cut)", False))
            break
    return tuple(excerpt)


def _truncate(text: str, most: int) -> tuple[str, str]:
    """At most `most` characters of a text, and a sentence on those that were cut."""
    rest = len(text) - most
    return text[:most], f"Cut: {rest:,} more characters." if rest > 0 else ""


def _all_in(place: str) -> str:
    return f" All of them: {place}" if place else ""


def _nth(step: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(step % 10 if step % 100 not in (11, 12, 13) else 0)
    return f"{step:,}{ending or 'th'}"
