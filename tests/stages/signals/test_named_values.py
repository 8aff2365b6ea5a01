"""The head of a column: which cell it is, and where a table ends."""

from __future__ import annotations

import pytest

from stages.signals.named_values import find_cells, find_head, find_inserted, may_join


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


def test_the_cells_below_a_head_are_without_quotes_and_markup() -> None:
    table = "| User | Password |\n|---|---|\n| ann | `a1` |\n| bob | **b2** |\nend"
    rows = "user,password\nann,'a1'\nbob,b2\n"
    for text in (table, rows):
        place = text.lower().index("password")
        assert [text[a:b] for a, b in find_cells(text, place)] == ["a1", "b2"]


@pytest.mark.parametrize(
    "text",
    [
        "f(user, password)\ng(x, a1)",  # Brackets: code.
        "import user, password\nimport os, a1",
        "  user,\n  password,\n  host,",  # Arguments, one a line.
        "x,y\nuser,password\n1,a1",  # A row above: no head.
        "user,password\nann,7,a1",  # Another number of cells.
    ],
)
def test_lines_of_code_and_rows_are_no_head(text: str) -> None:
    assert list(find_cells(text, text.index("password"))) == []


def test_literals_of_an_insert_stand_in_its_columns() -> None:
    text = "INSERT INTO users (id, name, \"pw\") VALUES (1, 'o''hara, x', 'a1'), (2, f(3), 'b2');"
    assert [(column, text[a:b]) for column, a, b in find_inserted(text)] == [
        ("name", "o''hara, x"),
        ("pw", "a1"),
        ("pw", "b2"),
    ]
    assert list(find_inserted("INSERT INTO users (id) SELECT 'a1'")) == []


def test_few_words_a_sign_or_a_verb_may_join() -> None:
    for between in (
        "key ",
        "key for the shop ",
        "key of our big new shop here is ",
        "key a b c d e: ",
    ):
        assert may_join(between), between
    assert not may_join("key 3fA9 key 7bC2 key 9dE1 ")
