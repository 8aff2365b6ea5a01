"""`ingot tasks`: a list, one task, its file for lm-evaluation-harness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from artifacts_schema.errors import UsageError
from flows.cli.tasks import tasks
from stages.examples.task_files import shipped_files


def run(*arguments: str) -> str:
    done = CliRunner().invoke(tasks, arguments)
    if done.exception is not None:
        raise done.exception
    return done.output


def test_every_task_is_listed_with_its_formulations_and_licence() -> None:
    lines = run().splitlines()
    assert [line.split()[0] for line in lines[1:]] == shipped_files()
    (line,) = [line for line in lines if line.startswith("gsm8k ")]
    assert line.split() == ["gsm8k", "free", "exact_match", "MIT", "question,", "answer"]
    every = json.loads(run("--json"))["tasks"]
    assert {"belebele_deu_Latn", "xnli_de", "mmlu"} <= {task["name"] for task in every}


def test_a_task_is_shown_with_what_it_asks() -> None:
    output = run("winogrande", "--formulation", "cloze")
    assert "  → 'The sentence number 3 says that the water boils' + ' was glad.'" in output
    assert "multiple_choice" not in output
    assert "richtig? Ja" in run("xnli_de")
    assert run("math", "--shots", "1").count("Problem:") == 2
    assert json.loads(run("math", "--json"))["rendered"][0]["references"] == ["7"]


def test_a_file_for_the_harness_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "arc.yaml"
    run("arc_easy", "--lm-eval", str(path))
    written: dict[str, Any] = yaml.safe_load(path.read_text())
    assert written["task"] == "arc_easy_cloze"
    assert written["doc_to_text"] == "Question: {{question}}\nAnswer:"
    assert written["target_delimiter"] == " "
    with pytest.raises(UsageError, match="exists already"):
        run("arc_easy", "--lm-eval", str(path))


def test_variants_are_written_as_a_group_of_the_harness(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "xnli"
    output = run("xnli", "--lm-eval-group", str(folder))
    assert "group xnli_cloze, 15 tasks" in output
    group = yaml.safe_load((folder / "_xnli_cloze.yaml").read_text())
    assert len(group["task"]) == 15
    for name in group["task"]:
        written = yaml.safe_load((folder / f"{name}.yaml").read_text())
        rows = f"{name.removesuffix('_cloze')}.jsonl"
        assert written["dataset_kwargs"]["data_files"] == {"items": rows}
    assert [one["metric"] for one in group["aggregate_metric_list"]] == [
        "acc", "acc_norm", "acc_bytes",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="exists already"):
        run("xnli", "--lm-eval-group", str(folder))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["arc_esy"], "'arc_easy'"),
        (["mmlu", "--formulation", "hibrid"], "'hybrid'"),
        (["mmlu", "--shots", "1"], "no solved examples"),
        (["winogrande", "--lm-eval", "x.yaml"], "context"),
        (["mmlu", "--shots", "2", "--lm-eval", "x.yaml"], "subject"),
        (["mmlu", "--lm-eval-group", "x"], "no variants"),
        (["xnli_de", "--lm-eval-group", "x"], "no variants"),
    ],
)
def test_what_cannot_be_shown_or_written_is_named(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=words):
        run(*arguments)
    assert not list(tmp_path.iterdir())
