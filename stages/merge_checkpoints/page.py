"""What merged checkpoints contribute to a report."""

from __future__ import annotations

from typing import Any

from artifacts_schema.identity import short
from stages.engine.page import Artifact, Figure, make_facts, make_table


def page(artifact: Artifact) -> list[Figure]:
    """The method, and the share of each checkpoint."""
    merged: dict[str, Any] = artifact.output("checkpoint").read_json("state.json")["merged"]
    base = merged["base"]
    facts = (
        ("method", merged["method"]),
        ("checkpoints", len(merged["checkpoints"])),
        ("base", short(base) if base else None),
        ("tensors", artifact.manifest.counts["tensors"]),
    )
    rows = [
        (short(one["key"]), one["training_step"], one["share"]) for one in merged["checkpoints"]
    ]
    return [
        make_facts("Merged checkpoints", facts),
        make_table(
            "Checkpoints by share",
            "checkpoint | training step:, | share:.1%",
            rows,
            "Shares of the weights; of ties, of the changes since the base.",
        ),
    ]
