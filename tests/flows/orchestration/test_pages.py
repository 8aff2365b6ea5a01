"""What the UI is given to show: numbers right, nothing that a document says is markup."""

from __future__ import annotations

from artifacts_schema.manifest import Conservation, InputRef, Manifest
from flows.orchestration.ui import (
    artifact_key,
    figures_page,
    funnel_page,
    lineage_page,
    loss_figure,
)
from stages.engine.page import (
    Axis,
    Column,
    CurveFigure,
    Estimate,
    IntervalFigure,
    Series,
    TableFigure,
    TextFigure,
    number,
)


def manifest(key, parents=(), **conservation):
    inputs = {
        f"role{i}": (InputRef(stage="s", key=p, output="o", kind="documents", digest=p),)
        for i, p in enumerate(parents)
    }
    account = Conservation(**conservation) if conservation else None
    return Manifest.model_construct(stage="s", key=key, inputs=inputs, conservation=account)


def test_the_funnel_shows_the_share_kept_and_the_largest_reasons():
    dropped = {f"r{i}": i for i in range(1, 9)}  # 1 + … + 8 = 36 of 48: a quarter is kept.
    page = funnel_page([("filter", manifest("a", records_in=48, out=12, dropped=dropped))])
    line = page.splitlines()[-1]
    assert line.startswith("| filter | 48 | 12 | 25.0% | ███░░░░░░░░░ | r8 8, r7 7, r6 6,")
    assert line.endswith("r3 3 and 2 more |")


def test_a_step_without_records_has_an_empty_bar():
    page = funnel_page([("filter", manifest("a", records_in=0, out=0, dropped={}))])
    assert "| 0.0% | ░░░░░░░░░░░░ |" in page


def test_lineage_draws_an_edge_for_each_parent_and_names_strangers():
    a, b = "a" * 64, "b" * 64
    page = lineage_page([("web", manifest(a)), ("filter", manifest(b, [a, "c" * 64]))])
    assert '  n0["web"]' in page
    assert "  n0 --> n1" in page
    assert '  n2["s"]\n  n2 --> n1' in page
    assert f"| filter | s | `{b[:12]}` | web, s {'c' * 12} |" in page


def test_nothing_in_a_page_is_markup():
    evil = "<img src=x onerror=alert(1)> | [a](javascript:b) ![c](http://d) `e`\n| f |"
    figure = TableFigure(evil, (Column(evil), number("n")), ((evil, 1),), evil)
    page = figures_page([figure, TextFigure("left out", evil)])
    assert page.count("\\<img") == 4
    assert page.count("<img") == 4
    assert "left out" not in page
    assert "](" not in page.replace("\\](", "")
    assert [line.count(" | ") for line in page.splitlines() if line.startswith("| ")] == [1, 1, 1]


def test_an_evaluation_shows_its_intervals():
    estimate = Estimate("docstrings", 0.25, 0.2, 0.3, baseline=0.25, count=218)
    figure = IntervalFigure("Accuracy", Axis("accuracy", format=".2f"), (estimate,))
    assert "| docstrings | 0.25 | 0.20 | 0.30 | 0.25 | 218 |" in figures_page([figure])


def test_the_first_curve_of_a_loss_is_the_picture():
    axis = Axis("tokens")
    curves = [
        CurveFigure(title, axis, axis, (Series("a", (1.0,), (1.0,)),))
        for title in ("Gradient norm", "Training loss, nats", "Loss by source")
    ]
    assert loss_figure([TextFigure("loss", ""), *curves]) is curves[1]
    assert loss_figure(curves[:1]) is None


def test_keys_are_what_prefect_allows():
    assert artifact_key("progress-quick_start-signals[CC-MAIN-2024]") == (
        "progress-quick-start-signals-cc-main-2024"
    )
