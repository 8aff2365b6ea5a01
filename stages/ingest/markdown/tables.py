"""Tables of a page: which are data and not layout, and how GitHub's pipe tables write them.

The format: https://github.github.com/gfm/#tables-extension-
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode

WIDEST = 64
"""Columns of a table that is written as one."""
LONGEST_CELL = 1_000
_NOT_IN_CELLS = frozenset(
    {"table", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "hr", "form", "article"}
)


@dataclass(slots=True)
class Table:
    """A data table under construction; cells are Markdown on one line."""

    rows: list[list[str]] = field(default_factory=list)
    spanned: dict[int, int] = field(default_factory=dict)
    """Column → rows below that a cell above still covers."""

    def start_row(self) -> None:
        """Begin a row, with an empty cell for each that a cell above covers."""
        self.rows.append([])
        self._skip_spanned()

    def add(self, text: str, attributes: dict[str, str | None]) -> None:
        """Add a cell and the empty ones that it spans; beyond `WIDEST` text joins the last cell."""
        if not self.rows:
            self.start_row()
        row = self.rows[-1]
        if len(row) >= WIDEST:
            row[-1] = f"{row[-1]} {text}".strip()
            return
        across = min(_span(attributes.get("colspan")), WIDEST - len(row))
        down = _span(attributes.get("rowspan")) - 1
        for column in range(len(row), len(row) + across):
            if down > 0:
                self.spanned[column] = down
        row += [text.replace("|", "\\|")] + [""] * (across - 1)
        self._skip_spanned()

    def lines(self) -> list[str]:
        """The table's lines; the first row is its head, for the format has no table without one."""
        rows = [row for row in self.rows if any(row)]
        if not rows:
            return []
        width = max(len(_trimmed(row)) for row in rows)
        head = _trimmed(rows[0])
        head += [""] * (width - len(head))
        body = [_trimmed(row) for row in rows[1:]]
        return [_line(head), _line(["---"] * width), *map(_line, body)]

    def _skip_spanned(self) -> None:
        row = self.rows[-1]
        while len(row) < WIDEST and self.spanned.get(len(row), 0) > 0:
            self.spanned[len(row)] -= 1
            row.append("")


def is_data_table(table: LexborNode, kept: Collection[int]) -> bool:
    """Whether a table's kept text is rows of short cells, and not a page laid out in a grid.

    Data has two cells with text in one row, and two such rows or a heading cell; its cells hold no
    table, heading, quote or block of code. The look ends at the first thing that data has not, so a
    table's own cells are looked at once, however deep tables nest.
    """
    if (table.attributes.get("role") or "").lower() in ("presentation", "none"):
        return False
    rows = filled = widest = characters = 0
    headed = cell_has_text = begun = False
    path: list[LexborNode] = []
    node = table.first_child
    while node is not None:
        tag = node.tag
        if tag in _NOT_IN_CELLS or (tag == "caption" and begun):
            return False
        if tag == "tr":
            begun = True
            rows += filled > 0
            widest, filled = max(widest, filled), 0
        elif tag in ("td", "th"):
            headed = headed or tag == "th"
            characters, cell_has_text = 0, False
        elif tag == "-text" and node.mem_id in kept and (text := (node.text_content or "").strip()):
            characters += len(text)
            if characters > LONGEST_CELL:
                return False
            filled += not cell_has_text
            cell_has_text = True
        if (child := node.first_child) is not None:
            path.append(node)
            node = child
            continue
        following = node.next
        while following is None and path:
            following = path.pop().next
        node = following
    rows += filled > 0
    widest = max(widest, filled)
    return 2 <= widest <= WIDEST and (rows >= 2 or headed)


def _span(value: str | None) -> int:
    """A colspan or rowspan, 1 where it is no sensible number."""
    value = (value or "").strip()
    return (
        min(int(value), 1_000) or 1 if value.isascii() and value.isdigit() and len(value) < 5 else 1
    )


def _trimmed(row: list[str]) -> list[str]:
    """A row without the empty cells at its end."""
    end = len(row)
    while end > 1 and not row[end - 1]:
        end -= 1
    return row[:end]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
