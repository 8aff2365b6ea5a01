"""What makes values fit for display: colours, safe text, fewer points, durations.

The series colours follow Okabe and Ito (2008), who chose theirs to be distinguishable by
colour-blind readers; they are darkened (lightened) until each has a contrast of at least 3 to the
page. Characters that a browser or a terminal would obey without showing them (control characters,
escape sequences, marks that reverse the direction of text, invisible characters) are shown as `·`.
Joiners stay: Indic scripts, Persian and emoji need them. Curves and tables are thinned to what a
reader can tell apart, keeping spikes and gaps.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TypeVar

SERIES = 8

LIGHT = {
    "text": "#1b1f24",
    "muted": "#59616b",
    "grid": "#e2e6eb",
    "axis": "#b4bcc6",
    "surface": "#ffffff",
    "on-series": "#fdfdfe",
    "series-1": "#0b69b5",
    "series-2": "#c24e00",
    "series-3": "#007a5a",
    "series-4": "#a3458c",
    "series-5": "#8a6a00",
    "series-6": "#2a86ad",
    "series-7": "#b3261e",
    "series-8": "#5c5f66",
}
"""Drawings use these; all values differ, so that each can be replaced by its name."""

DARK = {
    "text": "#e7eaee",
    "muted": "#a3acb8",
    "grid": "#2b323b",
    "axis": "#56606c",
    "surface": "#14181d",
    "on-series": "#0f1216",
    "series-1": "#63b0f4",
    "series-2": "#ff9d5c",
    "series-3": "#3ecb9d",
    "series-4": "#e698d5",
    "series-5": "#dcb63c",
    "series-6": "#84d2ee",
    "series-7": "#ff8a80",
    "series-8": "#b5b9c1",
}

VARIABLES = {name: f"var(--{name})" for name in LIGHT}
"""The same names as variables of a style sheet."""


def series_colour(index: int) -> str:
    """The colour of the series at `index`; the colours repeat after the last."""
    return LIGHT[f"series-{index % SERIES + 1}"]


_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
PLACEHOLDER = "·"
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u20d0-\u20ff]"
_MARKS_IN_A_ROW = re.compile(f"({_MARK}{{3}}){_MARK}+")


def visible(text: str) -> str:
    """`text` with `·` for every character that would be obeyed instead of shown.

    Line ends become `\\n`; at most three combining marks in a row are kept, so that they do not
    cover other lines.
    """
    text = _OBEYED.sub(PLACEHOLDER, text.replace("\r\n", "\n"))
    return _MARKS_IN_A_ROW.sub(r"\1", text)


def one_line(text: str, most: int) -> str:
    """The beginning of a text on one line, at most `most` characters."""
    line = " ".join(visible(text[: 4 * most + 64]).split())
    return line if len(line) <= most and len(text) <= 4 * most + 64 else line[: most - 1] + "…"


def text_width(text: str, size: float) -> float:
    """The approximate width of a line of sans-serif text, in the unit of `size`."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return size * (0.56 * (len(text) - wide) + 1.0 * wide)


POINTS = 600
"""Points of a curve: about one for each pixel of its width."""

Item = TypeVar("Item")


def finite_values(values: Sequence[float | None]) -> list[float]:
    """Values that can be drawn: not None, not NaN, not infinite."""
    return [value for value in values if value is not None and math.isfinite(value)]


def thin_curve(
    x: Sequence[float], y: Sequence[float | None], most: int = POINTS
) -> tuple[list[float], list[float]]:
    """At most about `most` points of a curve, by x; a gap is NaN.

    Spikes and gaps stay.
    """
    import numpy as np

    from stages.training.figures import kept_rows

    at, value = np.array(x, dtype=float), np.array(y, dtype=float)
    value[~np.isfinite(value)] = np.nan
    order = np.argsort(at, kind="stable")
    order = order[np.isfinite(at[order])]
    kept = order[kept_rows([value[order]], most)]
    return at[kept].tolist(), value[kept].tolist()


def sample_evenly(items: Sequence[Item], most: int) -> tuple[Sequence[Item], int]:
    """Every k-th item so that at most `most` are left, and k."""
    step = max(math.ceil(len(items) / most), 1)
    return items[::step], step


def format_duration(seconds: float) -> str:
    """Seconds for people: `4.2 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def format_reasons(dropped: Mapping[str, int], most: int | None = None) -> str:
    """`too_short 12, no_text 4 and 3 more`: reasons by count, the first `most` of them."""
    by_count = sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
    rest = f" and {len(by_count) - most} more" if most is not None and len(by_count) > most else ""
    return ", ".join(f"{reason} {count:,}" for reason, count in by_count[:most]) + rest
