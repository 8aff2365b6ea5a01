"""`ingot snapshot add`, and what `ingot plan` says of files that only their servers know."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from flows.cli.main import main


@pytest.fixture
def ingot(store):
    """`ingot(*arguments)`: run a command on the test's store; the click result."""
    return lambda *words: CliRunner().invoke(main, [*map(str, words), "--store", store.url])


@pytest.fixture
def listed(file_server):
    """URL of a list of three files."""
    names = [f"a/{n}.txt" for n in "xyz"]
    for name in names:
        file_server.serve(f"/{name}", name.encode())
    return file_server.serve("/files.paths", "\n".join(names).encode())


def test_a_path_list_is_pinned_in_part(ingot, listed, store):
    result = ingot("snapshot", "add", "crawl", "--paths", listed, "--first", 2)
    assert result.exit_code == 0, result.output
    assert ": 2 files, 14 B\n" in result.stdout
    assert "provisional: files known by their server's ETag" in result.stdout
    more = ingot("snapshot", "add", "crawl", "--paths", listed, "--share", 1, "--json")
    assert (json.loads(more.stdout)["files"], json.loads(more.stdout)["provisional"]) == (3, 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x"], "snapshot x: snapshots.x: needs files"),
        (["x", "a", "--paths", "b"], "stands beside files"),
        (["x", "https://me:word@h/a"], "the URL holds a user or password"),
        (["x", "a", "--first", "0"], "expected a number of files, 1 or more, got 0"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(ingot, words, message):
    result = ingot("snapshot", "add", *words)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr
    assert "word@" not in result.stderr


def test_a_plan_says_which_files_are_provisional(ingot, listed, project, file_server):
    recipe = project / "demo.yaml"
    pointed = ["--set", f"snapshots.crawl-A.paths={listed}", "--set", "snapshots.crawl-A.first=2"]
    assert "provisional" not in ingot("plan", recipe).stdout
    result = ingot("plan", recipe, *pointed)
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("ETag, not by a checksum: 2 of crawl-A\n")
    told = json.loads(ingot("plan", recipe, *pointed, "--json").stdout)
    assert told["provisional"] == {"crawl-A": 2}
    before = told["steps"]
    assert json.loads(ingot("plan", recipe, *pointed, "--json").stdout)["steps"] == before
    file_server.serve("/a/y.txt", b"other")
    assert json.loads(ingot("plan", recipe, *pointed, "--json").stdout)["steps"] != before
