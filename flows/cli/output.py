"""What commands print: aligned tables, sizes, JSON; colour and lines only on a terminal.

All output of commands passes through here, so that no text from outside reaches a terminal raw.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from artifacts_schema.errors import printable, printable_json, printable_lines, printable_text

clean = printable


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print lines on stdout (stderr with `err`)."""
    click.echo(printable_text(text), err=err, nl=nl)


def echo_styled(runs: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Print runs of text, each in a style (arguments of `click.style`), on stdout."""
    click.echo("".join(click.style(printable_text(text), **style) for text, style in runs))


def echo_error(error: object) -> None:
    """Print an error on stderr, its further lines indented."""
    click.echo(printable_lines(f"error: {error}"), err=True)


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers are aligned right; `wraps` may be broken over lines."""

    title: str
    right: bool = False
    wraps: bool = False


def print_json(value: Any) -> None:
    """One JSON value on stdout."""
    click.echo(printable_json(json.dumps(value, indent=2, ensure_ascii=False)))


def print_table(columns: Sequence[Column | str], rows: Sequence[Sequence[Any]]) -> None:
    """A table on stdout: drawn on a terminal, aligned plain text elsewhere."""
    heads = [column if isinstance(column, Column) else Column(column) for column in columns]
    cells = [[clean("" if cell is None else str(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(heads, cells)
    else:
        for line in plain_table(heads, cells):
            echo(line)


def plain_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of an aligned table, two spaces between columns, none at the ends of lines."""
    from rich.cells import cell_len

    titles = [[column.title for column in columns]] if any(c.title for c in columns) else []
    lines = [*titles, *rows]
    widths = [max((cell_len(line[i]) for line in lines), default=0) for i in range(len(columns))]

    def padded(text: str, i: int) -> str:
        space = " " * (widths[i] - cell_len(text))
        return space + text if columns[i].right else text + space

    return ["  ".join(padded(text, i) for i, text in enumerate(line)).rstrip() for line in lines]


def _draw(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    titled = any(column.title for column in columns)
    console = Console()
    if titled and _least_width(columns, rows) > console.width:
        _print_records(columns, rows)
        return
    table = Table(box=SIMPLE_HEAD if titled else None, show_header=titled, pad_edge=False)
    for column in columns:
        justify: Any = "right" if column.right else "left"
        table.add_column(column.title, justify=justify, no_wrap=not column.wraps, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


BETWEEN = 3
"""Cells between two columns of a drawn table."""
LEAST_WRAPPED = 12
"""Cells that a column whose text is broken over lines needs to stay readable."""


def _least_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Cells below which a drawn table breaks inside words."""
    from rich.cells import cell_len

    lines = [[column.title for column in columns], *rows]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(columns))]
    least = [
        min(width, LEAST_WRAPPED) if column.wraps else width
        for column, width in zip(columns, widths, strict=True)
    ]
    return sum(least) + BETWEEN * len(columns)


def _print_records(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Each row as names and values: for a table that is wider than the terminal."""
    for number, row in enumerate(rows):
        if number:
            echo()
        print_fields([(column.title, cell) for column, cell in zip(columns, row, strict=True)])


def print_fields(fields: Sequence[tuple[str, Any]]) -> None:
    """Names and values, one a line, values aligned; empty ones are omitted."""
    filled = [(name, str(value)) for name, value in fields if value not in (None, "", [], {}, ())]
    width = max((len(name) for name, _ in filled), default=0)
    for name, value in filled:
        first, *rest = value.splitlines() or [""]
        echo(f"{name.ljust(width)}  {first}")
        for line in rest:
            echo(f"{' ' * width}  {line}")


def excerpt(text: str, most: int = 80) -> str:
    """The beginning of a text on one line."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def size(count: float) -> str:
    """Bytes for people: `1.2 MB`."""
    from artifacts_schema.config import format_bytes  # pydantic, which `ingot --help` does without.

    return format_bytes(count)


def duration(seconds: float) -> str:
    """Seconds for people: `4.2 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def format_value(value: Any) -> str:
    """A number with separators and at most four significant digits; anything else as text."""
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
