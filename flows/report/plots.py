"""How each kind of plot is drawn on its sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flows.report.display import (
    LIGHT,
    POINTS,
    SERIES,
    finite_values,
    one_line,
    series_colour,
    text_width,
    thin_curve,
)
from flows.report.sheet import (
    FONT,
    LINE,
    Sheet,
    draw_marks,
    fit,
    is_log,
    reserve_margin,
    value_text,
)
from stages.engine.page import (
    Axis,
    BarFigure,
    Bars,
    CurveFigure,
    HistogramFigure,
    IntervalFigure,
    MatrixFigure,
    Plot,
    Series,
)

DRAWN_SERIES = 24
DRAWN_BARS = 40
DRAWN_CELLS = 40
"""Rows and columns of a matrix."""
DRAWN_ESTIMATES = 60
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
_MARKERS = "osD^vPX*"


def is_empty(figure: Plot) -> bool:
    """Whether there is nothing to draw."""
    if isinstance(figure, IntervalFigure):
        return not finite_values([estimate.value for estimate in figure.estimates])
    if isinstance(figure, MatrixFigure):
        return not any(finite_values(row) for row in figure.values)
    if isinstance(figure, CurveFigure):
        return not any(finite_values(series.y) for series in figure.series)
    return not any(finite_values(series.values) for series in figure.series)


def not_drawn(figure: Plot) -> str:
    """A sentence on what only the table shows; empty if the picture shows everything."""
    if isinstance(figure, MatrixFigure):
        count, most, things = max(len(figure.rows), len(figure.columns)), DRAWN_CELLS, "rows"
    elif isinstance(figure, IntervalFigure):
        count, most, things = len(figure.estimates), DRAWN_ESTIMATES, "estimates"
    elif isinstance(figure, BarFigure):
        count, most, things = len(figure.labels), DRAWN_BARS, "bars"
    else:
        count, most, things = len(figure.series), DRAWN_SERIES, "series"
    return f"The first {most} of {count} {things} are drawn." if count > most else ""


def plot(figure: Plot, sheet: Sheet, *, paired: bool = False) -> None:
    """Draw `figure`. `paired` series come as before, after, before, …: one colour for each two."""
    if isinstance(figure, CurveFigure):
        _curves(figure, sheet, paired)
    elif isinstance(figure, BarFigure):
        _bars(figure, sheet, paired)
    elif isinstance(figure, HistogramFigure):
        _histogram(figure, sheet, paired)
    elif isinstance(figure, MatrixFigure):
        _matrix(figure, sheet)
    else:
        _intervals(figure, sheet, paired)


def _look(index: int, paired: bool) -> tuple[str, Any]:
    """Colour and dashes of a series: both differ, so that neither is needed to identify it.

    Of a pair, the first is dashed.
    """
    if paired:
        return series_colour(index // 2), "-" if index % 2 else (0, (4, 2.5))
    return series_colour(index), _DASHES[(index % SERIES + index // SERIES) % len(_DASHES)]


# Curves ------------------------------------------------------------------------------------------


def _curves(figure: CurveFigure, sheet: Sheet, paired: bool) -> None:
    axes, series = sheet.axes, figure.series[:DRAWN_SERIES]
    handles, names, every_x, every_y = [], [], [], []
    for index, one in enumerate(series):
        x, y = thin_curve(one.x, one.y, POINTS if sheet.width > POINTS else POINTS // 2)
        if not finite_values(y):
            continue
        colour, dashes = _look(index, paired)
        width, alpha, zorder = (0.9, 0.4, 2.5) if one.faint else (1.7, 1.0, 3.0)
        (line,) = axes.plot(
            x, y, color=colour, linestyle="-" if one.faint else dashes, linewidth=width,
            alpha=alpha, solid_capstyle="round", solid_joinstyle="round", zorder=zorder,
        )  # fmt: skip
        alone = _alone(x, y)
        if alone:
            marker = _MARKERS[index % len(_MARKERS)]
            axes.plot(*zip(*alone, strict=True), marker, color=colour, markersize=6, zorder=4)
            if len(alone) == len(finite_values(y)):
                line.set(marker=marker, markersize=6)
        handles.append(line)
        names.append(one.name)
        every_x += x
        every_y += finite_values(y) + _bars_of_intervals(one, axes, colour)
    marks = [mark for mark in figure.marks if math.isfinite(mark.x)]
    if is_log(figure.x, every_x):
        marks = [mark for mark in marks if mark.x > 0]
    marks = sorted(marks, key=lambda mark: (mark.x, mark.label))
    every_x += [mark.x for mark in marks]
    _limits(axes, "x", every_x, 0.015, log=is_log(figure.x, every_x))
    _limits(axes, "y", every_y, 0.06, log=is_log(figure.y, every_y))
    sheet.style(grid="y")
    sheet.scale_y(figure.y, every_y)
    reserve_margin(marks, sheet, every_x)
    sheet.scale_x(figure.x, every_x)
    draw_marks(marks, sheet)
    sheet.label_above(figure.y.label)
    if len(names) > 1 or (names and names[0] and names[0] != figure.y.label):
        sheet.legend(handles, names)


def _bars_of_intervals(series: Series, axes: Any, colour: str) -> list[float]:
    """Draw the interval of each point as an upright bar; returns all ends."""
    ends = []
    for x, low, high in zip(series.x, series.low, series.high, strict=False):
        if low is not None and high is not None and math.isfinite(low) and math.isfinite(high):
            axes.plot([x, x], [low, high], color=colour, linewidth=1.2, alpha=0.55, zorder=2.8)
            ends += [low, high]
    return ends


def _alone(x: Sequence[float], y: Sequence[float]) -> list[tuple[float, float]]:
    """Points with a gap (or nothing) on both sides: a line would not show them."""
    there = [False, *(not math.isnan(value) for value in y), False]
    return [
        (at, value)
        for i, (at, value) in enumerate(zip(x, y, strict=True), start=1)
        if there[i] and not there[i - 1] and not there[i + 1]
    ]


def _limits(axes: Any, name: str, values: Sequence[float], margin: float, *, log: bool) -> None:
    drawable = [value for value in values if value > 0] if log else list(values)
    low, high = min(drawable), max(drawable)
    if log:
        room = (high / low) ** margin if high > low else 1.5
        getattr(axes, f"set_{name}lim")(low / room, high * room)
        return
    room = (high - low) * margin or abs(high) * 0.1 or 0.5
    getattr(axes, f"set_{name}lim")(low - room, high + room)


# Bars --------------------------------------------------------------------------------------------


def _bars(figure: BarFigure, sheet: Sheet, paired: bool) -> None:
    axes, series = sheet.axes, figure.series[:DRAWN_SERIES]
    labels = figure.labels[:DRAWN_BARS]
    values = [finite_values(one.values[:DRAWN_BARS]) for one in series]
    every = [value for some in values for value in some]
    log = is_log(figure.value, every)
    side_by_side = 1 if figure.stacked else len(series)
    lines = _labels_left(labels, sheet)
    step = max(26.0, 15.0 * side_by_side + 9, 15.0 * lines + 6)
    sheet.height = step * len(labels) + 8
    sheet.style(grid="x", frame=False)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    ends = [0.0] * len(labels)
    handles = []
    for index, one in enumerate(series):
        numbers = [
            v if v is not None and math.isfinite(v) else 0.0 for v in one.values[:DRAWN_BARS]
        ]
        thick = 0.72 / side_by_side
        places = [i + (index - (side_by_side - 1) / 2) * thick for i in range(len(labels))]
        if figure.stacked:
            places = [float(i) for i in range(len(labels))]
        colour = series_colour(index // 2 if paired else index)
        handles.append(
            axes.barh(
                places, numbers, thick * 0.94, left=ends if figure.stacked else None, color=colour,
                alpha=0.5 if paired and index % 2 == 0 else None, linewidth=0, zorder=2,
            )
        )  # fmt: skip
        if figure.stacked:
            ends = [end + value for end, value in zip(ends, numbers, strict=True)]
        else:
            _values_at_bars(one, places, figure, sheet, log=log)
    _bar_limits(figure, sheet, ends if figure.stacked else every, log=log)
    sheet.scale_x(figure.value, every)
    if len(series) > 1:
        sheet.legend(handles, [one.name for one in series])


def _bar_limits(figure: BarFigure, sheet: Sheet, ends: Sequence[float], *, log: bool) -> None:
    if log:
        positive = [value for value in ends if value > 0]
        sheet.axes.set_xscale("log", nonpositive="mask")
        sheet.axes.set_xlim(min(positive) / 2, max(positive) * 1.6)
        return
    values = [v for one in figure.series for v in one.values[:DRAWN_BARS]]
    longest = max((text_width(value_text(figure.value, v), FONT) for v in values), default=0.0)
    low, high = min(0.0, *ends), max(0.0, *ends)
    if low == high:
        high = 1.0
    room = 0.02 if figure.stacked else min((longest + 10) / sheet.inner, 0.4)
    span = (high - low) / (1 - room * (2 if low < 0 else 1))
    sheet.axes.set_xlim(low - (span * room if low < 0 else 0), high + span * room)


def _values_at_bars(
    one: Bars, places: Sequence[float], figure: BarFigure, sheet: Sheet, *, log: bool
) -> None:
    for place, value in zip(places, one.values[:DRAWN_BARS], strict=False):
        there = value is not None and math.isfinite(value)
        if log and (not there or value <= 0):  # type: ignore[operator]
            at: Any = ((0.0, place), ("axes fraction", "data"))
        else:
            at = ((value if there else 0.0, place), "data")
        left = there and value < 0  # type: ignore[operator]
        style = {"ha": "right" if left else "left", "color": LIGHT["text"], "zorder": 5}
        sheet.write(value_text(figure.value, value), at[0], (-5 if left else 5, 0), at[1], **style)


MOST_LINES = 6
"""Of the name of a row."""


def _labels_left(labels: Sequence[str], sheet: Sheet, *, share: float = 0.42) -> int:
    """Set row names in two lines and `share` of the width; returns the most lines used.

    Names that are the same in two lines get more: often it is their ends that differ.
    """
    texts: list[str] = []
    for most in range(2, MOST_LINES + 1):
        texts = [fit(label, sheet.width * share, most) for label in labels]
        if len({text.removesuffix("…") for text in texts}) == len(set(labels)):
            break
    sheet.axes.set_yticks(range(len(labels)), texts)
    lines = [line for text in texts for line in text.splitlines()]
    sheet.left = 16 + max((text_width(line, FONT) for line in lines), default=0)
    return max((text.count("\n") + 1 for text in texts), default=1)


# Histograms --------------------------------------------------------------------------------------


def _histogram(figure: HistogramFigure, sheet: Sheet, paired: bool) -> None:
    edges = finite_edges(figure.edges)
    positive = [edge for edge in edges if edge > 0]
    log = is_log(figure.value, positive)
    if log and edges[0] <= 0 < len(positive) and len(positive) > 1:
        edges = [max(edge, positive[0] ** 2 / positive[1]) for edge in edges]
    handles, names, every = [], [], [0.0]
    series = figure.series[:DRAWN_SERIES]
    for index, one in enumerate(series):
        counts = [v if v is not None and math.isfinite(v) else 0.0 for v in one.values]
        colour, dashes = _look(index, paired)
        alone = len(series) == 1
        filled = sheet.axes.stairs(
            counts, edges, fill=True, color=colour, alpha=0.8 if alone else 0.18, linewidth=0
        )
        line = filled
        if not alone:
            line = sheet.axes.stairs(counts, edges, color=colour, linewidth=1.7, linestyle=dashes)
        handles.append(line)
        names.append(one.name)
        every += counts
    sheet.axes.set_ylim(0, max(every) * 1.06 or 1.0)
    sheet.axes.set_xlim(edges[0], edges[-1])
    sheet.style(grid="y")
    sheet.scale_y(Axis(figure.count, format=","), every)
    sheet.label_above(figure.count)
    sheet.scale_x(figure.value, positive if log else edges)
    if len(series) > 1:
        sheet.legend(handles, names)


def finite_edges(edges: Sequence[float]) -> list[float]:
    """Edges with the open ends (±infinity) closed one bin's width further."""
    inside = [edge for edge in edges if math.isfinite(edge)]
    if len(inside) < 2:
        return [float(i) for i in range(len(edges))]
    first, last = inside[1] - inside[0], inside[-1] - inside[-2]
    closed = []
    for edge in edges:
        if math.isfinite(edge):
            closed.append(float(edge))
        else:
            closed.append(inside[-1] + last if edge > 0 else inside[0] - first)
    return closed


