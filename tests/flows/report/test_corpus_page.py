"""`ingot report --corpus`: the page of a corpus before and after."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from artifacts_schema.errors import UsageError
from artifacts_schema.store.runs import run_ids
from flows.cli.main import main
from flows.recipe.execute import execute
from flows.report.corpus_page import corpus_page, plain_corpus, write_corpus
from flows.report.html import is_report
from flows.report.report import report_html


@pytest.fixture
def ran(open_pipeline, inline, store):
    """`alpha`, `beta`, `gamma` are kept of crawl-A, `delta epsilon` of crawl-B; `pi`, `mu` not."""
    execute(open_pipeline(), dispatch=inline)
    return store


@pytest.fixture
def ingot(ran, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return lambda *words: CliRunner().invoke(main, ["report", *words, "--store", ran.url])


def rows(figures, title):
    (figure,) = [one for one in figures if one["title"] == title]
    return figure["rows"]


def test_the_first_sentences_follow_from_the_numbers(ran):
    page = corpus_page(ran, "demo")
    # A token of the stage `characters` is a character: 5 + 4 + 5 of crawl-A, 13 of crawl-B.
    assert page.verdict[0] == (
        "The corpus grew from 3 to 4 documents and from 14 to 27 tokens: 1 added, none removed."
    )
    assert page.verdict[1] == (
        "Of the documents of crawl-B, 50.0% were kept, of earlier snapshots 75.0%."
    )
    facts = {fact.label: (fact.text, fact.detail) for fact in page.facts}
    assert facts["documents"] == ("4", "+1 (+33.3%)")
    assert facts["tokens"] == ("27", "+13 (+92.9%)")


def test_every_number_is_a_row_of_plain_values(ran):
    chapters = plain_corpus(ran, "demo")["chapters"]
    volumes = rows(chapters["snapshots"], "Documents, bytes and tokens by snapshot")
    names = ("snapshot", "documents before", "documents after")
    assert [tuple(row[name] for name in names) for row in volumes] == [
        ("crawl-A", 3, 3), ("crawl-B", 0, 1), ("all", 3, 4),
    ]  # fmt: skip
    left = rows(chapters["funnel"], "What is left after each step")
    # crawl-A has three lines and an empty one in one file, and a line in another.
    assert left[0] == {
        "snapshot": "crawl-A", "records read": 5, "documents": 4, "pass the rules": 3,
        "kept": 3, "share kept": 0.6,
    }  # fmt: skip
    assert left[1]["share kept"] == 0.5
    (dropped,) = [
        row
        for row in rows(chapters["funnel"], "Why documents were dropped, earlier and new")
        if row["verdict"] == "short"
    ]
    assert (dropped["earlier"], dropped["new"]) == (0.25, 0.5)
    assert rows(chapters["causes"], "What was added, and why") == [
        {
            "why": "of a new snapshot",
            "documents": 1,
            "million characters": 13e-6,
            "tokens": 13,
        }
    ]
    assert "copies" not in chapters, "no duplicates were measured"


def test_the_page_is_well_formed_inert_and_the_same_each_time(ran, read_page, tmp_path):
    path = write_corpus(ran, "demo", tmp_path / "a.html")
    html = path.read_text()
    page = read_page(html)
    assert page.tags.count("h1") == 1
    assert "Where the numbers are from" in page.text
    assert html.count("<caption>") == html.count("<table")
    assert is_report(path)
    assert write_corpus(ran, "demo", tmp_path / "b.html").read_bytes() == path.read_bytes()
    full = read_page(write_corpus(ran, "demo", tmp_path / "c.html", full=True).read_text())
    assert "What was added, and why" in full.text


def test_hostile_text_is_shown_and_never_part_of_the_page(
    ran, open_pipeline, inline, read_page, tmp_path
):
    hostile = "it's <script>alert(1)</script>"
    execute(open_pipeline(f'read.source="{hostile}"'), dispatch=inline)
    first = run_ids(ran, "demo")[0]
    path = write_corpus(ran, "demo", tmp_path / "a.html", against=f"demo@{first}")
    assert hostile in read_page(path.read_text()).text


@pytest.mark.full
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_stands_out_of_the_page_at_any_width(ran, browser, tmp_path, width):
    path = write_corpus(ran, "demo", tmp_path / "a.html", full=True)
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") <= 0
    page.close()


def test_against_an_earlier_run_the_cause_of_each_loss_is_named(ran, open_pipeline, inline):
    earlier = "demo"
    first = corpus_page(ran, earlier).subject.run.name
    execute(open_pipeline("choose.least.characters=5"), dispatch=inline)
    page = corpus_page(ran, "demo", first)
    assert page.change.before == first
    assert [(one.cause, one.reason, one.before.documents) for one in page.change.flows] == [
        ("fails a rule now", "short", 1), ("stayed", "", 2), ("stayed", "", 1),
    ]  # fmt: skip
    assert page.verdict == (
        "The corpus shrank from 4 to 3 documents and from 27 to 23 tokens: none added, 1 removed.",
    )


def test_the_report_of_several_snapshots_names_the_command_and_that_of_one_does_not(
    ran, open_pipeline, inline, project
):
    assert "ingot report demo --corpus" in report_html(ran, "demo")
    recipe = (project / "demo.yaml").read_text().replace("name: demo", "name: one")
    recipe = recipe.replace('  crawl-B: {files: ["data/b/*.txt"]}\n', "")
    (project / "one.yaml").write_text(recipe)
    execute(open_pipeline(recipe=project / "one.yaml"), dispatch=inline)
    assert "--corpus" not in report_html(ran, "one")
    with pytest.raises(UsageError, match="two snapshots"):
        corpus_page(ran, "one")


def test_the_command_writes_a_file_or_values(ingot):
    done = ingot("demo", "--corpus")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("demo-corpus.html")
    assert Path("demo-corpus.html").read_text().startswith("<!DOCTYPE html>")
    assert json.loads(ingot("demo", "--corpus", "--json").output)["new"] == ["crawl-B"]
    refused = ingot("demo/read[crawl-A]", "--corpus")
    assert refused.exit_code == 2
    assert len(refused.output.strip().splitlines()) == 1
