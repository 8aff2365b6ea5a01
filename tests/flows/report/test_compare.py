"""Two runs side by side: the same is said to be the same, and every change is marked."""

from __future__ import annotations

import re

import pytest

from flows.recipe.execute import execute
from flows.report.compare import merged_table, overlay, pair_figures
from flows.report.report import report_html
from stages.engine.page import (
    Axis,
    BarFigure,
    Bars,
    Column,
    CurveFigure,
    Estimate,
    HistogramFigure,
    IntervalFigure,
    Series,
    TableFigure,
    TextFigure,
    number,
)

A = TableFigure("t", (Column("name"), number("n"), number("share", ".1%")),
                (("same", 1, 0.5), ("moved", 10, 0.25), ("gone", 3, None)))  # fmt: skip
B = TableFigure("t", (Column("name"), number("n"), number("share", ".1%")),
                (("moved", 12, 0.75), ("same", 1, 0.5), ("new", 7, 0.1)))  # fmt: skip


def test_changed_cells_hold_both_values_and_the_difference():
    view = merged_table(A, B)
    names = [row[0].text for row in view.rows]
    assert names == ["moved", "same", "new", "gone"]
    assert view.only == ("", "", "B", "A")
    moved, same = view.rows[0], view.rows[1]
    assert [(c.was, c.text, c.delta) for c in moved[1:]] == [
        ("10", "12", "+2"),
        ("25.0%", "75.0%", "+50.0%"),
    ]
    assert not any(cell.changed for cell in same)
    assert [cell.text for cell in view.rows[3]] == ["gone", "3", ""]


def test_rows_that_share_a_name_are_told_apart_by_all_their_names():
    columns = (Column("benchmark"), Column("metric"), number("value"))
    a = TableFigure("t", columns, (("x", "loss", 2), ("x", "accuracy", 5)))
    b = TableFigure("t", columns, (("x", "accuracy", 6), ("x", "loss", 2)))
    rows = merged_table(a, b).rows
    assert [(row[1].text, row[2].changed) for row in rows] == [("accuracy", True), ("loss", False)]


def test_tables_of_other_columns_are_not_merged():
    assert merged_table(A, TableFigure("t", (Column("other"),), ())) is None


def test_rows_that_are_wholly_alike_in_name_are_matched_in_order():
    columns = (number("n"), number("m"))
    a = TableFigure("t", columns, ((1, 1), (1, 2)))
    b = TableFigure("t", columns, ((1, 1), (1, 3)))
    rows = merged_table(a, b).rows
    assert [[cell.changed for cell in row] for row in rows] == [[False, False], [False, True]]


def test_figures_are_matched_by_kind_and_title_with_numbers_aside():
    a = [TextFigure("over 2,386,842 tokens", "a"), TextFigure("only a", ""), A]
    b = [B, TextFigure("over 99 tokens", "b"), TextFigure("only b", "")]
    pairs = pair_figures(a, b)
    assert [(pair.a, pair.b) for pair in pairs] == [
        (A, B),
        (a[0], b[1]),
        (None, b[2]),
        (a[1], None),
    ]


def curve(*names: str) -> CurveFigure:
    return CurveFigure(
        "c", Axis("x"), Axis("y"), tuple(Series(n, (1, 2), (1.0, len(n))) for n in names)
    )


def test_curves_lie_over_each_other_as_pairs_of_both_runs():
    both = overlay(curve("loss", "old"), curve("loss", "fresh"))
    names = [series.name for series in both.series]
    assert names == ["loss · A", "loss · B", "fresh · A", "fresh · B", "old · A", "old · B"]
    assert both.series[2].x == ()


