"""What the README shows is true: its stage runs, its recipe validates, its commands exist."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from stages.engine import protocol

README = Path(__file__).parent.parent / "README.md"


def block(language: str, containing: str = "") -> str:
    found = re.findall(rf"```{language}\n(.*?)```", README.read_text(), flags=re.DOTALL)
    return next(text for text in found if containing in text)


@pytest.fixture
def longest(tmp_path, monkeypatch):
    (tmp_path / "longest.py").write_text(block("python"))
    monkeypatch.syspath_prepend(tmp_path)
    stage = importlib.import_module("longest").Longest
    yield stage
    protocol._registered.pop(stage.name, None)
    del sys.modules["longest"]


def test_the_smallest_stage_runs_and_accounts_for_every_document(
    longest, snapshot, run_stage, read_table
):
    from stages.ingest.stage import Ingest

    rows = b"".join(b'{"text": "%s"}\n' % (b"word " * n) for n in (1, 300, 10, 400))
    documents = run_stage(Ingest, {}, {"snapshot": snapshot({"rows.jsonl": rows})})
    made = run_stage(longest, {"characters": 1000}, {"documents": [(documents, "documents")]})
    assert made.conservation.model_dump() == {"records_in": 4, "out": 2, "dropped": {"short": 2}}
    lengths = [len(text) for text in read_table(made, "documents")["text"].to_pylist()]
    assert min(lengths) >= 1000
    assert len(lengths) == 2


def test_the_recipe_validates(tmp_path):
    for name in "AB":
        folder = tmp_path / "crawls" / name
        folder.mkdir(parents=True)
        (folder / "x.warc.gz").write_bytes(b"WARC")
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(block("yaml"))
    arguments = ["plan", str(recipe), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    for instance in ("ingest[crawl-A]", "signals[crawl-B]", "dedup", "filter"):
        assert instance in result.output


def test_every_command_that_is_shown_exists():
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(), flags=re.DOTALL)
    shown = {name for text in blocks for name in re.findall(r"^ingot ([\w-]+)", text, re.MULTILINE)}
    assert len(shown) >= 12
    for command in shown:
        assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0


def test_make_targets_that_are_named_exist():
    makefile = (README.parent / "Makefile").read_text()
    for target in set(re.findall(r"make ([a-z-]+)", README.read_text())):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
