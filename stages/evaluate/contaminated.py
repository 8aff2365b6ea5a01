"""Which benchmark items the corpus holds an n-gram of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stages.engine import Input
    from stages.evaluate.observations import ItemName
    from stages.evaluate.planted import Verdict


def contaminated_items(
    contamination: Input, verdicts: Mapping[str, Verdict] | None
) -> set[ItemName]:
    """Items that share an n-gram with a document; given verdicts, with one that was kept."""
    if verdicts is None:
        rows = contamination.read_table("items.parquet", ["benchmark", "item_id", "documents"])
        return {(r["benchmark"], r["item_id"]) for r in rows.to_pylist() if r["documents"] > 0}
    found: set[ItemName] = set()
    for path in contamination.paths("*/*.parquet"):
        table = contamination.read_table(path, ["doc_id", "ngrams_hit", "hits"])
        for row in table.filter(pc.greater(table["ngrams_hit"], 0)).to_pylist():
            verdict = verdicts.get(row["doc_id"])
            if verdict is None or verdict.kept:
                found |= {(hit["benchmark"], hit["item_id"]) for hit in row["hits"]}
    return found