def test_bars_and_estimates_of_both_runs_stand_beside_each_other():
    a = BarFigure("b", ("x", "y"), Axis("n"), (Bars("n", (1, 2)),))
    b = BarFigure("b", ("y", "z"), Axis("n"), (Bars("n", (3, 4)),))
    both = overlay(a, b)
    assert both.labels == ("y", "z", "x")
    assert [series.values for series in both.series] == [(2, None, 1), (3, 4, None)]
    a = IntervalFigure("i", Axis("v"), (Estimate("e", 1.0),))
    b = IntervalFigure("i", Axis("v"), (Estimate("e", 2.0),))
    assert [e.name for e in overlay(a, b).estimates] == ["e · A", "e · B"]


def test_histograms_of_other_bins_stay_apart():
    a = HistogramFigure("h", Axis("v"), (0, 1, 2), (Bars("n", (1, 2)),))
    b = HistogramFigure("h", Axis("v"), (0, 2, 4), (Bars("n", (1, 2)),))
    assert overlay(a, b) is None
    assert overlay(a, HistogramFigure("h", Axis("v"), (0, 1, 2), (Bars("n", (3, 4)),))) is not None


# The page ----------------------------------------------------------------------------------------


@pytest.fixture
def two_runs(open_pipeline, inline, store, given_pages):
    """`demo` with lines of four characters or more, then with those of five or more."""
    execute(open_pipeline(), dispatch=inline)
    first = store.ref("demo/choose").key
    execute(open_pipeline("choose.least.characters=5"), dispatch=inline)
    return first


def against(store):
    from artifacts_schema.store.runs import run_ids

    return f"demo@{run_ids(store, 'demo')[0]}"


def test_what_changed_is_said_first_with_its_cause(two_runs, store, read_page):
    html = report_html(store, "demo", against=against(store))
    page = read_page(html)
    assert html.index('id="changed"') < html.index('id="funnel"') < html.index('id="steps"')
    assert "config least.characters: 4 → 5" in page.text
    assert two_runs[:12] in page.text
    assert store.ref("demo/choose").key[:12] in page.text
    # Of the 4 lines of four characters or more, "beta" alone has less than five.
    assert "4" in page.marked["del"]
    assert "3" in page.marked["ins"]
    assert "-1" in page.marked["small"]


def test_steps_with_equal_keys_are_the_same_and_shown_once(two_runs, store, read_page, given_pages):
    given_pages(lines=[TextFigure("once", "read")], choose=[TextFigure("twice", "chosen")])
    html = report_html(store, "demo", against=against(store))
    page = read_page(html)
    assert "Figures, the same in A and B" in page.text
    assert page.text.count("once") == 2, "one for each of the two steps of that stage"
    steps = html[html.index('id="steps"') :]
    assert '<span class="badge same">same</span>' in steps
    assert '<span class="badge changed">changed</span>' in steps


def test_every_kind_of_figure_is_compared(two_runs, store, read_page, given_pages, kinds):
    given_pages(
        choose=lambda artifact: kinds("first" if artifact.manifest.key == two_runs else "other")
    )
    assert "only in A" in read_page(report_html(store, "demo", against=against(store))).text
    given_pages(choose=kinds())
    text = read_page(report_html(store, "demo", against=against(store))).text
    assert "only in A" not in text


def test_a_run_against_itself_changed_nothing(two_runs, store, read_page):
    page = read_page(report_html(store, "demo", against="demo"))
    assert "changed" not in [text.strip() for text in page.texts if text.strip() != "What changed"]
    assert not page.marked.get("ins", [])[1:], "only the key to the marks"


def test_two_keys_are_compared_as_the_same_step(two_runs, store, read_page):
    second = store.ref("demo/choose").key
    page = read_page(report_html(store, second, against=two_runs))
    assert "config least.characters: 4 → 5" in page.text


def test_an_unfinished_run_can_be_compared(two_runs, store, read_page):
    from artifacts_schema.store.gc import remove_artifact

    ref = store.ref("demo/choose")
    remove_artifact(store, store.manifest(ref.stage, ref.key))
    page = read_page(report_html(store, "demo", against=against(store)))
    assert re.search(r"B: .*collected", page.text)
