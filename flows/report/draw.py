"""Figures in plain form as pictures: SVG for pages, matplotlib figures for notebooks.

Text stays text in the SVG (so that it can be read, searched and set in the reader's font), colours
are names of a style sheet or literal ones, and equal figures give equal bytes.
"""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from flows.report.display import DARK, LIGHT, VARIABLES, visible
from flows.report.hover import add_hover
from flows.report.plots import is_empty, not_drawn, plot
from flows.report.sheet import Sheet
from stages.engine.page import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

WIDE, NARROW = 720, 348
"""Widths in pixels: of a page's column, and of a phone's."""
EMPTY = "Nothing to draw: there are no values."
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_ID = re.compile(r"url\(#([^)]*)\)")
_settings = threading.Lock()
"""matplotlib's settings belong to the process."""


def draw(figure: Plot, axes: Axes | None = None) -> Drawing:
    """A matplotlib figure in the style of reports, for notebooks; or drawn on `axes` given.

    The figure belongs to no backend: as the last value of a cell it shows itself.
    """
    with _style():
        if axes is not None:
            box, scale = axes.get_window_extent(), 72 / axes.figure.dpi
            sheet = Sheet(axes, box.width * scale + 60, height=box.height * scale)
            _fill(sheet, figure, title=True)
            return axes.figure  # type: ignore[return-value]
        return _drawing(figure, WIDE, title=True, paired=False)


def draw_svg(figure: Plot, *, dark: bool = False) -> str:
    """A standalone SVG with its title, on a light or a dark ground."""
    return _svg(figure, WIDE, DARK if dark else LIGHT, alone=True)


def page_svg(
    figure: Plot, *, width: int, prefix: str, paired: bool = False, hover: bool = False
) -> str:
    """An SVG for an HTML page: colours by the page's names, ids that begin with `prefix`.

    Without a title, which the page itself shows. With `hover`, areas that show values.
    """
    return _svg(figure, width, VARIABLES, alone=False, prefix=prefix, paired=paired, hover=hover)


def _drawing(figure: Plot, width: float, *, title: bool, paired: bool) -> Drawing:
    drawing = _drawing_class()(figsize=(width / 72, 4), dpi=72)
    sheet = Sheet(drawing.add_axes((0, 0, 1, 1)), width)
    _fill(sheet, figure, title=title, paired=paired)
    total = sheet.above + sheet.height + sheet.below
    drawing.set_size_inches(width / 72, total / 72)
    sheet.axes.set_position(
        (sheet.left / width, sheet.below / total, sheet.inner / width, sheet.height / total)
    )
    return drawing


@cache
def _drawing_class() -> type[Drawing]:
    from matplotlib.figure import Figure

    class ReportFigure(Figure):
        """A figure that a notebook shows as SVG, whatever backend it has."""

        def _repr_svg_(self) -> str:
            with _style():
                root = _parsed(self)
            _finish(root, LIGHT, label="", sized=True)
            return _to_text(root)

    return ReportFigure


def _fill(sheet: Sheet, figure: Plot, *, title: bool, paired: bool = False) -> None:
    if is_empty(figure):
        sheet.axes.set_axis_off()
        sheet.height = 12.0
        sheet.note_below(EMPTY)
    else:
        plot(figure, sheet, paired=paired)
        if title:
            sheet.note_below(not_drawn(figure))
    if title:
        sheet.title(figure.title)


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "ingot",
        "text.parse_math": False,
        "text.usetex": False,
        "font.family": "sans-serif",
        "axes.unicode_minus": True,
        "path.simplify": False,
        "figure.facecolor": LIGHT["surface"],
        "axes.facecolor": "none",
    }
    with _settings, warnings.catch_warnings(), matplotlib.rc_context(settings):
        # The viewer of the SVG sets the text, in fonts that have the character.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _svg(
    figure: Plot,
    width: int,
    colours: Mapping[str, str],
    *,
    alone: bool,
    prefix: str = "",
    paired: bool = False,
    hover: bool = False,
) -> str:
    with _style():
        drawing = _drawing(figure, width, title=alone, paired=paired)
        drawing.patch.set_visible(alone)
        root = _parsed(drawing)
    label = visible(f"{figure.title}. {figure.note}".strip(" ."))
    _finish(root, colours, label=label, sized=alone, prefix=prefix)
    if hover and not is_empty(figure):
        add_hover(root, figure, drawing.axes[0])
    return _to_text(root)


def _parsed(drawing: Drawing) -> ElementTree.Element:
    """The SVG of matplotlib, without date and creator."""
    raw = io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    drawing.savefig(raw, format="svg", metadata=nothing, dpi=72)
    return ElementTree.fromstring(raw.getvalue())


def _finish(
    root: ElementTree.Element,
    colours: Mapping[str, str],
    *,
    label: str,
    sized: bool,
    prefix: str = "",
) -> None:
    _tidy(root, {literal: colours[name] for name, literal in LIGHT.items()}, prefix)
    _describe(root, label, sized=sized)


def _to_text(root: ElementTree.Element) -> str:
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _tidy(root: ElementTree.Element, colours: Mapping[str, str], prefix: str) -> None:
    """Rename colours, round numbers, remove fonts and unused ids."""
    used = {name for element in root.iter() for name in _references(element)}
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name == "id":
                if value in used:
                    element.set("id", prefix + value)
                else:
                    del element.attrib["id"]
            elif name == "style":
                element.set("style", _restyled(value, colours, prefix))
            elif name == f"{{{_XLINK}}}href":
                element.set(name, f"#{prefix}{value.removeprefix('#')}")
            elif name == "clip-path":
                element.set(name, _ID.sub(rf"url(#{prefix}\1)", value))
            elif name in ("d", "x", "y", "transform", "width", "height"):
                rounded = _LONG_NUMBER.sub(lambda m: f"{float(m[0]):.2f}", value)
                element.set(name, " ".join(rounded.split()))
        if element.tag == f"{{{_SVG}}}defs":
            for style in element.findall(f"{{{_SVG}}}style"):
                element.remove(style)
        if element.tag != f"{{{_SVG}}}text":
            element.text = None
        element.tail = None


def _references(element: ElementTree.Element) -> list[str]:
    names = [match for value in element.attrib.values() for match in _ID.findall(value)]
    href = element.get(f"{{{_XLINK}}}href")
    return [*names, href.removeprefix("#")] if href else names


def _restyled(style: str, colours: Mapping[str, str], prefix: str) -> str:
    style = _COLOUR.sub(lambda match: colours.get(match[0], match[0]), style)
    style = _ID.sub(rf"url(#{prefix}\1)", style)
    parts = (part.strip() for part in style.split(";"))
    return "; ".join(part for part in parts if part and not part.startswith("font-family"))


def _describe(root: ElementTree.Element, label: str, *, sized: bool) -> None:
    _, _, width, height = root.get("viewBox", "0 0 1 1").split()
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    if sized:
        root.set("width", width)
        root.set("height", height)
    root.set("role", "img")
    if label:
        root.set("aria-label", label)
    root.set("style", f"font-family: {FONTS}; stroke-linejoin: round")
