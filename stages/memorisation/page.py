"""What a measurement of memorisation contributes to a report."""

from __future__ import annotations

from typing import Any

from stages.engine.page import Artifact, Axis, Estimate, Figure, IntervalFigure, make_table

_GROUP = "memorised/"
_TITLES = {
    "extracted": "Sequences given back word for word, by copies in the training text",
    "tokens_predicted": "Tokens predicted, by copies in the training text",
}
_NOTES = {
    "extracted": "Each of the next tokens is the likeliest after the beginning of a training "
    "document; Wilson's 95 % interval. The baseline is what held-out documents have.",
    "tokens_predicted": "Share of the same tokens that are the likeliest after the true ones "
    "before them, ± 1.96 standard errors.",
}


def summary(artifact: Artifact) -> list[Figure]:
    """The shares by copies."""
    return list(_figures(artifact))


def page(artifact: Artifact) -> list[Figure]:
    """Both metrics by copies, and how many sequences there are of each number of copies."""
    counts = artifact.manifest.counts
    groups = make_table(
        "Beginnings of documents, by copies",
        "copies | different sequences:,",
        (
            (name.removeprefix("sequences_").replace("_", " "), count)
            for name, count in counts.items()
            if name.startswith("sequences_")
        ),
        f"Of {counts['documents']:,} documents that are long enough. "
        f"{counts['held_out_in_training']:,} held-out sequences begin a training document too and "
        "are left out. A run of several epochs has seen each copy as often.",
    )
    return [*_figures(artifact), groups]


def _figures(artifact: Artifact) -> list[IntervalFigure]:
    rows = artifact.output("evaluation").read_table("results.parquet").to_pylist()
    return [
        IntervalFigure(
            title,
            Axis(metric.replace("_", " "), format=".3f"),
            tuple(_estimate(row) for row in rows if row["metric"] == metric),
            _NOTES[metric],
        )
        for metric, title in _TITLES.items()
    ]


def _estimate(row: dict[str, Any]) -> Estimate:
    name = row["benchmark"].removeprefix(_GROUP).replace("_", " ")
    label = name if name == "held out" else f"{name} {'copy' if name == '1' else 'copies'}"
    return Estimate(label, row["value"], row["low"], row["high"], row["baseline"], row["count"])
