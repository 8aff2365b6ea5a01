"""Every message that the troubleshooting page quotes is one that the code can print."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from docs_pages import DOCS, ROOT
from pydantic import Field

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError

PAGE = DOCS / "troubleshooting.md"
HOLE = "\0"


def skeleton(text: str) -> str:
    """A message without what differs from case to case: holes at its ends are dropped."""
    holes = " ".join(text.replace("…", HOLE).split())
    return re.sub(f"{HOLE}+", HOLE, holes).strip(HOLE + " ")


def quoted() -> list[str]:
    """The first cell of every row of a table of messages."""
    found = re.findall(r"^\| (`+)(.+?)\1 \|", PAGE.read_text(), flags=re.MULTILINE)
    return [text.strip() for _, text in found]


def shown(part: ast.expr) -> str:
    """A part of an f-string: its text, or a hole."""
    return str(part.value) if isinstance(part, ast.Constant) else HOLE


@cache
def in_the_code() -> frozenset[str]:
    """Skeletons of every string of the packages, placeholders as holes."""
    found = set()
    for package in ("artifacts_schema", "stages", "flows", "pools"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(skeleton(node.value))
                elif isinstance(node, ast.JoinedStr):
                    parts = (
                        str(v.value) if isinstance(v, ast.Constant) else HOLE for v in node.values
                    )
                    found.add(skeleton("".join(parts)))
    return frozenset(found)


@pytest.mark.parametrize("message", quoted())
def test_the_message_exists(message):
    assert skeleton(message) in in_the_code()


def test_a_message_that_was_reworded_would_be_found():
    assert skeleton("no ref '…'") in in_the_code()
    assert skeleton("no reference '…'") not in in_the_code()
    assert len(quoted()) > 100


def test_a_value_out_of_range_is_told_as_the_page_shows_it():
    class Limits(Config):
        min_characters: int = Field(default=1, ge=1)

    with pytest.raises(UsageError) as told:
        Limits.parse({"min_characters": 0}, where="x")
    assert told.value.what in " ".join(PAGE.read_text().split())


@pytest.mark.parametrize("page", sorted((DOCS / "stages").glob("*.md")), ids=lambda page: page.stem)
def test_figures_that_a_stage_page_names_are_drawn_by_the_code(page):
    section = " ".join(page.read_text().split("## In a report", 1)[1].split())
    named = re.findall(r"\*\*(.+?)\*\*", section)
    assert named, "nothing is named"
    assert [title for title in named if skeleton(title) not in in_the_code()] == []
