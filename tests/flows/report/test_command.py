"""`ingot report`: where it writes, what it says, what it will not overwrite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from flows.recipe.execute import execute


@pytest.fixture
def ingot(open_pipeline, inline, store, tmp_path, monkeypatch):
    execute(open_pipeline(), dispatch=inline)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return lambda *words: CliRunner().invoke(main, ["report", *words, "--store", store.url])


def test_it_writes_into_this_folder_and_again_over_its_own(ingot):
    for _ in range(2):
        done = ingot("demo")
        assert done.exit_code == 0, done.output
        name, size = done.output.split("  ")
        assert name == "demo-report.html"
        assert size.strip().endswith("kB")
        assert Path(name).read_text().startswith("<!DOCTYPE html>")
    assert ingot("demo/choose:ledger").output.startswith("demo-choose-ledger-report.html")


def test_a_file_of_that_name_that_is_something_else_stays(ingot):
    Path("demo-report.html").write_text("mine")
    refused = ingot("demo")
    assert refused.exit_code == 2
    assert "not a report of Ingot's" in refused.output
    assert Path("demo-report.html").read_text() == "mine"
    assert ingot("demo", "--output", "other.html").exit_code == 0
    assert Path("other.html").stat().st_size > 10_000


def test_it_opens_the_browser_only_when_asked(ingot, monkeypatch):
    opened = []
    monkeypatch.setattr("click.launch", opened.append)
    ingot("demo")
    assert opened == []
    ingot("demo", "--open", "--output", "with space.html")
    assert opened == [Path("with space.html").resolve().as_uri()]


def test_json_is_plain_values_and_writes_nothing(ingot):
    plain = json.loads(ingot("demo", "--json").output)
    assert plain["state"] == "done"
    assert {step["instance"] for step in plain["steps"]} >= {"choose", "crawl-A"}
    both = json.loads(ingot("demo", "--against", "demo/choose", "--json").output)
    assert set(both) == {"A", "B"}
    assert not list(Path().iterdir())


def test_what_is_wrong_is_one_line_with_code_2(ingot):
    for words in (
        ["dmeo"],
        ["demo", "--against", "nothing"],
        ["demo", "--output", "no/such/x.html"],
    ):
        done = ingot(*words)
        assert done.exit_code == 2, words
        assert len(done.output.strip().splitlines()) == 1
        assert done.output.startswith("error: ")
