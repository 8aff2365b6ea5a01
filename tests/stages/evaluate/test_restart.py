"""An evaluation that is killed goes on with the next part of a benchmark, to the same bytes."""

import os
import signal

import pytest
from forks import in_fork

from artifacts_schema.store import failpoints
from artifacts_schema.store.gc import remove_artifact
from stages.evaluate import parts
from stages.evaluate.stage import Evaluate

CONFIG = {"text_prompts": [], "chat_prompts": [], "max_items": 100}


@pytest.fixture
def inputs(given, checkpoint, monkeypatch):
    """Six parts of a benchmark whose items have two formulations."""
    monkeypatch.setattr(parts, "ITEMS_OF_PART", 4)
    rows = [
        {
            "benchmark": "quiz", "item_id": str(n), "form": "multiple_choice", "prompt": f"Key {n}",
            "choices": ["Paris", "Rome"], "answer": n % 2, "metadata": "{}",
            "requests": [
                {"formulation": name, "shots": 0, "prompt": f"The key {n} {name} is",
                 "choices": [" Paris", " Rome"], "references": [], "contexts": []}
                for name in ("cloze", "hybrid")
            ],
        }
        for n in range(22)
    ]  # fmt: skip
    tasks = [{"name": "quiz", "version": 1}]
    files = {"00000.parquet": rows, "tasks.json": tasks}
    return {"checkpoint": [checkpoint], "benchmarks": [given("benchmarks", files)]}


def test_killed_five_times_it_does_no_part_twice_and_gives_the_same_bytes(
    store, run_stage, read_input, inputs, monkeypatch, tmp_path
):
    undisturbed = run_stage(Evaluate, CONFIG, inputs)
    assert read_input(undisturbed, "evaluation").read_json("tasks.json") == [
        {"name": "quiz", "version": 1}
    ]
    remove_artifact(store, undisturbed)
    log = tmp_path / "measured"
    measure = parts.measure_part

    def noted(part, out, **more):
        with log.open("a") as file:
            file.write(f"{part.id}\n")
        return measure(part, out, **more)

    monkeypatch.setattr(parts, "measure_part", noted)

    def run_to_a_kill():
        def die(point):
            if point == "shard recorded":
                os.kill(os.getpid(), signal.SIGKILL)

        monkeypatch.setattr(failpoints, "on_failpoint", die)
        run_stage(Evaluate, CONFIG, inputs)

    for _ in range(5):
        assert in_fork(run_to_a_kill) == -signal.SIGKILL
    made = run_stage(Evaluate, CONFIG, inputs)
    assert log.read_text().split() == [f"benchmark-0000-{n:04d}" for n in range(6)]
    assert made.attempt != undisturbed.attempt
    assert made.outputs["evaluation"].digest == undisturbed.outputs["evaluation"].digest
    assert made.counts == undisturbed.counts


def test_parts_do_not_change_the_order_of_items(run_stage, read_table, inputs):
    made = run_stage(Evaluate, CONFIG, inputs)
    rows = read_table(made, "evaluation", "choices.parquet").to_pylist()
    assert [(r["item_id"], r["formulation"], r["choice"]) for r in rows] == [
        (str(n), name, choice)
        for n in range(22)
        for name in ("cloze", "hybrid")
        for choice in (0, 1)
    ]
