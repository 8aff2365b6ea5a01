"""Values that a browser shows over a picture without a script: SVG `<title>` of invisible areas."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

from flows.report.display import one_line, visible
from flows.report.plots import DRAWN_BARS, DRAWN_ESTIMATES, DRAWN_SERIES, finite_edges
from flows.report.sheet import value_text
from stages.engine.page import (
    Axis,
    BarFigure,
    CurveFigure,
    HistogramFigure,
    IntervalFigure,
    Plot,
    Series,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AREAS = 48
"""Areas across a curve; each tells the nearest value of every curve."""
LINES = 12
"""Series named in one area."""
_SVG = "{http://www.w3.org/2000/svg}"


class Area(NamedTuple):
    """A rectangle in pixels from the upper left corner, and the text that it shows."""

    left: float
    top: float
    width: float
    height: float
    text: str


def add_hover(root: ElementTree.Element, figure: Plot, axes: Axes) -> None:
    """Append invisible areas with the values of `figure` to its picture, drawn on `axes`."""
    areas = list(hover_areas(figure, axes))
    if not areas:
        return
    group = ElementTree.SubElement(root, f"{_SVG}g", {"class": "hover", "fill": "transparent"})
    for area in areas:
        numbers = (area.left, area.top, area.width, area.height)
        values = dict(zip(("x", "y", "width", "height"), map(_pixels, numbers), strict=True))
        box = ElementTree.SubElement(group, f"{_SVG}rect", values)
        ElementTree.SubElement(box, f"{_SVG}title").text = visible(area.text)


def _name(text: str) -> str:
    return one_line(text, 46)


def _pixels(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def hover_areas(figure: Plot, axes: Axes) -> Iterator[Area]:
    """The areas of a plot: columns of a curve or a histogram, rows of bars and estimates.

    A matrix shows its values in its cells and has none.
    """
    if isinstance(figure, CurveFigure):
        return _columns(figure, axes)
    if isinstance(figure, HistogramFigure):
        return _bins(figure, axes)
    if isinstance(figure, BarFigure):
        return _rows(_bar_texts(figure), axes)
    if isinstance(figure, IntervalFigure):
        return _rows(_estimate_texts(figure), axes)
    return iter(())


def _box(axes: Axes) -> tuple[float, float, float, float]:
    """Left, top, width and height of the axes in pixels; one point is one pixel at 72 dpi."""
    box = axes.get_window_extent()
    scale = 72 / axes.figure.dpi
    total = axes.figure.get_figheight() * 72  # type: ignore[union-attr]
    return box.x0 * scale, total - box.y1 * scale, box.width * scale, box.height * scale


def _columns(figure: CurveFigure, axes: Axes) -> Iterator[Area]:
    left, top, width, height = _box(axes)
    low, high = axes.get_xlim()
    log = axes.get_xscale() == "log"
    if log:
        low, high = math.log(low), math.log(high)
    step = (high - low) / AREAS
    series = figure.series[:DRAWN_SERIES]
    for index in range(AREAS):
        start = low + index * step
        begin, end = (math.exp(v) if log else v for v in (start, start + step))
        lines = list(_values_between(series, begin, end, figure))
        if lines:
            text = "\n".join(lines[: LINES + 1])
            yield Area(left + width * index / AREAS, top, width / AREAS, height, text)


def _values_between(
    series: Sequence[Series], begin: float, end: float, figure: CurveFigure
) -> Iterator[str]:
    """A line with x, then one for each curve with a point there: its last."""
    points = []
    for one in series:
        inside = [
            (x, y)
            for x, y in zip(one.x, one.y, strict=True)
            if begin <= x <= end and y is not None and math.isfinite(y)
        ]
        if inside:
            points.append((one.name, *inside[-1]))
    if points:
        at = value_text(figure.x, max(x for _, x, _ in points))
        yield f"{_name(figure.x.label)} {at}"
        for name, _, y in points:
            yield f"{_name(name)}: {value_text(figure.y, y)}"


def _bins(figure: HistogramFigure, axes: Axes) -> Iterator[Area]:
    left, top, width, height = _box(axes)
    edges, counts = finite_edges(figure.edges), Axis(figure.count, format=",.6g")
    scale = axes.transData.transform
    dpi = 72 / axes.figure.dpi
    for index, (low, high) in enumerate(pairwise(edges)):
        begin, end = (float(scale((edge, 0))[0]) * dpi for edge in (low, high))
        if not (math.isfinite(begin) and math.isfinite(end)):
            continue
        begin, end = max(begin, left), min(end, left + width)
        if end <= begin:
            continue
        ends = (value_text(figure.value, v) for v in figure.edges[index : index + 2])
        lines = [f"{_name(figure.value.label)} {' to '.join(ends)}"]
        heights = [(one.name, one.values[index]) for one in figure.series[:LINES]]
        lines += [f"{_name(name)}: {value_text(counts, value)}" for name, value in heights]
        yield Area(begin, top, end - begin, height, "\n".join(lines))


def _rows(texts: Sequence[str], axes: Axes) -> Iterator[Area]:
    left, top, width, height = _box(axes)
    for index, text in enumerate(texts):
        yield Area(left, top + height * index / len(texts), width, height / len(texts), text)


def _bar_texts(figure: BarFigure) -> list[str]:
    texts = []
    for index, label in enumerate(figure.labels[:DRAWN_BARS]):
        values = [(one.name, one.values[index]) for one in figure.series[:LINES]]
        lines = [f"{_name(name)}: {value_text(figure.value, value)}" for name, value in values]
        texts.append("\n".join([_name(label), *lines]))
    return texts


def _estimate_texts(figure: IntervalFigure) -> list[str]:
    texts = []
    for e in figure.estimates[:DRAWN_ESTIMATES]:
        if not math.isfinite(e.value):
            continue
        show = [value_text(figure.value, v) for v in (e.value, e.low, e.high, e.baseline)]
        lines = [f"{_name(e.name)}: {show[0]}"]
        if e.low is not None and e.high is not None:
            lines.append(f"95 %: {show[1]} to {show[2]}")
        if e.baseline is not None:
            lines.append(f"baseline: {show[3]}")
        lines += [f"{name}: {value_text(figure.value, value)}" for name, value in e.marks]
        texts.append("\n".join(lines))
    return texts
