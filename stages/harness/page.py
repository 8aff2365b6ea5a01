"""What scores of lm-eval contribute to a report."""

from __future__ import annotations

from typing import Any

from stages.engine.page import Artifact, Figure, make_table


def summary(artifact: Artifact) -> list[Figure]:
    """Scores with intervals, task by task."""
    output = artifact.output("evaluation")
    records = {one["name"]: one for one in output.read_json("tasks.json")}
    rows = [
        (
            row["benchmark"],
            records[row["benchmark"]]["version"],
            row["shots"],
            row["metric"],
            row["value"],
            _interval(row),
            row["baseline"],
            row["count"],
        )
        for row in output.read_table("results.parquet").to_pylist()
    ]
    models = {one["harness"]["model"] for one in records.values()} - {None}
    versions = {one["harness"]["version"] for one in records.values()}
    note = f"lm-evaluation-harness {', '.join(sorted(versions))}."
    if models:
        note += f" Model: {', '.join(sorted(models))}."
    groups = [
        f"{one['name']} ({len(one['harness']['tasks'])} tasks)"
        for one in records.values()
        if "tasks" in one["harness"]
    ]
    if groups:
        note += f" Groups, whose scores are over those of their tasks: {', '.join(groups)}."
    heads = "task | version | shots: | metric | score:.3f | 95 % interval: | chance:.3f | n:,"
    return [make_table("Scores of lm-eval's tasks", heads, rows, note)]


page = summary


def _interval(row: dict[str, Any]) -> str:
    return "" if row["low"] is None else f"{row['low']:.3f}–{row['high']:.3f}"
