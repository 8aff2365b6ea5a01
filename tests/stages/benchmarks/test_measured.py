"""Items made under tasks are measured: each formulation and number of shots has its scores."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

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
