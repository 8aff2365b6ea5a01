"""The head of a column: which cell it is, and where a table ends."""

from __future__ import annotations

from stages.signals.named_values import find_head


def test_the_cell_of_the_first_row_in_the_same_column() -> None:
    text = "before\nName,Phone,City\nAnn,1,Rome\nBob,2,Oslo\n"
    assert find_head(text, text.index("2,Oslo")) == "Phone"
    assert find_head(text, text.index("Oslo")) == "City"
    assert find_head(text, text.index("Ann")) == ""  # Nothing parts the first cell.


def test_tables_of_strokes_and_tabs_and_rows_without_one() -> None:
    assert find_head("| a | b |\n|---|---|\n| 1 | 2 |", 27).strip() == "b"
    assert find_head("a\tb\n1\t2", 6) == "b"
    assert find_head("a line\nanother 2", 15) == ""
    assert find_head("a,b", 2) == ""


def test_a_row_longer_than_a_row_is_no_table() -> None:
    assert find_head("a,b\n" + "x" * 1200 + ",2", 1205) == ""
