"""Events over a curve: a line for each, and labels that touch neither each other nor a line."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flows.report.palette import LIGHT
from flows.report.plain import one_line, text_width
from flows.report.sheet import FONT, LINE, Sheet
from stages.engine.figures import Mark

DRAWN = 400


def draw_marks(marks: Sequence[Mark], sheet: Sheet) -> None:
    """A line for each event, its label right of its upper end in one of three rows.

    Where the labels do not fit, numbers stand there, and the labels below.
    """
    if not marks:
        return
    texts = [one_line(mark.label, 34) for mark in marks]
    rows = flags(marks, texts, sheet, most=3)
    if -1 in rows:
        kinds = list(dict.fromkeys(mark.label for mark in marks))
        texts = [str(kinds.index(mark.label) + 1) for mark in marks]
        rows = flags(marks, texts, sheet, most=2)
        sheet.note_below(_key(marks, kinds))
    for mark, text, row in zip(marks[:DRAWN], texts, rows, strict=False):
        over = (row + 1) * LINE * 0.85 + (2 if row >= 0 else 0)
        sheet.axes.plot(
            [mark.x, mark.x], [0, 1 + over / sheet.height], linewidth=1, linestyle=(0, (2, 2)),
            transform=sheet.axes.get_xaxis_transform(), clip_on=False, zorder=1.5,
            color=LIGHT["axis" if len(marks) > 12 else "muted"], scalex=False, scaley=False,
        )  # fmt: skip
        if row >= 0:
            sheet.axes.annotate(
                text, (mark.x, 1.0), xycoords=("data", "axes fraction"), xytext=(3, over),
                textcoords="offset points", ha="left", va="top", color=LIGHT["muted"],
                fontsize=FONT - 1, annotation_clip=False,
            )  # fmt: skip
    sheet.above += (max(rows) + 1) * LINE * 0.85


def flags(marks: Sequence[Mark], texts: Sequence[str], sheet: Sheet, *, most: int) -> list[int]:
    """A row for each label, higher than every line that it passes; -1 where `most` are too few.

    From right to left, so that a label stands over the lines it crosses instead of on them.
    """
    placed: list[tuple[float, int]] = []
    rows = []
    for mark, text in zip(reversed(marks), reversed(texts), strict=True):
        at = place(mark.x, sheet)
        end = at + 3 + text_width(text, FONT - 1) + 5
        row = 1 + max((row for other, row in placed if other < end), default=-1)
        row = row if row < most and end < sheet.inner + sheet.right else -1
        placed.append((at, row))
        rows.append(row)
    return rows[::-1]


def room_for_marks(marks: Sequence[Mark], sheet: Sheet, every_x: Sequence[float]) -> None:
    """Widen the right margin where the last labels need it."""
    low, high = min(every_x), max(every_x)
    span = (high - low) or 1.0
    over = [
        text_width(one_line(mark.label, 34), FONT - 1) + 12 - (high - mark.x) / span * sheet.inner
        for mark in marks
    ]
    sheet.right = max(sheet.right, min(max(over, default=0.0), sheet.width * 0.3))


def place(x: float, sheet: Sheet) -> float:
    """Where data `x` stands on the sheet, in pixels from the left of the axes."""
    (low, high), log = sheet.axes.get_xlim(), sheet.axes.get_xscale() == "log"
    if log:
        low, high, x = math.log(low), math.log(high), math.log(x)
    return (x - low) / (high - low) * sheet.inner


def _key(marks: Sequence[Mark], kinds: Sequence[str], most: int = 8) -> str:
    counted = [(label, sum(mark.label == label for mark in marks)) for label in kinds[:most]]
    parts = [
        f"{number} {one_line(label, 40)}" + (f" (×{count})" if count > 1 else "")
        for number, (label, count) in enumerate(counted, start=1)
    ]
    rest = f" · and {len(kinds) - most} more in the table" if len(kinds) > most else ""
    return " · ".join(parts) + rest
