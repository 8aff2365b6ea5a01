"""Items made under tasks are measured: each formulation and number of shots has its scores."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from stages.evaluate.score import Score
from stages.evaluate.stage import Evaluate
from stages.examples.stage import Benchmarks
from tests.stages.benchmarks.published_rows import made_rows


def test_each_formulation_and_number_of_shots_has_its_scores(
    snapshot: Callable[..., Any],
    run_stage: Callable[..., Any],
    read_table: Callable[..., Any],
    read_input: Callable[..., Any],
    checkpoint: Any,
) -> None:
    made = []
    settings: list[tuple[str, dict[str, Any]]] = [
        ("winogrande", {"formulations": ["cloze", "hybrid"], "shots": [0, 1]}),
        ("lambada_openai", {}),
    ]
    for name, config in settings:
        rows = made_rows(name.partition("_")[0])
        lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        more = {"fewshot_files": "*"} if config else {}
        inputs = {"snapshot": snapshot({"rows.jsonl": lines}, name)}
        items = run_stage(Benchmarks, {"task": name, **config, **more}, inputs)
        made.append((items, "benchmarks"))
    measured = run_stage(Evaluate, {}, {"checkpoint": [checkpoint], "benchmarks": made})
    results = read_table(measured, "evaluation", "results.parquet").to_pylist()
    names = {(row["benchmark"], row["formulation"], row["shots"]) for row in results}
    assert names == {
        *(("winogrande", way, shots) for way in ("cloze", "hybrid") for shots in (0, 1)),
        ("lambada_openai", "cloze", 0),
    }
    choices = read_table(measured, "evaluation", "choices.parquet").to_pylist()
    cloze = [
        row
        for row in choices
        if (row["benchmark"], row["formulation"], row["shots"]) == ("winogrande", "cloze", 0)
    ]
    assert len(cloze) == 40
    assert len({row["prompt_digest"] for row in cloze}) == 40  # Each choice has its own context.
    tasks = read_input(measured, "evaluation").read_json("tasks.json")
    assert [task["name"] for task in tasks] == ["lambada_openai", "winogrande"]


def test_of_several_true_answers_the_share_of_probability_is_scored_and_scored_again(
    snapshot: Callable[..., Any],
    run_stage: Callable[..., Any],
    read_table: Callable[..., Any],
    checkpoint: Any,
) -> None:
    rows = made_rows("truthfulqa_mc2")
    assert rows[0]["mc2_targets"]["labels"] == [1, 1, 0, 0, 0]
    rows[1]["mc2_targets"]["labels"] = [1, 0, 0, 0, 0]
    bad = {"labels": [1, 1, 0, 0], "choices": rows[2]["mc2_targets"]["choices"]}
    text = "".join(json.dumps(row) + "\n" for row in [*rows, {**rows[2], "mc2_targets": bad}])
    inputs = {"snapshot": snapshot({"rows.jsonl": text.encode()}, "truth")}
    items = run_stage(Benchmarks, {"task": "truthfulqa_mc2"}, inputs)
    table = read_table(items, "benchmarks").to_pylist()
    assert len(table) == len(rows)  # The row with a mark too few is left out.
    assert [json.loads(row["metadata"])["right"] for row in table[:3]] == [[0, 1], [0], [0, 1]]
    measured = run_stage(
        Evaluate, {}, {"checkpoint": [checkpoint], "benchmarks": [(items, "benchmarks")]}
    )
    likelihoods: dict[str, list[float]] = {}
    for row in read_table(measured, "evaluation", "choices.parquet").to_pylist():
        likelihoods.setdefault(row["item_id"], []).append(sum(row["log_likelihoods"]))
        assert row["is_right"] == (row["choice"] in _right(table, row["item_id"]))
    again = run_stage(Score, {}, {"evaluation": [(measured, "evaluation")]})
    for made in (measured, again):
        shares = {
            row["item_id"]: row["value"]
            for row in read_table(made, "evaluation", "items.parquet").to_pylist()
            if row["metric"] == "right_probability"
        }
        assert shares.keys() == likelihoods.keys()
        for item, values in likelihoods.items():
            right = sum(math.exp(values[place]) for place in _right(table, item))
            assert math.isclose(shares[item], right / sum(map(math.exp, values)), rel_tol=1e-9)


def _right(table: list[dict[str, Any]], item: str) -> list[int]:
    (row,) = (row for row in table if row["item_id"] == item)
    right: list[int] = json.loads(row["metadata"])["right"]
    return right
