"""What a teacher's log-probabilities contribute to a report."""

from __future__ import annotations

from stages.engine.page import Artifact, Figure, make_table


def page(artifact: Artifact) -> list[Figure]:
    """By source: how many tokens are on record, how sure the teacher is, what is not on record."""
    facts = artifact.output("teacher").read_json("teacher.json")
    rows = [
        (source, one["targets"], one["entropy"], one["others"])
        for source, one in sorted(facts["sources"].items())
    ]
    headings = "source | tokens:, | entropy, nats:.3f | probability not on record:.4f"
    note = (
        f"Means over tokens. The {facts['top']} likeliest tokens are on record; all others count "
        "as one."
    )
    return [make_table("Teacher", headings, rows, note)]
