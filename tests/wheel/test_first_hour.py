"""From a folder of files to an answer, by the installed wheel: see `first_hour.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import first_hour

UNTUNED = "never tuned to answer"


def test_a_recipe_for_a_folder_is_written_and_planned(run_ingot, tmp_path):
    first_hour.write_data(tmp_path / "data", "parquet", chats=False)
    made = run_ingot("init", "data", "--minutes", "1")
    assert made.returncode == 0, made.stderr
    assert "text in 'body'" in made.stdout
    planned = run_ingot("plan", "data.yaml")
    assert planned.returncode == 0, planned.stderr
    assert "9 to run, 0 reused" in planned.stdout


@pytest.mark.full
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("form", "chats"),
    [("jsonl", False), ("parquet", False), ("html", False), ("jsonl", True)],
)
def test_the_first_hour_ends_in_an_answer(environment, tmp_path, monkeypatch, form, chats):
    """Without conversations the model says that it was not tuned, and continues the text."""
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    command = str(environment / "bin" / "ingot")
    done = first_hour.run_hour(command, tmp_path / "hour", form, chats, "1", [])
    assert done.stdout.strip()
    assert len((tmp_path / "hour" / "data.yaml").read_text().splitlines()) <= 20
    if not chats:
        assert done.stdout.startswith("Return a ")
    lines = ("--message", "Return a ", "--max-tokens", "9")
    spoken = subprocess.run(
        [command, "chat", "data/export", *lines], cwd=tmp_path / "hour",
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (UNTUNED in spoken.stderr) == (not chats)
