"""`ingot snapshot add`, and what `ingot plan` says of files that only their servers know."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli.main import main

sys.path.insert(0, str(Path(__file__).parent.parent.parent))


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
    assert re.fullmatch(
        r"snapshots/crawl [0-9a-f]{12}: 2 files, 14 B, digest [0-9a-f]{12}",
        result.stdout.splitlines()[0],
    )
    assert "provisional: files known by their server's ETag" in result.stdout
    more = ingot("snapshot", "add", "crawl", "--paths", listed, "--share", 1, "--json")
    assert (json.loads(more.stdout)["files"], json.loads(more.stdout)["provisional"]) == (3, 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x"], "snapshot x: snapshots.x: needs files"),
        (["x", "a", "--paths", "b"], "given with files"),
        (["x", "https://me:word@h/a"], "the URL holds a user or password"),
        (["x", "a", "--first", "0"], "expected a number of files, 1 or more, got 0"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(ingot, words, message):
    result = ingot("snapshot", "add", *words)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr
    assert "word@" not in result.stderr


def test_a_crawl_is_added_by_its_id_alone(ingot, file_server):
    path = "crawl-data/CC-MAIN-2024-33/a.warc.gz"
    file_server.serve(f"/{path}", b"WARC")
    file_server.serve("/crawl-data/CC-MAIN-2024-33/warc.paths.gz", f"{path}\n".encode())
    more = ["--first", 1, "--mirror", file_server.url]
    named = ingot("snapshot", "add", "CC-MAIN-2024-33", *more)
    assert named.stdout.startswith("snapshots/CC-MAIN-2024-33 "), named.output
    assert ": 1 file, 4 B, digest " in named.stdout
    other = ingot("snapshot", "add", "august", "--crawl", "CC-MAIN-2024-33", *more)
    assert other.stdout.startswith("snapshots/august "), other.output
    whole = ingot("snapshot", "add", "CC-MAIN-2024-33", "--mirror", file_server.url)
    assert (whole.exit_code, "say how many" in whole.stderr) == (2, True)


def test_a_name_like_a_crawl_may_stand_for_files(ingot, project):
    result = ingot("snapshot", "add", "CC-MAIN-2024-33", project / "data/b")
    assert ": 1 file, 17 B, digest " in result.stdout, result.output


def test_a_data_set_is_added_with_patterns_inside_it(ingot, monkeypatch):
    from hub_server import HubServer
    from huggingface_hub import constants

    hub = HubServer()
    try:
        hub.push("org/math", {"data/a.parquet": b"a" * 2000, "data/b.parquet": b"b" * 2000})
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        result = ingot("snapshot", "add", "math", "data/*.parquet", "--dataset", "org/math")
        assert ": 2 files, 4.0 kB, digest " in result.stdout, result.output
        assert "provisional" not in result.stdout
        wrong = ingot("snapshot", "add", "math", "--dataset", "org/math", "--revision", "v9")
        assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
        assert "snapshot math: data set org/math has no revision 'v9'" in wrong.stderr
    finally:
        hub.close()


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
