"""What items of long context contribute to a report."""

from __future__ import annotations

import json

from stages.engine.page import Artifact, Figure, Sample, SamplesFigure, make_table
from stages.engine.tally import excerpt

SAMPLES = 4
EXCERPT = 700


def page(artifact: Artifact) -> list[Figure]:
    """Items by family and length with their tokens, and some of them."""
    output = artifact.output("benchmarks")
    counts: dict[tuple[str, int, str], list[int]] = {}
    samples: list[Sample] = []
    for shard in output.shards():
        rows = shard.read(["benchmark", "item_id", "requests", "answer", "metadata"]).to_pylist()
        for row in rows:
            facts = json.loads(row["metadata"])
            name = facts["family"], facts["length"], facts["haystack"]
            if name not in counts and len(samples) < SAMPLES:
                request = row["requests"][0]
                answer = request["choices"][row["answer"]].strip()
                text = f"{excerpt(request['prompt'], EXCERPT)}\n→ {answer}"
                samples.append(Sample(row["benchmark"], row["item_id"], text))
            counts.setdefault(name, []).append(facts["tokens"])
    return [
        make_table(
            "Items of long context",
            "family | length:, | haystack | items:, | fewest tokens:, | most tokens:,",
            (
                (family, length, haystack, len(tokens), min(tokens), max(tokens))
                for (family, length, haystack), tokens in sorted(counts.items())
            ),
            "Tokens count the prompt, a token that begins it, and the room for an answer.",
        ),
        SamplesFigure("Items", tuple(samples), "The first of some families, cut."),
    ]