# Matrices ----------------------------------------------------------------------------------------


def _matrix(figure: MatrixFigure, sheet: Sheet) -> None:
    from matplotlib.patches import Rectangle

    rows, columns = figure.rows[:DRAWN_CELLS], figure.columns[:DRAWN_CELLS]
    values = [row[:DRAWN_CELLS] for row in figure.values[:DRAWN_CELLS]]
    every = [abs(value) for row in values for value in finite_values(row)]
    most = max(every) or 1.0
    lines = _labels_left(rows, sheet, share=0.34)
    cell = min(sheet.inner / max(len(columns), 1), 64.0)
    sheet.right = max(sheet.width - sheet.left - cell * len(columns), 14.0)
    sheet.height = max(min(cell, 30.0), 15.0 * lines + 3) * len(rows)
    sheet.style(grid="", frame=False)
    sheet.axes.set_xlim(-0.5, len(columns) - 0.5)
    sheet.axes.set_ylim(len(rows) - 0.5, -0.5)
    _columns_above(columns, sheet, cell)
    texts = [[_cell_text(figure, value) for value in row] for row in values]
    widest = max(text_width(text, FONT - 1) for row in texts for text in row)
    style: dict[str, Any] = {"ha": "center", "fontsize": FONT - 1, "zorder": 4}
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            if value is None or not math.isfinite(value):
                continue
            strength = 0.06 + 0.94 * abs(value) / most if value else 0.0
            colour = LIGHT["series-2" if value < 0 else "series-1"]
            box = Rectangle((j - 0.48, i - 0.46), 0.96, 0.92, color=colour, alpha=strength, lw=0)
            sheet.axes.add_patch(box)
            if widest < cell - 4:
                colour = LIGHT["on-series" if strength > 0.62 else "text"]
                sheet.write(texts[i][j], (j, i), coordinates="data", color=colour, **style)


