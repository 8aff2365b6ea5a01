"""Figures as blocks of HTML, and templates filled: what every page of a report is written with."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from artifacts_schema.errors import UsageError
from flows.report.display import DARK, LIGHT, visible
from flows.report.draw import NARROW
from flows.report.views import PlotView, View, Viewer
from stages.engine.page import Figure

GENERATOR = "Ingot report"
"""The `generator` meta of a report, which identifies it."""


@dataclass(frozen=True)
class Block:
    """A figure as HTML."""

    html: Markup
    title: str

    @property
    def bytes(self) -> int:
        """Size in the file."""
        return len(self.html.encode())


class HtmlWriter:
    """Turns figures into blocks of HTML, and blocks into a page. With `full` all of it is open."""

    def __init__(self, full: bool) -> None:
        self.full = full
        folder = Path(__file__).parent
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folder),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=lambda value: _mask(value),
        )
        self.environment.filters["breakable"] = breakable
        self.macros: Any = self.environment.get_template("figures.html.jinja").module
        self.css = (folder / "report.css").read_text(encoding="utf-8")
        self.viewer = Viewer()

    def blocks(self, figures: Iterable[Figure], level: int = 4) -> list[Block]:
        """Figures under headings of a level."""
        return [self.block(self.viewer.view(figure), level=level) for figure in figures]

    def block(self, view: View, badge: str = "", level: int = 4) -> Block:
        """A figure that is cut already; `badge` is a word beside its title."""
        return Block(self.macros.figure(view, badge, level), view.title)

    def tiles(self, figures: Iterable[Figure | None]) -> list[Block]:
        """Plots of a first page, small and without their notes and numbers; chapters have both."""
        plots = [
            replace(view, note="", table=replace(view.table, rows=()))
            for figure in figures
            if figure is not None
            and isinstance(view := self.viewer.view(figure, widths=(NARROW,)), PlotView)
        ]
        return [self.block(view, level=2) for view in plots]

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        """A template of this folder as text."""
        shared = {
            "css": Markup(_colours() + self.css),
            "generator": f"{GENERATOR} {version('ingot')}",
            "full": self.full,
        }
        return self.environment.get_template(template).render({**shared, **values})


def write_figures(
    title: str, facts: Mapping[str, str], chapters: Mapping[str, Sequence[Figure]], path: Path
) -> Path:
    """Write a page of figures in chapters, in the style of a report, to `path`.

    UsageError if `path` cannot be written.
    """
    writer = HtmlWriter(full=True)
    blocks = [
        (name, f"chapter-{number}", writer.blocks(figures))
        for number, (name, figures) in enumerate(chapters.items())
    ]
    values = {"title": title, "facts": facts, "chapters": blocks}
    return write_page(writer.render("chapters.html.jinja", values), path)


def write_page(html: str, path: Path) -> Path:
    """Write a page to `path` in one move; UsageError if that cannot be done."""
    whole = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        whole.write_text(html, encoding="utf-8")
        os.replace(whole, path)
    except OSError as error:
        raise UsageError(f"cannot write the report: {error.strerror}", where=str(path)) from None
    finally:
        whole.unlink(missing_ok=True)
    return path


def is_report(path: Path) -> bool:
    """Whether the file at `path` is a report of Ingot."""
    with path.open("rb") as file:
        return f'name="generator" content="{GENERATOR}'.encode() in file.read(2_000)


def _mask(value: Any) -> Any:
    """A text of the page with control characters masked; HTML was made of masked texts."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def breakable(text: str) -> Markup:
    """Text of a table that may break after underscores, as long names do, and is copied whole."""
    return Markup("_<wbr>").join(escape(part) for part in visible(text).split("_"))


def _colours() -> str:
    def block(colours: Mapping[str, str]) -> str:
        return "".join(f"--{name}:{value};" for name, value in colours.items())

    return (
        f":root{{color-scheme:light dark;{block(LIGHT)}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{block(DARK)}}}}}\n"
    )
