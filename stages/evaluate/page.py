"""What an evaluation contributes to a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stages.engine.figures import Column, Figure, TableFigure, TextFigure, number
from stages.engine.page import Artifact
from stages.evaluate.figures import PLANTED, cell


def summary(artifact: Artifact) -> list[Figure]:
    """Planted defects caught and missed, scores with standard errors, a generated sample."""
    found = artifact.output("evaluation")
    planted, scores = _results(artifact)
    figures: list[Figure] = [_planted(planted)] if planted else []
    figures.append(_scores(scores))
    generations = found.read_table("generations.parquet").to_pylist()
    figures += [
        TextFigure(f"a {row['form']} sample", f"{row['prompt']}▸{row['completion']}")
        for row in generations[:1]
    ]
    return figures


def page(artifact: Artifact) -> list[Figure]:
    """Scores with intervals, planted defects, contamination, items at both ends, generations."""
    from stages.evaluate import figures as own

    found = artifact.output("evaluation")
    planted, scores = _results(artifact)
    items = found.read_table("items.parquet")
    generations = found.read_table("generations.parquet").to_pylist()
    figures = own.score_figures(scores)
    if scores:
        figures.append(replace(_scores(scores), title="Scores and baselines"))
    if planted:
        note = "Defects that were planted in the crawl, and what the pipeline made of them."
        figures.append(
            replace(_planted(planted), title="Planted defects caught and missed", note=note)
        )
    return [
        *figures,
        *own.contamination(items),
        *own.spread(items),
        *own.generations(generations, artifact.manifest.config.get("temperature", 0.0)),
        *own.item_ends(artifact, items),
        *own.document_ends(items),
    ]


def _results(artifact: Artifact) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows about planted defects, and all others."""
    results = artifact.output("evaluation").read_table("results.parquet").to_pylist()
    planted = [row for row in results if row["benchmark"].startswith(PLANTED)]
    return planted, [row for row in results if not row["benchmark"].startswith(PLANTED)]


def _planted(rows: list[dict[str, Any]]) -> TableFigure:
    """Caught and missed by defect; of clean documents, how many were removed wrongly."""
    columns = (Column("planted"), number("records"), number("caught"), number("missed"))
    cells: list[tuple[Any, ...]] = []
    for row in rows:
        caught = round(row["value"] * row["count"])
        name = row["benchmark"].removeprefix(PLANTED)
        if row["metric"] == "kept":
            cells.append(("(clean ones dropped)", row["count"], row["count"] - caught, None))
        else:
            cells.append((name, row["count"], caught, row["count"] - caught))
    return TableFigure("planted defects caught and missed", columns, tuple(cells))


def _scores(rows: list[dict[str, Any]]) -> TableFigure:
    columns = (
        Column("benchmark"),
        Column("metric"),
        number("score", ".3f"),
        number("± s.e.", ".3f"),
        number("baseline", ".3f"),
        number("better by", ".1%"),
        number("n"),
    )
    numbers = ("value", "standard_error", "baseline")
    cells = tuple(
        (
            row["benchmark"],
            row["metric"],
            *(cell(row[name]) for name in numbers),
            cell(_better(row)),
            row["count"],
        )
        for row in rows
    )
    return TableFigure("scores", columns, cells)


def _better(row: dict[str, Any]) -> float | None:
    """Bits saved against the baseline, as a share of it; None for other metrics."""
    if row["metric"] != "bits_per_byte" or not row["baseline"]:
        return None
    return float(1 - row["value"] / row["baseline"])
