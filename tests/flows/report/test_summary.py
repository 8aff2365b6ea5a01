"""The end of a run: every record in the funnel, every figure as a table or text."""

from __future__ import annotations

import pytest

from artifacts_schema.manifest import Code, Conservation, Manifest
from flows.report.overview import figures_to_json, print_figures, records_table, summarise
from stages.engine.page import Column, TableFigure, TextFigure, number


def made(stage: str, conservation: Conservation | None) -> Manifest:
    return Manifest(
        stage=stage, version=1, key="a" * 64, reproducible="bytes", config={}, identity={},
        inputs={}, outputs={}, attempt="x", code=Code(digest="0" * 64, libraries={}),
        conservation=conservation,
    )  # fmt: skip


def test_the_funnel_has_a_row_for_each_step_that_accounts_and_reasons_by_count():
    dropped = {"short": 2, "near_duplicate": 7, "contamination": 2}
    steps = [
        ("web", made("ingest", Conservation(records_in=20, out=20))),
        ("tokens", made("pretrain", None)),
        ("filter", made("filter", Conservation(records_in=20, out=9, dropped=dropped))),
    ]
    assert records_table(steps).rows == (
        ("web", 20, 20, ""),
        ("filter", 20, 9, "near_duplicate 7, contamination 2, short 2"),
    )


def test_figures_are_plain_values_for_json():
    table = TableFigure("T", (Column("a"), number("b", ".1f")), (("x", 1.25), ("y", None)))
    assert figures_to_json([table, TextFigure("S", "text")]) == [
        {"title": "T", "rows": [{"a": "x", "b": 1.25}, {"a": "y", "b": None}]},
        {"title": "S", "text": "text"},
    ]


def test_printed_numbers_align_and_text_is_never_markup(capsys):
    table = TableFigure("T", (Column("name"), number("n")), (("[red]x[/red]", 1234567), ("y", 8)))
    print_figures([table, TextFigure("Sample", "[bold]not bold[/bold]")])
    lines = capsys.readouterr().out.splitlines()
    assert "[bold]not bold[/bold]" in lines
    first = next(line for line in lines if "[red]x[/red]" in line)
    second = next(line for line in lines if line.startswith("y"))
    assert first.rstrip().endswith("1,234,567")
    assert len(first.rstrip()) == len(second.rstrip())


@pytest.mark.parametrize("stage", ["lines", "choose"])
def test_steps_without_records_or_a_page_add_nothing_and_no_empty_funnel(store, stage):
    figures = summarise(store, [("step", made(stage, None))])
    assert list(figures) == []
