"""Fewer points and rows where nobody could tell all of them apart, keeping what stands out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from stages.engine.figures import CurveFigure, Series, TableFigure

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

POINTS = 600
"""Points of a curve: about one for each pixel of its width."""

Item = TypeVar("Item")


def known(values: Sequence[float | None]) -> list[float]:
    """Values that can be drawn: not None, not NaN, not infinite."""
    return [value for value in values if value is not None and math.isfinite(value)]


def thin_curve(
    x: Sequence[float], y: Sequence[float | None], most: int = POINTS
) -> tuple[list[float], list[float]]:
    """At most about `most` points of a curve, by x; a gap is NaN.

    The points are cut into buckets of equal count, and each keeps its least and its greatest value
    (so a spike of one point stays) and a gap, if it has one.
    """
    import numpy as np

    at, value = np.array(x, dtype=float), np.array(y, dtype=float)
    value[~np.isfinite(value)] = np.nan
    order = np.argsort(at, kind="stable")
    order = order[np.isfinite(at[order])]
    at, value = at[order], value[order]
    if len(at) > most:
        edges = np.linspace(0, len(at), max(most // 2, 1) + 1).astype(int)
        kept = {0, len(at) - 1}
        for start, stop in pairwise(edges):
            kept.update(int(start) + i for i in _extremes(value[start:stop]))
        chosen = sorted(kept)
        at, value = at[chosen], value[chosen]
    return at.tolist(), value.tolist()


def _extremes(values: npt.NDArray[np.float64]) -> set[int]:
    import numpy as np

    gaps = np.isnan(values)
    if gaps.all():
        return {0}
    found = {int(np.nanargmin(values)), int(np.nanargmax(values))}
    return found | ({int(np.argmax(gaps))} if gaps.any() else set())


def evenly(items: Sequence[Item], most: int) -> tuple[Sequence[Item], int]:
    """Every k-th item so that at most `most` are left, and k."""
    step = max(math.ceil(len(items) / most), 1)
    return items[::step], step


def curve_table(figure: CurveFigure, most: int) -> tuple[TableFigure, int, int]:
    """The table of a curve at every k-th of its x, the number of all x, and k."""
    points = sorted({x for series in figure.series for x in series.x})
    shown, step = evenly(points, most)
    if step == 1:
        return figure.table(), len(points), 1
    wanted = set(shown)

    def chosen(series: Series) -> Series:
        pairs = [(x, y) for x, y in zip(series.x, series.y, strict=True) if x in wanted]
        return replace(series, x=tuple(x for x, _ in pairs), y=tuple(y for _, y in pairs))

    fewer = replace(figure, series=tuple(chosen(series) for series in figure.series))
    return fewer.table(), len(points), step
