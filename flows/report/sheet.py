"""The sheet a plot is drawn on: matplotlib axes, ticks, event marks, and the margins in pixels.

The browser sets the text in a font of its own, so widths are estimated here (a little widely)
instead of measured in a font that no reader will see.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flows.report.display import LIGHT, one_line, text_width
from stages.engine.page import Axis, Mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def is_log(axis: Axis, values: Sequence[float]) -> bool:
    """Whether the axis is logarithmic and has a positive value."""
    return axis.scale == "log" and any(value > 0 for value in values)


FONT = 12.0
"""Pixels; one matplotlib point is one pixel, since SVG is drawn at 72 dpi."""
LINE = 17.0
"""Height of a line of text in pixels."""
LONGEST = 200
"""Characters of a label."""
_WORDS = re.compile(r"[^\s_/.:-]*[\s_/.:-]*")


@dataclass
class Sheet:
    """Axes of a plot `width` pixels wide, and the margins that the labels around them need."""

    axes: Axes
    width: float
    left: float = 12.0
    right: float = 14.0
    above: float = 6.0
    below: float = 22.0
    height: float = 210.0

    @property
    def inner(self) -> float:
        """Width of the axes."""
        return self.width - self.left - self.right

    def style(self, *, grid: str, frame: bool = True) -> None:
        """Grid along one axis ("x", "y", "both"), a line at the foot, nothing else."""
        axes = self.axes
        axes.set_axisbelow(True)
        if grid:
            axes.grid(True, axis=grid, color=LIGHT["grid"], linewidth=1)  # type: ignore[arg-type]
        for side, spine in axes.spines.items():
            spine.set_visible(frame and side == "bottom")
            spine.set_color(LIGHT["axis"])
        axes.tick_params(length=0, pad=5, labelsize=FONT, labelcolor=LIGHT["muted"])

    def scale_y(self, axis: Axis, values: Sequence[float]) -> None:
        """Scale, ticks and room of the vertical axis."""
        texts = self._scale("y", axis, values, 6)
        self.left = 14 + max((text_width(text, FONT) for text in texts), default=0)

    def scale_x(self, axis: Axis, values: Sequence[float]) -> None:
        """Scale and ticks of the horizontal axis, as many as fit, and its label below."""
        self._scale("x", axis, values, max(int(self.inner / 66), 2))
        self.note_below(axis.label)

    def _scale(self, name: str, axis: Axis, values: Sequence[float], most: int) -> list[str]:
        """Set the scale of an axis and about `most` ticks; returns their texts."""
        axes: Any = self.axes
        log = is_log(axis, values)
        if log:
            getattr(axes, f"set_{name}scale")("log", nonpositive="mask")
        low, high = sorted(getattr(axes, f"get_{name}lim")())
        whole = axis.format in (",", "d", ",d")
        ticks = log_ticks(low, high, most) if log else linear_ticks(low, high, most, whole=whole)
        texts = [tick_text(axis, tick) for tick in ticks]
        getattr(axes, f"set_{name}ticks")(ticks, texts)
        axes.minorticks_off()
        return texts

    def write(
        self,
        text: str,
        at: tuple[float, float],
        shift: tuple[float, float] = (0.0, 0.0),
        coordinates: Any = "axes fraction",
        **style: Any,
    ) -> None:
        """Text at a point, shifted by pixels; it may lie outside of the axes."""
        style = {"ha": "left", "va": "center", "color": LIGHT["muted"], "fontsize": FONT, **style}
        self.axes.annotate(
            text, at, shift, coordinates, "offset points", annotation_clip=False, **style
        )

    def label_above(self, text: str) -> None:
        """A line above the axes at the left: the label of the vertical axis, read level."""
        if not text.strip():
            return
        line = fit(text, self.width - 20, 1)
        self.write(line, (0.0, 1.0), (12 - self.left, self.above), va="bottom")
        self.above += LINE

    def note_below(self, text: str) -> None:
        """A wrapped line under the axes."""
        if not text.strip():
            return
        wrapped = fit(text, self.inner, 6)
        self.write(wrapped, (0.5, 0.0), (0, -self.below), ha="center", va="top")
        self.below += LINE * (wrapped.count("\n") + 1) + 2

    def legend(self, handles: Sequence[Any], names: Sequence[str]) -> None:
        """A legend above the axes, in as many columns as have room, so that it covers no data."""
        if not handles:
            return
        from matplotlib.transforms import ScaledTranslation

        texts = [one_line(name, 46) for name in names]
        widest = max(text_width(text, FONT) for text in texts) + 40
        columns = max(min(int((self.width - 16) / widest), len(texts)), 1)
        rows = -(-len(texts) // columns)
        figure: Any = self.axes.figure
        shift = ScaledTranslation((8 - self.left) / 72, self.above / 72, figure.dpi_scale_trans)
        self.axes.legend(
            handles, texts, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns,
            bbox_transform=self.axes.transAxes + shift, fontsize=FONT, frameon=False,
            labelcolor=LIGHT["text"], borderpad=0.2, borderaxespad=0.0, handlelength=2.2,
            handletextpad=0.6, columnspacing=1.4, labelspacing=0.35,
        )  # fmt: skip
        self.above += rows * LINE + 6

    def title(self, text: str) -> None:
        """A title above everything."""
        if not text.strip():
            return
        wrapped = fit(text, self.width - 24, 3, size=14)
        style = {"color": LIGHT["text"], "fontsize": 14, "fontweight": "bold"}
        self.write(wrapped, (0.0, 1.0), (12 - self.left, self.above + 4), va="bottom", **style)
        self.above += 8 + 18 * (wrapped.count("\n") + 1)


def fit(text: str, room: float, lines: int, size: float = FONT) -> str:
    """`text` broken into at most `lines` lines of about `room` pixels, the rest cut with `…`.

    Names break after `_`, `/`, `.`, `:` and `-`; a word too long for a line breaks anywhere.
    """
    broken = [""]
    for word in _WORDS.findall(one_line(text, LONGEST)):
        if broken[-1] and text_width(broken[-1] + word.rstrip(), size) > room:
            broken.append("")
        while text_width(word.rstrip(), size) > room and len(word) > 1:
            most = max(int(len(word) * room / text_width(word, size)), 1)
            broken[-1] += word[:most]
            word = word[most:]
            broken.append("")
        broken[-1] += word
    kept = [line.rstrip() for line in broken if line.strip()]
    if len(kept) > lines:
        most = max(int(len(kept[lines - 1]) * (room - size) / room), 1)
        kept[lines - 1 :] = [kept[lines - 1][:most].rstrip("_ ") + "…"]
    return "\n".join(kept)


DRAWN_MARKS = 400


def draw_marks(marks: Sequence[Mark], sheet: Sheet) -> None:
    """A line for each event, its label right of its upper end in one of three rows.

    If the labels do not fit, they are replaced by numbers and listed below.
    """
    if not marks:
        return
    texts = [one_line(mark.label, 34) for mark in marks]
    rows = place_labels(marks, texts, sheet, most=3)
    if -1 in rows:
        kinds = list(dict.fromkeys(mark.label for mark in marks))
        texts = [str(kinds.index(mark.label) + 1) for mark in marks]
        rows = place_labels(marks, texts, sheet, most=2)
        sheet.note_below(_number_key(marks, kinds))
    for mark, text, row in zip(marks[:DRAWN_MARKS], texts, rows, strict=False):
        over = (row + 1) * LINE * 0.85 + (2 if row >= 0 else 0)
        sheet.axes.plot(
            [mark.x, mark.x], [0, 1 + over / sheet.height], linewidth=1, linestyle=(0, (2, 2)),
            transform=sheet.axes.get_xaxis_transform(), clip_on=False, zorder=1.5,
            color=LIGHT["axis" if len(marks) > 12 else "muted"], scalex=False, scaley=False,
        )  # fmt: skip
        if row >= 0:
            place = ("data", "axes fraction")
            sheet.write(text, (mark.x, 1.0), (3, over), place, va="top", fontsize=FONT - 1)
    sheet.above += (max(rows) + 1) * LINE * 0.85


def place_labels(
    marks: Sequence[Mark], texts: Sequence[str], sheet: Sheet, *, most: int
) -> list[int]:
    """A row for each label, higher than every line that it passes; -1 where `most` are too few.

    From right to left, so that a label is above the lines that it crosses.
    """
    placed: list[tuple[float, int]] = []
    rows = []
    for mark, text in zip(reversed(marks), reversed(texts), strict=True):
        at = x_to_pixels(mark.x, sheet)
        end = at + 3 + text_width(text, FONT - 1) + 5
        row = 1 + max((row for other, row in placed if other < end), default=-1)
        row = row if row < most and end < sheet.inner + sheet.right else -1
        placed.append((at, row))
        rows.append(row)
    return rows[::-1]


def reserve_margin(marks: Sequence[Mark], sheet: Sheet, every_x: Sequence[float]) -> None:
    """Widen the right margin where the last labels need it."""
    low, high = min(every_x), max(every_x)
    span = (high - low) or 1.0
    over = [
        text_width(one_line(mark.label, 34), FONT - 1) + 12 - (high - mark.x) / span * sheet.inner
        for mark in marks
    ]
    sheet.right = max(sheet.right, min(max(over, default=0.0), sheet.width * 0.3))


def x_to_pixels(x: float, sheet: Sheet) -> float:
    """The position of data `x`, in pixels from the left of the axes."""
    (low, high), log = sheet.axes.get_xlim(), sheet.axes.get_xscale() == "log"
    if log:
        low, high, x = math.log(low), math.log(high), math.log(x)
    return (x - low) / (high - low) * sheet.inner


def _number_key(marks: Sequence[Mark], kinds: Sequence[str], most: int = 8) -> str:
    counted = [(label, sum(mark.label == label for mark in marks)) for label in kinds[:most]]
    parts = [
        f"{number} {one_line(label, 40)}" + (f" (×{count})" if count > 1 else "")
        for number, (label, count) in enumerate(counted, start=1)
    ]
    rest = f" · and {len(kinds) - most} more in the table" if len(kinds) > most else ""
    return " · ".join(parts) + rest
