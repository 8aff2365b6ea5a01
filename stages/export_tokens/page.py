"""What exported tokens contribute to a report."""

from __future__ import annotations

from stages.engine.page import Artifact, Cell, Figure, make_table


def page(artifact: Artifact) -> list[Figure]:
    """Documents, tokens and bytes by source."""
    table = artifact.output("dataset").read_json("dataset.json")
    total = sum(one["tokens"] for one in table["sources"].values())
    rows: list[tuple[Cell, ...]] = [
        (
            source,
            one["prefix"],
            one["documents"],
            one["incomplete"],
            one["tokens"],
            one["tokens"] / total,
            one["dtype"],
            one["bytes"],
        )
        for source, one in sorted(table["sources"].items())
    ]
    note = (
        f"Format: {table['format']}. Weight: the source's share of the tokens. Incomplete: "
        "documents of which `pack` cropped or left out tokens; they end without an end token, or "
        "have a gap."
    )
    return [
        make_table(
            "Exported tokens",
            "source | prefix | documents:, | incomplete:, | tokens:, | weight:.1% | type | bytes:,",
            rows,
            note,
        )
    ]
