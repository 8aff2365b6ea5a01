"""The score of the quiz with its interval."""

from __future__ import annotations

from stages.engine.page import Artifact, Axis, Estimate, Figure, IntervalFigure


def page(artifact: Artifact) -> list[Figure]:
    rows = artifact.output("evaluation").read_table("results.parquet").to_pylist()
    estimates = tuple(
        Estimate(row["benchmark"], row["value"], row["low"], row["high"], row["baseline"])
        for row in rows
    )
    return [IntervalFigure("Accuracy", Axis("accuracy", format=".3f"), estimates)]
