"""docs/how-to/follow-a-document.md names functions where they are, and maps as such."""

from __future__ import annotations

import ast
import re

import pytest
from docs_pages import DOCS, ROOT

PAGE = DOCS / "how-to" / "follow-a-document.md"
ROW = re.compile(r"^\| (\*\*map\*\* )?`([\w.]+)` \| `([\w/]+\.py)` \|", re.MULTILINE)
ROWS = [match.groups() for match in ROW.finditer(PAGE.read_text())]


def defined(path: str) -> set[str]:
    """Functions and classes of a file, and methods as CLASS.METHOD."""
    names = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{one.name}" for one in node.body if hasattr(one, "name")}
    return names


def mapped(room: str) -> set[str]:
    """The functions that a room gives to `context.map`, also by the name `run_map`."""
    source = "".join(path.read_text() for path in sorted((ROOT / room).rglob("*.py")))
    return set(re.findall(r"(?:context\.map|\brun_map)\(\s*(\w+)", source))


def test_the_page_has_its_rows():
    assert len(ROWS) > 25
    assert all(path.startswith("stages/") for *_, path in ROWS)


@pytest.mark.parametrize(("mark", "name", "path"), ROWS, ids=lambda value: str(value))
def test_a_function_is_where_the_page_says(mark, name, path):
    assert name in defined(path)
    is_map = name in mapped("/".join(path.split("/")[:2]))
    assert is_map == bool(mark)


def test_functions_named_in_the_text_are_there():
    text = " ".join(PAGE.read_text().split())
    named = re.findall(r"`(\w+)` in `(stages/[\w/]+\.py)`", text)
    assert len(named) == 3
    assert all(name in defined(path) for name, path in named)
