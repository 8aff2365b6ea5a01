"""`own-stage.md` prints a package that works: its files are written, installed and run as told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from docs_pages import DOCS, blocks, ingot_commands

from flows.cli.main import main

SHARE = "0.05"
ROWS = [
    {"text": "email " * 3 + "word " * 37},  # 3 of 40: 7.5 %
    {"text": "email " + "word " * 39},  # 1 of 40: 2.5 %
    {"text": "Email me, or send an email"},  # 2 of 6, one in another case
]


@pytest.fixture
def ingot(plugin, tmp_path, monkeypatch):
    """`ingot(*arguments)` → its JSON; child processes find the stage by its entry point."""
    path = [str(plugin), str(plugin / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.setenv("INGOT_STORE", str(tmp_path / "store"))

    def run(*arguments):
        result = CliRunner().invoke(main, list(arguments))
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return run


def test_the_stage_runs_by_entry_point_and_filter_drops_what_it_excludes(
    ingot, own_stage, tmp_path
):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    ingot("snapshot", "add", "rows", str(rows), "--json")
    ingot(
        "stage", "ingest", "--input", "snapshot=snapshots/rows", "--as", "quickstart/web", "--json"
    )
    (shown,) = [
        arguments
        for arguments in ingot_commands(DOCS / "how-to" / "own-stage.md")
        if arguments[:2] == ["stage", "blocklist"]
    ]
    assert shown[-1] == f"max_share={SHARE}"
    made = ingot(*shown, "--as", "blocked", "--json")["manifest"]
    assert made["counts"] == {"documents": 3, "excluded": 2}
    assert len(made["samples"]["blocklist"]) == 2

    inputs = ["--input", "documents=quickstart/web", "--input", "exclusions=blocked"]
    settings = ["--set", "rules=[]", "--set", "personal_data=keep"]
    kept = ingot("stage", "filter", *inputs, *settings, "--json")["manifest"]
    assert kept["conservation"] == {"records_in": 3, "out": 1, "dropped": {"exclusion": 2}}


def test_its_page_shows_what_the_report_needs(own_stage, run_stage, make_documents, store):
    from stages.engine.page import Artifact, make_page, make_summary

    documents = make_documents([[row["text"] for row in ROWS]])
    made = run_stage(own_stage, {"words": ["email"], "max_share": 0.05}, {"documents": [documents]})
    artifact = Artifact(store, made)
    (summary,) = make_summary(own_stage, artifact)
    assert summary.rows == ((3, 2),)
    _, some = make_page(own_stage, artifact)
    assert len(some.rows) == 2


def test_its_own_test_passes(plugin):
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(plugin / "tests")]
    done = subprocess.run(run, cwd=plugin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_its_code_is_clean(plugin):
    flags = ["--isolated", "--line-length=100", "--select=E,F,B,UP", str(plugin)]
    run = [sys.executable, "-m", "ruff", "check", *flags]
    found = subprocess.run(run, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


def test_every_file_that_the_page_names_is_printed(plugin):
    tree = next(b.text for b in blocks(DOCS / "how-to" / "own-stage.md") if "page.py  " in b.text)
    named = {line.split()[0] for line in tree.splitlines() if "." in line.split()[0]}
    written = {path.name for path in plugin.rglob("*") if "site" not in path.parts}
    assert named <= written
    assert Path(plugin, "ingot_blocklist", "stage.py").exists()
