"""What is worth a glance when a run ends: the funnel, then the figures of each stage's page."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from artifacts_schema.manifest import Manifest
from artifacts_schema.printable import printable, printable_text
from artifacts_schema.store import Store
from stages.engine.figures import (
    Column,
    Figure,
    PairsFigure,
    SamplesFigure,
    TableFigure,
    TextFigure,
    number,
)
from stages.engine.page import Artifact, summary_of
from stages.engine.registry import stage_named

WIDTH = 110
"""Columns of text that goes to a file or a pipe."""

Made = tuple[str, Manifest]
"""A step's instance and what it made."""


def summarise(store: Store, made: Iterable[Made]) -> list[Figure]:
    """The figures of a run, in the order of its steps."""
    steps = list(made)
    records = funnel(steps)
    figures: list[Figure] = [records] if records.rows else []  # Training alone counts no records.
    for instance, manifest in steps:
        for figure in summary_of(stage_named(manifest.stage), Artifact(store, manifest)):
            figures.append(replace(figure, title=f"{instance}: {figure.title}"))
    return figures


def funnel(steps: Iterable[Made]) -> TableFigure:
    """Records in and out of each step that accounts for them, and why the others went."""
    rows = []
    for instance, manifest in steps:
        kept = manifest.conservation
        if kept is not None:
            rows.append((instance, kept.records_in, kept.out, _reasons(kept.dropped)))
    columns = (Column("step"), number("in"), number("out"), Column("dropped"))
    return TableFigure("Where every record went", columns, tuple(rows))


def _reasons(dropped: dict[str, int]) -> str:
    by_count = sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason} {count:,}" for reason, count in by_count)


def flat(figures: Iterable[Figure]) -> Iterator[TableFigure | TextFigure]:
    """Figures as a terminal shows them: a plot as its table, samples as texts, no pairs."""
    for figure in figures:
        if isinstance(figure, TableFigure | TextFigure):
            yield figure
        elif isinstance(figure, SamplesFigure):
            for sample in figure.samples:
                yield TextFigure(f"{figure.title}: {sample.heading}", sample.text)
        elif not isinstance(figure, PairsFigure):
            yield figure.table()


def as_plain(figures: Iterable[Figure]) -> list[dict[str, object]]:
    """Figures as JSON-ready values."""
    plain: list[dict[str, object]] = []
    for figure in flat(figures):
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
    for figure in flat(figures):
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
