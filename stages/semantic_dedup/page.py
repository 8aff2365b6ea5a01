"""What pairs of like meaning contribute to a report."""

from __future__ import annotations

import numpy as np

from stages.engine.page import Artifact, Figure, make_facts, make_histogram
from stages.engine.sampling import sample_note, sampled

COUNTED = {
    "documents": "documents",
    "documents whose text another has": "equal_texts",
    "documents without a token": "empty",
    "texts that go on after what was embedded": "cut",
    "documents with a partner at the floor or above": "with_partners",
    "pairs listed, each from one or both sides": "pairs",
    "pairs left out of full lists": "capped",
}
BINS = 20


def page(artifact: Artifact) -> list[Figure]:
    """What was compared, and how near the pairs are."""
    counts = artifact.manifest.counts
    facts = [(heading, counts[name]) for heading, name in COUNTED.items()]
    figures: list[Figure] = [make_facts("Documents of like meaning", facts)]
    output = artifact.output("duplicates")
    floor = output.read_json("statistics.json")["parameters"]["floor"]
    edges, bins = np.linspace(floor, 1, BINS + 1), np.zeros(BINS, np.int64)
    part = sampled(output)
    for shard in part.shards("*/*.parquet"):
        for group in shard.row_groups(["partners"]):
            partners = group["partners"].combine_chunks().flatten()
            cosine = partners.field("similarity").to_numpy(zero_copy_only=False)
            bins += np.histogram(np.clip(cosine, floor, 1), edges)[0]
    if bins.any():
        series = {"pairs": bins.tolist()}
        note = sample_note(part.rows, output.rows)
        figures.append(
            make_histogram("Cosine of the pairs", "cosine:.3f", edges.tolist(), series, note=note)
        )
    return figures
