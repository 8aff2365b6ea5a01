"""The sheet a plot is drawn on: matplotlib axes, and the room that stands around them in pixels.

The browser sets the text in a font of its own, so widths are estimated here (a little widely)
instead of measured in a font that nobody will see.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flows.report.palette import LIGHT
from flows.report.plain import one_line, text_width
from flows.report.scales import is_log, tick_text, ticks_of
from stages.engine.figures import Axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT = 12.0
"""Pixels; one matplotlib point is one pixel, since SVG is drawn at 72 dpi."""
LINE = 17.0
"""Height of a line of text in pixels."""
LONGEST = 200
"""Characters of a label."""
_WORDS = re.compile(r"[^\s_/.:-]*[\s_/.:-]*")


@dataclass
class Sheet:
    """Axes of a plot `width` pixels wide; what stands around them asks for its room here."""

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

    def fit(self, text: str, room: float, lines: int = 2) -> str:
        """`text` broken into at most `lines` lines of `room` pixels."""
        return fit(text, room, lines)

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
        low, high = self._scale("y", axis, values)
        ticks = ticks_of(axis, low, high, 6, log=is_log(axis, values))
        texts = [tick_text(axis, tick) for tick in ticks]
        self.axes.set_yticks(ticks, texts)
        self.axes.minorticks_off()
        self.left = 14 + max((text_width(text, FONT) for text in texts), default=0)

    def scale_x(self, axis: Axis, values: Sequence[float]) -> None:
        """Scale and ticks of the horizontal axis, as many as have room; its label stands below."""
        low, high = self._scale("x", axis, values)
        most = max(int(self.inner / 66), 2)
        ticks = ticks_of(axis, low, high, most, log=is_log(axis, values))
        self.axes.set_xticks(ticks, [tick_text(axis, tick) for tick in ticks])
        self.axes.minorticks_off()
        self.note_below(axis.label)

    def _scale(self, name: str, axis: Axis, values: Sequence[float]) -> tuple[float, float]:
        axes: Any = self.axes
        if is_log(axis, values):
            getattr(axes, f"set_{name}scale")("log", nonpositive="mask")
        low, high = getattr(axes, f"get_{name}lim")()
        return (low, high) if low < high else (high, low)

    def label_above(self, text: str) -> None:
        """A line above the axes at the left: the label of the vertical axis, read level."""
        if not text.strip():
            return
        self.axes.annotate(
            fit(text, self.width - 20, 1), (0.0, 1.0), xycoords="axes fraction",
            xytext=(12 - self.left, self.above), textcoords="offset points", ha="left", va="bottom",
            color=LIGHT["muted"], fontsize=FONT, annotation_clip=False,
        )  # fmt: skip
        self.above += LINE

    def note_below(self, text: str) -> None:
        """A wrapped line under the axes."""
        if not text.strip():
            return
        shown = fit(text, self.inner, 6)
        lines = shown.count("\n") + 1
        self.axes.annotate(
            shown, (0.5, 0.0), xycoords="axes fraction", xytext=(0, -self.below),
            textcoords="offset points", ha="center", va="top", color=LIGHT["muted"], fontsize=FONT,
            annotation_clip=False,
        )  # fmt: skip
        self.below += LINE * lines + 2

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
        shown = fit(text, self.width - 24, 3, size=14)
        self.axes.annotate(
            shown, (0.0, 1.0), xycoords="axes fraction", xytext=(12 - self.left, self.above + 4),
            textcoords="offset points", ha="left", va="bottom", color=LIGHT["text"], fontsize=14,
            fontweight="bold", annotation_clip=False,
        )  # fmt: skip
        self.above += 8 + 18 * (shown.count("\n") + 1)


def fit(text: str, room: float, lines: int, size: float = FONT) -> str:
    """`text` broken into at most `lines` lines of about `room` pixels, the rest cut with `…`.

    Names break after `_`, `/`, `.`, `:` and `-`; a word too long for a line breaks anywhere.
    """
    shown = one_line(text, LONGEST)
    broken = [""]
    for word in _WORDS.findall(shown):
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
