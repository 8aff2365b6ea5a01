"""What scores of a neural classifier contribute to a report."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stages.engine.page import Artifact, Cell, Figure, make_facts, make_table
from stages.engine.sampling import sample_note, sampled, sampled_groups
from stages.engine.tally import add_counts, bars, numbers

QUANTILES = {"least": 0.0, "10 %": 0.1, "median": 0.5, "90 %": 0.9, "greatest": 1.0}
COUNTED = {
    "documents": "documents",
    "texts that the model read": "scored",
    "scores taken from earlier runs": "reused",
    "documents without a token, and without a score": "empty",
    "texts that go on after what was read": "cut",
    "tokens read": "tokens",
}


def page(artifact: Artifact) -> list[Figure]:
    """What was scored, where the scores lie, and the documents by their highest label."""
    counts = artifact.manifest.counts
    facts = [(heading, counts[name]) for heading, name in COUNTED.items()]
    return [make_facts("Scored by a neural classifier", facts), *_scores(artifact)]


def _scores(artifact: Artifact) -> list[Figure]:
    output = artifact.output("signals")
    columns = output.read_json("signals.json")["columns"]
    names = [column["name"] for column in columns if column["type"].startswith("float")]
    labels = [column["name"] for column in columns if column["type"] == "string?"]
    groups = [group.select(names) for group in sampled_groups([output], names)]
    table = pa.concat_tables(groups) if groups else None
    if table is None or not len(table):
        return []
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        values = numbers(table[name])
        known = values[~np.isnan(values)]
        cells: list[float | None] = [None] * len(QUANTILES)
        if len(known):
            cells = np.quantile(known, list(QUANTILES.values())).tolist()
        rows.append((name, *cells))
    heads = " | ".join(f"{name}:,.3f" for name in QUANTILES)
    note = sample_note(len(table), output.rows)
    figures: list[Figure] = [make_table("Scores over documents", f"score | {heads}", rows, note)]
    for label in labels:
        counts: dict[str, int] = {}
        part = sampled(output)
        for shard in part.shards():
            for group in shard.row_groups([label]):
                add_counts(counts, group[label])
        title = "Documents by the label with the highest score"
        figures += bars(title, counts, label=label, note=sample_note(part.rows, output.rows))
    return figures
