"""The whole file: one run as HTML that asks for nothing, runs nothing and hides nothing."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from artifacts_schema.errors import IngotError, InputError, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.gc import remove_artifact
from flows.recipe.execute import execute
from flows.report import report
from flows.report.html import is_report
from flows.report.overview import facts, funnel
from flows.report.report import plain_report, report_html, write_report
from flows.report.subject import find_subject, load_pages
from stages.engine.page import (
    Axis,
    Column,
    CurveFigure,
    Estimate,
    IntervalFigure,
    Sample,
    SamplesFigure,
    Series,
    TableFigure,
    TextFigure,
    number,
)

HOSTILE = (
    "<script>alert(1)</script></style></pre></svg><img src=https://evil.example/x onerror=alert(2)>"
    "{{ 7*7 }}{% raw %}<!-- ]]> &lt; \" ' $x$ \x00\x1b[31m\u202egnp.exe\u2069\ud800"
)
SEEN = HOSTILE.replace("\x00\x1b", "··").replace("\u202e", "·").replace("\u2069", "·")[:-1] + "·"


@pytest.fixture
def ran(open_pipeline, inline, store) -> Store:
    execute(open_pipeline(), dispatch=inline)
    return store


def test_a_run_is_told_whole(ran, read_page):
    page = read_page(report_html(ran, "demo"))
    assert "read[crawl-A]" in page.text
    assert "A document a line; empty lines are rejected." in page.text
    assert "records read" in page.text
    key = ran.ref("demo/choose").key
    assert key[:12] in page.text
    assert page.tags.count("h1") == 1
    assert 'lang="en"' in report_html(ran, "demo")


def test_headings_go_down_one_level_at_a_time(ran, kinds, given_pages):
    given_pages(choose=kinds(), lines=kinds())
    levels = [int(level) for level in re.findall(r"<h([1-6])", report_html(ran, "demo"))]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_the_same_store_gives_the_same_bytes(ran, kinds, given_pages, tmp_path):
    given_pages(choose=kinds())
    first = write_report(ran, "demo", tmp_path / "a.html").read_bytes()
    again = write_report(Store.open(ran.url), "demo", tmp_path / "b.html").read_bytes()
    assert first == again


def test_every_kind_of_figure_is_shown_with_its_data(ran, kinds, given_pages, read_page):
    given_pages(choose=kinds())
    html = report_html(ran, "demo")
    page = read_page(html)
    for figure in kinds():
        assert figure.title in page.text
    assert html.count("The numbers behind it") >= 6
    assert page.marked["mark"] == ["name"]
    assert "1,200" in page.text


def test_hostile_text_is_shown_and_never_part_of_the_page(ran, kinds, given_pages, read_page):
    given_pages(choose=kinds(HOSTILE))
    html = report_html(ran, "demo")
    page = read_page(html)
    assert SEEN in page.text
    assert "49" not in re.findall(r"\{\{.{0,20}", page.text)
    for obeyed in ("\x00", "\x1b", "\u202e", "\u2069", "\ud800"):
        assert obeyed not in html
    assert "alert(1)" in page.text
    html.encode()


def test_what_the_run_itself_says_is_shown_as_text_too(ran, read_page, open_pipeline, inline):
    execute(open_pipeline('choose.note="<script>alert(3)</script>"'), dispatch=inline)
    assert "<script>alert(3)</script>" in read_page(report_html(ran, "demo")).text


def test_a_megabyte_in_one_line_is_cut_with_a_note(ran, given_pages, read_page):
    text = "x" * 1_000_000
    given_pages(
        choose=[
            TextFigure("t", text),
            SamplesFigure("s", (Sample("g", text, text),)),
            TableFigure(text, (Column(text),), ((text,),)),
            CurveFigure("c", Axis(text), Axis(text), (Series(text, (1, 2), (1.0, 2.0)),)),
        ]
    )
    html = report_html(ran, "demo")
    assert len(html) < 1_500_000
    assert "980,000" in read_page(html).text


# Runs that are not whole -------------------------------------------------------------------------


def test_a_failed_run_says_so_and_shows_what_is_there(
    open_pipeline, inline, store, project, read_page
):
    (project / "data/b/three.txt").write_text("good\nFAIL\n")
    with pytest.raises(IngotError):
        execute(open_pipeline(), dispatch=inline)
    page = read_page(report_html(store, "demo"))
    assert re.search(r"This run failed: \d+ of \d+ steps are made \(.*1 failed.*\)", page.text)
    assert "ValueError" in page.text
    assert store.ref("demo/read[crawl-A]").key[:12] in page.text


def test_collected_artifacts_are_named_in_their_place(ran, read_page):
    ref = ran.ref("demo/read[crawl-A]")
    remove_artifact(ran, ran.manifest(ref.stage, ref.key))
    page = read_page(report_html(ran, "demo/choose"))
    states = [step.state for step in find_subject(ran, "demo/choose").steps]
    assert "collected" in states
    assert "collected" in page.text


def test_a_page_whose_input_was_collected_says_so_and_costs_itself_alone(
    ran, given_pages, read_page
):
    ref = ran.ref("demo/read[crawl-A]")
    remove_artifact(ran, ran.manifest(ref.stage, ref.key))
    given_pages(
        choose=lambda artifact: artifact.input("documents") and (),
        measure=[TextFigure("still", "here")],
    )
    page = read_page(report_html(ran, "demo"))
    assert "collected" in page.text
    assert "still" in page.text


def test_a_page_that_raises_is_one_line_and_a_traceback_in_the_log(
    ran, given_pages, read_page, caplog
):
    given_pages(choose=ZeroDivisionError("by <b>zero</b>"), lines=InputError("gone"))
    page = read_page(report_html(ran, "demo"))
    assert "ZeroDivisionError: by <b>zero</b>" in page.text
    assert "Traceback" in caplog.text
    assert caplog.text.count("Traceback") == 1


def test_a_stage_that_is_not_installed_here_still_has_its_manifest(ran, read_page, monkeypatch):
    monkeypatch.setattr("flows.report.subject.stage_names", list)
    page = read_page(report_html(ran, "demo"))
    assert ran.ref("demo/choose").key[:12] in page.text


# Size --------------------------------------------------------------------------------------------


def test_a_hundred_thousand_rows_stay_a_small_file(ran, given_pages, read_page):
    count = 100_000
    rows = tuple((f"doc{i}", i) for i in range(count))
    given_pages(
        choose=[
            TableFigure("ledger", (Column("doc_id"), number("value")), rows),
            CurveFigure("c", Axis("x"), Axis("y"), (Series("a", range(count), range(count)),)),
            SamplesFigure("s", tuple(Sample(f"g{i % 40}", "h", "t" * 500) for i in range(100_000))),
        ]
    )  # fmt: skip
    html = report_html(ran, "demo")
    text = read_page(html).text
    assert len(html) < 1_000_000
    assert "200 of 100,000" in text
    assert "500th of 100,000" in text
    assert "96 of 100,000" in text


def test_too_many_large_figures_are_left_out_by_name(ran, given_pages, read_page, monkeypatch):
    monkeypatch.setattr(report, "LIMIT", 600_000)
    table = TableFigure("", (Column("text"),), tuple(("é" * 390,) for _ in range(190)))
    given_pages(choose=[replace(table, title=f"big {i}") for i in range(9)])
    html = report_html(ran, "demo")
    assert len(html.encode()) <= 600_000
    text = read_page(html).text
    assert re.search(r"small: big \d", text)


def test_more_figures_than_a_page_shows_are_named(ran, given_pages, read_page):
    given_pages(choose=[TextFigure(f"figure {i}", "x") for i in range(report.FIGURES + 1)])
    assert f"figure {report.FIGURES}" in read_page(report_html(ran, "demo")).text


# Facts -------------------------------------------------------------------------------------------


def test_records_are_counted_once_where_they_enter_and_kept_where_the_last_step_left_them(ran):
    found = {fact["label"]: fact for fact in plain_report(ran, "demo")["facts"]}
    # a/one.txt: 3 lines and an empty one, a/two.txt: 1, b/three.txt: 2; "pi" and "mu" are short.
    assert found["records read"]["value"] == 7
    assert found["documents kept"]["value"] == 4
    assert found["documents kept"]["detail"].startswith("57.1%")


def test_scores_that_stand_clearest_off_their_baseline_come_first(ran, given_pages):
    estimates = (
        Estimate("at chance", 0.26, 0.2, 0.32, 0.25),
        Estimate("clear", 0.6, 0.59, 0.61, 0.25),
        Estimate("without a baseline", 0.9, 0.8, 1.0),
    )
    given_pages(choose=[IntervalFigure("accuracy", Axis("accuracy", format=".2f"), estimates)])
    labels = [fact["label"] for fact in plain_report(ran, "demo")["facts"]]
    assert labels.index("clear (choose)") < labels.index("at chance (choose)")
    assert not any(label.startswith("without") for label in labels)


def test_a_score_says_of_what_in_which_precision_and_how_surely(ran, given_pages):
    estimate = Estimate("quiz", 0.6, 0.59, 0.61, 0.25)
    given_pages(choose=[IntervalFigure("accuracy", Axis("accuracy", format=".2f"), (estimate,))])
    subject = find_subject(ran, "demo")
    made = subject.made[0].manifest
    given = ran.reference(made, next(iter(made.outputs))).model_copy(update={"kind": "checkpoint"})
    steps = tuple(
        replace(
            step,
            manifest=step.manifest.model_copy(
                update={"inputs": {"any": (given,)}, "layout": {"dtype": "float32"}}
            ),
        )
        if step.instance == "choose"
        else step
        for step in subject.steps
    )
    subject = replace(subject, steps=steps)
    (fact,) = [fact for fact in facts(subject, load_pages(subject)) if "quiz" in fact.label]
    measured = f"accuracy of {subject.made[0].instance} in float32"
    assert fact.detail == f"{measured}; 95 %: 0.59–0.61; baseline 0.25"


def test_what_a_sample_leaves_out_is_not_among_the_dropped_records(ran, monkeypatch):
    subject = find_subject(ran, "demo")
    titles = {figure.title for figure in funnel(subject)}
    assert "Why records were dropped" in titles
    monkeypatch.setattr("flows.report.overview.MADE_OF_A_SAMPLE", {"documents"})
    assert titles - {figure.title for figure in funnel(subject)} == {"Why records were dropped"}


def test_plain_values_are_what_the_page_shows(ran, given_pages):
    given_pages(choose=[TableFigure("t", (Column("a"), number("b")), (("x", 1),))])
    plain = plain_report(ran, "demo")
    (choose,) = [step for step in plain["steps"] if step["instance"] == "choose"]
    assert choose["figures"] == [{"title": "t", "rows": [{"a": "x", "b": 1}]}]
    assert {"read[crawl-A]", "read[crawl-B]"} <= set(choose["parents"])
    assert plain["state"] == "done"


# Writing -----------------------------------------------------------------------------------------


def test_a_report_is_known_by_its_first_lines(ran, tmp_path):
    assert is_report(write_report(ran, "demo", tmp_path / "r.html"))
    (tmp_path / "mine.html").write_text("<h1>mine</h1>")
    assert not is_report(tmp_path / "mine.html")


def test_a_place_that_cannot_be_written_is_one_line(ran, tmp_path):
    place = tmp_path / "no" / "such" / "r.html"
    with pytest.raises(UsageError) as caught:
        write_report(ran, "demo", place)
    assert caught.value.where == str(place)
    assert not list(tmp_path.glob(".r.html*"))


def test_a_full_disk_leaves_the_earlier_report_and_no_half_of_a_new_one(ran, tmp_path, monkeypatch):
    earlier = write_report(ran, "demo", tmp_path / "r.html").read_bytes()

    def full(self, text, **_):
        self.write_bytes(text[:100].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(UsageError, match="No space left"):
        write_report(ran, "demo", tmp_path / "r.html")
    assert [path.name for path in tmp_path.iterdir() if "r.html" in path.name] == ["r.html"]
    assert (tmp_path / "r.html").read_bytes() == earlier
