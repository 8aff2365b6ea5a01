"""The head of the column of a table in which a value stands: what names numbers and secrets."""

from __future__ import annotations

_MOST_ROWS, _LONGEST_ROW = 50, 1000
"""Rows of a table, and characters of a row, over which the head of a column is searched."""


def find_head(text: str, start: int) -> str:
    """The cell of the first row in the column of `start`; nothing outside a table.

    Cells are parted by `|`, tabs, semicolons or commas; the rows lie one below the other.
    """
    begin = text.rfind("\n", max(0, start - _LONGEST_ROW), start) + 1
    row = text[begin:start]
    separator = next((sign for sign in "|\t;," if sign in row), "")
    if not begin or not separator or len(row) > _LONGEST_ROW:
        return ""
    head = ""
    for _ in range(_MOST_ROWS):
        above = text.rfind("\n", max(0, begin - 1 - _LONGEST_ROW), max(0, begin - 1)) + 1
        line = text[above : max(0, begin - 1)]
        if separator not in line:
            break
        head, begin = line, above
        if not begin:
            break
    cells, column = head.split(separator), row.count(separator)
    return cells[column] if column < len(cells) else ""
