"""What a judge's verdicts contribute to a report."""

from __future__ import annotations

from typing import Any

from stages.engine.page import Artifact, Figure, TextFigure, make_table

READ = 3
"""Comparisons that are printed whole."""
METRICS = {
    "win_rate": "A wins (ties count half)",
    "agreement": "agrees with people (ties count half)",
    "cohen_kappa": "Cohen's kappa with people",
    "changed_with_order": "changed with the order (counted as ties)",
    "no_verdict": "no verdict (counted on neither side)",
}


def summary(artifact: Artifact) -> list[Figure]:
    """Agreement with people first, win rates beside it."""
    rows = artifact.output("evaluation").read_table("results.parquet").to_pylist()
    cells = [
        (row["benchmark"], METRICS[row["metric"]], row["value"], _interval(row), row["count"])
        for row in rows
    ]
    heads = "pairs | | value:.3f | 95 % interval: | n:,"
    note = (
        ""
        if any(row["metric"] == "agreement" for row in rows)
        else ("Not compared with people: with labelled `preferences` its agreement is measured.")
    )
    record = artifact.output("evaluation").read_json("tasks.json")[0]
    return [make_table(f"Verdicts of {record['source']}", heads, cells, note)]


def page(artifact: Artifact) -> list[Figure]:
    """The same, and the first pairs to read."""
    pairs = artifact.output("answers").read_table("comparisons.parquet").slice(0, READ)
    texts = [
        f"{row['prompt']}\n▸ A: {row['a']}\n▸ B: {row['b']}\n▸ judge: {row['outcome'] or 'none'}"
        f"{', people: ' + row['human'] if row['human'] else ''}"
        for row in pairs.to_pylist()
    ]
    return [*summary(artifact), TextFigure("The first pairs", "\n\n".join(texts))]


def _interval(row: dict[str, Any]) -> str:
    return "" if row["low"] is None else f"{row['low']:.3f}–{row['high']:.3f}"