def _cell_text(figure: MatrixFigure, value: float | None) -> str:
    return "" if value is None else value_text(Axis("", format=figure.format), value)


def _columns_above(columns: Sequence[str], sheet: Sheet, cell: float) -> None:
    """Column names above: level where they fit, upright otherwise."""
    axes = sheet.axes
    axes.xaxis.tick_top()
    texts = [one_line(name, 26) for name in columns]
    level = all(text_width(text, FONT) < cell - 6 for text in texts)
    axes.set_xticks(range(len(columns)), texts, rotation=0 if level else 90)
    axes.tick_params(axis="x", pad=4)
    sheet.above += LINE if level else max(text_width(text, FONT) for text in texts) + 8
    sheet.below = 8.0


# Estimates ---------------------------------------------------------------------------------------


def _intervals(figure: IntervalFigure, sheet: Sheet, paired: bool) -> None:
    axes = sheet.axes
    drawn = enumerate(figure.estimates[:DRAWN_ESTIMATES])
    estimates = [(i % 2 if paired else 0, e) for i, e in drawn if math.isfinite(e.value)]
    lines = _labels_left([e.name for _, e in estimates], sheet)
    sheet.height = max(20 if paired else 24, 15 * lines + 5) * len(estimates) + 14
    sheet.style(grid="x", frame=False)
    axes.set_ylim(len(estimates) - 0.5, -0.5)
    every: list[float] = []
    legend: dict[str, Any] = {}
    shapes = dict(
        zip(dict.fromkeys(m for _, e in estimates for m, _ in e.marks), "^vxD", strict=False)
    )
    for i, (side, e) in enumerate(estimates):
        colour, marker = series_colour(side), "s" if paired and side == 0 else "o"
        low, high = (e.value if end is None else end for end in (e.low, e.high))
        axes.plot([low, high], [i, i], color=colour, linewidth=2.2, solid_capstyle="butt", zorder=3)
        axes.plot(e.value, i, marker, color=colour, markersize=7, zorder=4)
        every += finite_values([e.value, low, high, e.baseline])
        if e.baseline is not None and math.isfinite(e.baseline):
            (legend["baseline"],) = axes.plot(
                e.baseline, i, "|", color=LIGHT["muted"], markersize=15, markeredgewidth=2
            )
        for name, value in e.marks:
            if math.isfinite(value) and name in shapes:
                every.append(value)
                (legend[name],) = axes.plot(
                    value, i, shapes[name], color=series_colour(3), markersize=6, zorder=3.5
                )
    log = is_log(figure.value, every)
    _limits(axes, "x", every, 0.05, log=log)
    texts = [value_text(figure.value, e.value) for _, e in estimates]
    sheet.right = 18 + max(text_width(text, FONT) for text in texts)
    for i, text in enumerate(texts):
        sheet.write(text, (1.0, i), (8, 0), ("axes fraction", "data"), color=LIGHT["text"])
    sheet.scale_x(figure.value, every)
    if legend:
        sheet.legend(list(legend.values()), list(legend))
