"""The tables in docs/ are what the code says, and every stage has its page."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Literal

import pytest
from docs_pages import DOCS
from pydantic import Field

from artifacts_schema.config import Config
from stages.engine.protocol import Many, Maybe, One

SECTIONS = [
    "Run it alone", "Inputs", "Config", "Execution", "Outputs", "How it resumes",
    "What it refuses", "How fast", "In a report",
]  # fmt: skip
BLOCKS = ("facts", "inputs", "config", "execution", "outputs")


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_tables_are_current(generate, capsys):
    assert generate.main(["--check"]) == 0, capsys.readouterr().out


def test_every_stage_has_a_page_with_every_section(generate):
    written = {path.stem for path in (DOCS / "stages").glob("*.md")}
    assert written == set(generate.own_stages())
    for name in written:
        text = (DOCS / "stages" / f"{name}.md").read_text()
        heads = [line[3:] for line in text.splitlines() if line.startswith("## ")]
        assert heads == SECTIONS, name
        for block in BLOCKS:
            assert f"<!-- generated: {block} -->" in text, (name, block)


def test_check_names_the_stale_line_and_rewriting_repairs_it(
    generate, tmp_path, monkeypatch, capsys
):
    page = tmp_path / "docs" / "stages" / "dedup.md"
    page.parent.mkdir(parents=True)
    fresh = (DOCS / "stages" / "dedup.md").read_text()
    row = "| `max_bucket` | int | `{}` |"
    page.write_text(fresh.replace(row.format(128), row.format(33)))
    monkeypatch.setattr(generate, "DOCS", tmp_path / "docs")
    assert generate.main(["--check"]) == 1
    assert f"-{row.format(33)}" in capsys.readouterr().out
    assert generate.main([]) == 0
    assert page.read_text() == fresh
    assert generate.main(["--check"]) == 0


def test_an_unknown_block_is_an_error(generate):
    with pytest.raises(ValueError, match="no generated block 'confg'"):
        generate.rewrite_page(
            "<!-- generated: confg -->\n<!-- end -->", generate.stage_named("dedup")
        )


class Inner(Config):
    share: float = Field(default=0.5, gt=0, le=1, description="A share.")


class Toy(Config):
    form: Literal["a", "b"] | None = Field(default="a", description="A | B.")
    inner: Inner = Field(default=Inner(share=0.25), description="Nested.")
    perhaps: Inner | None = Field(default=Inner(), description="Null for none.")
    seldom: Inner | None = Field(default=None, description="None unless told.")
    many: tuple[Inner, ...] = Field(default=(Inner(), Inner(share=1)), description="Repeated.")
    size: int = Field(ge=1, lt=2**20, description="No default.")


def test_a_settings_table_shows_nested_fields_bounds_and_the_defaults_that_hold(generate):
    text = generate.settings_table(Toy).replace(generate.NO_BREAK, " ")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines()]
    assert rows[2:] == [
        ["`form`", "`a` or `b` or null", '`"a"`', "", r"A \| B."],
        ["`inner`", "settings", "see below", "", "Nested."],
        ["`inner.share`", "float", "`0.25`", "> 0, ≤ 1", "A share."],
        ["`perhaps`", "settings or null", "see below", "", "Null for none."],
        ["`perhaps.share`", "float", "`0.5`", "> 0, ≤ 1", "A share."],
        ["`seldom`", "settings or null", "`null`", "", "None unless told."],
        ["`seldom.share`", "float", "`0.5`", "> 0, ≤ 1", "A share."],
        ["`many`", "list of settings", '`[{}, {"share": 1.0}]`', "", "Repeated."],
        ["`many[].share`", "float", "`0.5`", "> 0, ≤ 1", "A share."],
        ["`size`", "int", "required", "≥ 1, < 2^20", "No default."],
    ]


def test_how_many_is_told_in_words(generate):
    roles = [One("documents"), Maybe("documents"), Many("documents"), Many("documents", 1)]
    told = [generate.how_many(role) for role in roles]
    assert told == ["one", "one or none", "any number", "one or more"]
