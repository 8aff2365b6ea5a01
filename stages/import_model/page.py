"""What an imported model contributes to a report."""

from __future__ import annotations

from typing import Any

from artifacts_schema.identity import short
from stages.engine.page import Artifact, Cell, Figure, TableFigure, make_facts, make_table


def page(artifact: Artifact) -> list[Figure]:
    """What it is and where it came from."""
    checkpoint = artifact.output("checkpoint")
    if artifact.manifest.stage == "import_adapter":
        adapter: dict[str, Any] = checkpoint.read_json("state.json")["adapter"]
        rows = (
            ("snapshot", adapter["snapshot"]),
            ("base", short(adapter["base"])),
            ("matrices", adapter["matrices"]),
            ("times B A", adapter["scale"]),
        )
        return [make_facts("An adapter brought along", rows)]
    origin: dict[str, Any] = checkpoint.read_json("state.json")["origin"]
    return [facts(checkpoint.read_json("model.json"), origin, artifact.manifest.counts)]


def facts(
    model: dict[str, Any], origin: dict[str, Any], counts: dict[str, int | float]
) -> TableFigure:
    """Sizes, rows that were added, and the snapshot."""
    added = model["vocabulary_size"] - origin["published_rows"]
    carried = {"tokenizer": "the one given", "snapshot": "the model's own", None: "none"}
    rows: tuple[tuple[Cell, ...], ...] = (
        ("snapshot", origin["snapshot"]),
        ("model_type", origin["model_type"]),
        ("parameters, as published", counts["parameters"]),
        ("layers", model["layers"]),
        ("width", model["width"]),
        ("context", model["context"]),
        ("rows of the embedding", model["vocabulary_size"]),
        ("of which added", added),
        ("tokenizer", carried[origin["tokenizer"]]),
        ("chat template", "its own, kept as it is" if counts.get("chat_templates") else "none"),
    )
    return make_table("A model brought along", " | ", rows)
