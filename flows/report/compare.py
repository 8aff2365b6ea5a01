"""Two runs side by side: which steps are the same, why the others are not, what their figures say.

A is the run that is compared against, B the one that the report is of; differences are B − A.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from artifacts_schema.manifest import Manifest
from flows.recipe.plan import config_changes, drop_new_defaults, input_changes
from flows.report.overview import Fact
from flows.report.subject import Step, Subject, explain_absence
from flows.report.views import CELL, COLUMNS, ROWS, CellView, TableView, format_cell, is_small_table
from stages.engine.page import (
    BarFigure,
    Bars,
    Cell,
    Column,
    CurveFigure,
    Estimate,
    Figure,
    HistogramFigure,
    IntervalFigure,
    Plot,
    Series,
    TableFigure,
)

A, B = "A", "B"


@dataclass(frozen=True)
class StepPair:
    """A step of both runs, or of one."""

    a: Step | None
    b: Step | None
    changes: tuple[str, ...] = ()

    @property
    def any(self) -> Step:
        """The step as B has it, else as A has it."""
        return cast(Step, self.b or self.a)

    @property
    def same(self) -> bool:
        """Whether both runs have the same artifact."""
        a, b = self.a, self.b
        return bool(a and b and a.manifest and b.manifest and a.key == b.key)

    @property
    def verdict(self) -> str:
        """same, changed, only in A, only in B."""
        if self.a is None or self.b is None:
            return f"only in {B if self.a is None else A}"
        return "same" if self.same else "changed"


def align(a: Subject, b: Subject) -> list[StepPair]:
    """Steps by instance, in B's order; those that only A has come last.

    If both sides have exactly one unmatched step of a stage, these two are matched.
    """
    mine, theirs = list(b.steps), {step.instance: step for step in a.steps}
    matched = {step.instance: theirs.pop(step.instance, None) for step in mine}
    for step in mine:
        alone = [s for s in theirs.values() if s.stage == step.stage]
        unmatched = [s for s in mine if s.stage == step.stage and matched[s.instance] is None]
        if matched[step.instance] is None and len(alone) == len(unmatched) == 1:
            matched[step.instance] = theirs.pop(alone[0].instance)
    names = _names(a) | _names(b)
    pairs = [_pair(matched[step.instance], step, names) for step in mine]
    return pairs + [_pair(step, None, names) for step in theirs.values()]


def _names(subject: Subject) -> dict[str, str]:
    """Digest → the step that made it."""
    return {
        output.digest: step.instance
        for step in subject.steps
        if step.manifest is not None
        for output in step.manifest.outputs.values()
    }


def _pair(a: Step | None, b: Step | None, names: Mapping[str, str]) -> StepPair:
    if a is None or b is None:
        return StepPair(a, b)
    if a.manifest is None or b.manifest is None:
        sides = [(A, a), (B, b)]
        return StepPair(
            a,
            b,
            tuple(f"in {side}: {explain_absence(s)}" for side, s in sides if s.manifest is None),
        )
    return StepPair(a, b, tuple(_why(a.manifest, b.manifest, names)))


def _why(a: Manifest, b: Manifest, names: Mapping[str, str]) -> Iterator[str]:
    if (a.stage, a.version) != (b.stage, b.version):
        yield f"{a.stage} version {a.version} → {b.stage} version {b.version}"
    before = drop_new_defaults(a.config, a.identity, b.config)
    after = drop_new_defaults(b.config, b.identity, a.config)
    yield from (f"config {change}" for change in config_changes(before, after))
    yield from input_changes(a.inputs, b.inputs, names)
    if a.code.digest != b.code.digest:
        yield f"code {a.code.digest[:12]} → {b.code.digest[:12]}"
    yield from (
        f"library {change}" for change in config_changes(a.code.libraries, b.code.libraries)
    )
    yield from (f"layout {change}" for change in config_changes(a.layout, b.layout))
    same = [name for name, o in b.outputs.items() if _digest(a, name) == o.digest]
    if a.key != b.key and len(same) == len(b.outputs):
        yield "its output is equal, byte for byte"


def _digest(manifest: Manifest, name: str) -> str | None:
    return manifest.outputs[name].digest if name in manifest.outputs else None


# Figures -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FigurePair:
    """A figure of both runs, or of one; `overlay` has both in one plot, if they fit."""

    a: Figure | None
    b: Figure | None
    overlay: Plot | None = None

    @property
    def any(self) -> Figure:
        """The figure as B has it, else as A has it."""
        return cast(Figure, self.b if self.b is not None else self.a)


def pair_figures(a: Sequence[Figure], b: Sequence[Figure]) -> list[FigurePair]:
    """Figures of one kind and title (numbers in titles may differ), in B's order, then A's rest."""
    left: dict[Any, list[Figure]] = {}
    for figure in a:
        left.setdefault(_identity(figure), []).append(figure)
    pairs = []
    for figure in b:
        candidates = left.get(_identity(figure))
        other = candidates.pop(0) if candidates else None
        pairs.append(FigurePair(other, figure, overlay(other, figure) if other else None))
    rest = {id(figure) for figures in left.values() for figure in figures}
    return pairs + [FigurePair(figure, None) for figure in a if id(figure) in rest]


def _identity(figure: Figure) -> tuple[type, str]:
    return type(figure), re.sub(r"\d[\d,.]*", "#", figure.title)


def overlay(a: Figure, b: Figure) -> Plot | None:
    """Both runs in one plot: series as A, B, A, B, …; None if the figures cannot be overlaid."""
    if a == b:
        return None
    if isinstance(a, CurveFigure) and isinstance(b, CurveFigure) and a.x == b.x:
        marks = tuple(m for m in a.marks if m in b.marks)
        marks += tuple(replace(m, label=f"{m.label} · {A}") for m in a.marks if m not in b.marks)
        marks += tuple(replace(m, label=f"{m.label} · {B}") for m in b.marks if m not in a.marks)
        return replace(b, series=_interleaved(a.series, b.series, Series("", (), ())), marks=marks)
    if isinstance(a, BarFigure) and isinstance(b, BarFigure) and not (a.stacked or b.stacked):
        labels = tuple(dict.fromkeys((*b.labels, *a.labels)))
        series = _interleaved(_spread(a, labels), _spread(b, labels), _empty(len(labels)))
        return replace(b, labels=labels, series=series) if len(series) <= 4 else None
    if isinstance(a, HistogramFigure) and isinstance(b, HistogramFigure):
        if a.edges == b.edges and len(a.series) == len(b.series) == 1:
            empty = _empty(len(b.edges) - 1)
            return replace(b, series=_interleaved(a.series, b.series, empty))
    elif isinstance(a, IntervalFigure) and isinstance(b, IntervalFigure):
        missing = Estimate("", float("nan"))
        return replace(b, estimates=_interleaved(a.estimates, b.estimates, missing))
    return None


def _interleaved(a: Sequence[Any], b: Sequence[Any], empty: Any) -> tuple[Any, ...]:
    """Series or estimates of both by name, A before B, an empty one where a side has none."""
    before, after = {s.name: s for s in a}, {s.name: s for s in b}
    return tuple(
        replace(side.get(name, empty), name=f"{name} · {letter}")
        for name in dict.fromkeys([*after, *before])
        for letter, side in ((A, before), (B, after))
    )


def _empty(count: int) -> Bars:
    return Bars("", (None,) * count)


def _spread(figure: BarFigure, labels: Sequence[str]) -> list[Bars]:
    place = {label: i for i, label in enumerate(figure.labels)}
    return [
        Bars(one.name, tuple(one.values[place[at]] if at in place else None for at in labels))
        for one in figure.series
    ]


# Tables ------------------------------------------------------------------------------------------


def merged_table(a: TableFigure, b: TableFigure) -> TableView | None:
    """Both tables in one, changed cells with both values; None if their columns differ."""
    if [c.heading for c in a.columns] != [c.heading for c in b.columns] or not b.columns:
        return None
    width = _key_width(a, b)
    before, after = _by_key(a, width), _by_key(b, width)
    columns = b.columns[:COLUMNS]
    rows, only = [], []
    keys = list(dict.fromkeys([*after, *before]))
    for key in keys[:ROWS]:
        old, new = before.get(key), after.get(key)
        both = old is not None and new is not None
        rows.append(
            tuple(
                _cell(column, old[i] if old else None, new[i] if new else None, both=both)
                for i, column in enumerate(columns)
            )
        )
        only.append("" if both else A if new is None else B)
    cut = f"The first {ROWS} of {len(keys):,} rows." if len(keys) > ROWS else ""
    headings = tuple((column.heading, column.align) for column in columns)
    note = b.note if a.note == b.note else f"{A}: {a.note or '–'} {B}: {b.note or '–'}"
    return TableView(
        title=b.title,
        columns=headings,
        rows=tuple(rows),
        note=note,
        cut=cut,
        only=tuple(only),
        half=is_small_table(headings, rows),
    )


def _key_width(a: TableFigure, b: TableFigure) -> int:
    """How many columns from the left identify a row: one, or all that hold names."""
    if all(len({row[0] for row in t.rows}) == len(t.rows) for t in (a, b)):
        return 1
    names = 0
    for column in b.columns:
        if column.align == "right":
            break
        names += 1
    return max(names, 1)


def _by_key(table: TableFigure, width: int) -> dict[Any, tuple[Cell, ...]]:
    rows: dict[Any, tuple[Cell, ...]] = {}
    for row in table.rows:
        count = 0
        while (*row[:width], count) in rows:
            count += 1
        rows[*row[:width], count] = row
    return rows


def _cell(column: Column, old: Cell, new: Cell, *, both: bool) -> CellView:
    before, after = format_cell(column, old), format_cell(column, new)
    if not both:
        return CellView(after or before)
    if before == after:
        return CellView(after)
    return CellView(after or "–", before or "–", difference(old, new, column.format))


def difference(old: Cell, new: Cell, format_: str) -> str:
    """B − A with its sign, in the column's format; nothing if they are not numbers."""
    if isinstance(old, str) or isinstance(new, str) or old is None or new is None:
        return ""
    delta = new - old
    plain = isinstance(delta, float) and format_ in ("", ",")
    try:
        text = format(delta, "+,.4g" if plain else f"+{format_}")
    except ValueError:
        text = format(delta, "+,.4g")
    return text[:CELL]


def facts_table(a: Sequence[Fact], b: Sequence[Fact]) -> TableView:
    """The key facts of both runs."""
    before, after = {f.label: f for f in a}, {f.label: f for f in b}
    rows = []
    for label in dict.fromkeys([*after, *before]):
        old, new = before.get(label), after.get(label)
        delta = ""
        if old and new and old.text != new.text:
            delta = new.less(old)
            delta += f" ({new.value / old.value - 1:+.1%})" if old.value else ""
        cells = (old.text if old else "–", new.text if new else "–", delta)
        rows.append((CellView(label), *(CellView(cell) for cell in cells)))
    columns = (("", "left"), (A, "right"), (B, "right"), ("B − A", "right"))
    return TableView(title="Key facts", columns=columns, rows=tuple(rows))
