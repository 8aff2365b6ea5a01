"""Numbers on axes: where ticks stand and how they read."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stages.engine.figures import Axis

_THOUSANDS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_FROM = 10_000
"""Ticks below it are written out."""


def tick_text(axis: Axis, value: float) -> str:
    """A tick's number: percent where the axis counts in it, else `0.25`, `1,200`, `40k`, `1.5B`."""
    if axis.format.endswith("%"):
        return f"{value * 100:.6g}%"
    if abs(value) >= _FROM:
        for unit, letter in _THOUSANDS:
            if abs(value) >= unit:
                return f"{value / unit:.6g}{letter}"
    if value != 0 and abs(value) < 1e-4:
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:,.6g}" if abs(value) < 1 or value != int(value) else f"{int(value):,}"


def value_text(axis: Axis, value: float | None) -> str:
    """A value in the axis' own format; an en dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    try:
        return format(value, axis.format)
    except ValueError:
        return format(value, ",.4g")


def linear_ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Round numbers in [low, high], at most about `most`; `whole` ones where things are counted."""
    from matplotlib.ticker import MaxNLocator

    steps = [1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10]
    locator = MaxNLocator(nbins=max(most, 2), steps=steps, integer=whole, min_n_ticks=1)
    ticks = locator.tick_values(low, high)
    edge = (high - low) * 1e-9
    return [float(tick) for tick in ticks if low - edge <= tick <= high + edge]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Powers of ten in [low, high], every few of them if there are many; 2 and 5 if there are few.

    Within less than a third of a decade, round numbers as on a linear axis.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [
            float(f"{factor}e{power}")
            for power in range(first, last + 1)
            for factor in factors
            if low <= float(f"{factor}e{power}") <= high
        ]
        if len(ticks) <= most:
            break
    step = math.ceil(len(ticks) / most)
    return ticks[::step] if len(ticks) > 1 else linear_ticks(low, high, most)


def ticks_of(axis: Axis, low: float, high: float, most: int, *, log: bool) -> list[float]:
    """Where an axis of [low, high] has its ticks, at most about `most` of them."""
    if log:
        return log_ticks(low, high, most)
    return linear_ticks(low, high, most, whole=axis.format in (",", "d", ",d"))


def is_log(axis: Axis, values: Sequence[float]) -> bool:
    """Whether the axis is to be logarithmic and has anything that can stand on it."""
    return axis.scale == "log" and any(value > 0 for value in values)
