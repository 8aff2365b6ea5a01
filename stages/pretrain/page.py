"""What a pretraining run contributes to a report."""

from __future__ import annotations

from stages.engine.figures import Column, Figure, TableFigure, number
from stages.engine.page import Artifact


def summary(artifact: Artifact) -> list[Figure]:
    """Held-out bits per byte by source: token-unigram model, untrained model, last checkpoint."""
    run = artifact.output("training_run")
    baseline: dict[str, float] = run.read_json("run.json")["unigram_bits_per_byte"]
    rows = run.read_table("held_out.parquet").sort_by("training_step").to_pylist()
    measured: dict[str, list[float]] = {}
    for row in rows:
        if row["bits_per_byte"] is not None:
            measured.setdefault(row["source"], []).append(row["bits_per_byte"])
    return [
        TableFigure(
            f"held-out bits per byte over {artifact.manifest.counts['tokens']:,} tokens",
            (
                Column("source"),
                number("unigram", ".3f"),
                number("first", ".3f"),
                number("last", ".3f"),
                number("below unigram", ".1%"),
            ),
            tuple(
                (source, baseline[source], values[0], values[-1], 1 - values[-1] / baseline[source])
                for source, values in sorted(measured.items())
                if source in baseline
            ),
        )
    ]
