"""What a stage's room contributes to a report: figures in plain form, drawn by whoever shows them.

A room may hold `page.py` with `summary(artifact) -> list[Figure]`: the few figures worth a glance
when a run ends. It reads manifests and tables only, so a page can be made on any machine that sees
the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Literal, cast

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input
from stages.engine.protocol import Stage

Cell = str | int | float | None


@dataclass(frozen=True)
class Column:
    """A column of a figure: its heading, how its cells are shown, and to which side they align."""

    heading: str
    format: str = ""
    align: Literal["left", "right"] = "left"

    def show(self, cell: Cell) -> str:
        """A cell as text; nothing for None."""
        return "" if cell is None else format(cell, self.format)


@dataclass(frozen=True)
class TableFigure:
    """A table with a title; cells are values, not text."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class TextFigure:
    """A short text with a title, such as a generated sample or a path."""

    title: str
    text: str


Figure = TableFigure | TextFigure


@dataclass(frozen=True)
class Artifact:
    """A committed artifact as a page sees it."""

    store: Store
    manifest: Manifest

    def output(self, name: str) -> Input:
        """One of its outputs, readable like a stage's input."""
        return Input.of(self.store, self.manifest, name, full_check=False)

    def place(self, output: str) -> str:
        """Path or URL of an output's folder, for people."""
        return self.store.backend.full(self.store.payload(self.manifest, output))


def number(heading: str, format: str = ",") -> Column:
    """A column of numbers, aligned right."""
    return Column(heading, format, "right")


def summary_of(stage: type[Stage], artifact: Artifact) -> Sequence[Figure]:
    """The figures of a stage's `page.py`; none if its room has no page."""
    package, _, module = stage.__module__.rpartition(".")
    if module != "stage" or find_spec(f"{package}.page") is None:
        return ()
    return cast(Sequence[Figure], import_module(f"{package}.page").summary(artifact))
