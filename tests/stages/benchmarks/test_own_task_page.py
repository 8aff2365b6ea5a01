"""What docs/how-to/own-task.md shows is what happens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from flows.cli.tasks import tasks
from stages.examples.stage import Benchmarks

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "own-task.md"


@pytest.fixture(scope="module")
def blocks() -> dict[str, list[str]]:
    """The blocks of code of the page, by language."""
    found: dict[str, list[str]] = {}
    for language, text in re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        found.setdefault(language, []).append(text)
    return found


def test_the_task_of_the_page_asks_what_the_page_shows(
    blocks: dict[str, list[str]], tmp_path: Path
) -> None:
    (tmp_path / "capitals.yaml").write_text(blocks["yaml"][0])
    arguments = [str(tmp_path / "capitals.yaml"), "--formulation", "multiple_choice"]
    done = CliRunner().invoke(tasks, arguments)
    assert done.exit_code == 0, done.output
    shown = blocks["console"][0].partition("…\nmultiple_choice\n")[2]
    assert done.output.endswith(f"\nmultiple_choice\n{shown}")


def test_the_recipe_of_the_page_makes_its_items(
    blocks: dict[str, list[str]],
    snapshot: Callable[..., Any],
    run_stage: Callable[..., Any],
    read_table: Callable[..., Any],
) -> None:
    config = yaml.safe_load(blocks["yaml"][1])["steps"]["capitals"]["config"]
    inputs = {
        "snapshot": snapshot({"capitals.jsonl": blocks["json"][0].encode()}, "rows"),
        "tasks": snapshot({"capitals.yaml": blocks["yaml"][0].encode()}, "my_tasks"),
    }
    rows = read_table(run_stage(Benchmarks, config, inputs), "benchmarks").to_pylist()
    assert [row["choices"][row["answer"]] for row in rows] == ["Santiago", "Nairobi", "Lima"]
    assert json.loads(rows[0]["metadata"]) == {"continent": "America"}
    asked = {(one["formulation"], one["shots"]): one["prompt"] for one in rows[0]["requests"]}
    assert asked["cloze", 1] == "The capital of Kenya is Nairobi\n\nThe capital of Chile is"
    assert len(asked) == 4
