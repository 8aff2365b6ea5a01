"""What the pipeline did, as observations: planted defects caught, and items that a corpus holds.

Which of the defects planted in a made corpus it caught, what it removed wrongly, and which
benchmark items the corpus holds an n-gram of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from stages.engine import Input
from stages.scoring.observations import ItemName, Observation

DUPLICATES = ("near_duplicate", "exact_duplicate")


@dataclass(frozen=True)
class LedgerEntry:
    """A document in the ledger."""

    kept: bool
    partner: str | None
    edits: int


@dataclass(frozen=True)
class RecordOutcomes:
    """The outcome of every record: verdicts by doc_id, and the ids rejected at ingest."""

    verdicts: Mapping[str, LedgerEntry]
    rejected: frozenset[str]

    def is_removed(self, doc_id: str) -> bool:
        """Whether the record was rejected or dropped."""
        verdict = self.verdicts.get(doc_id)
        return doc_id in self.rejected or (verdict is not None and not verdict.kept)


def read_ledger(ledger: Input) -> dict[str, LedgerEntry]:
    """Verdicts by doc_id, of all table sets of a ledger."""
    columns = ["doc_id", "verdict", "partner", "edits"]
    return {
        row["doc_id"]: LedgerEntry(row["verdict"] == "kept", row["partner"], row["edits"])
        for path in ledger.paths("*/*.parquet")
        for row in ledger.read_table(path, columns).to_pylist()
    }


def rejected_ids(tables: Iterable[Input]) -> frozenset[str]:
    """Ids of the records that were rejected at ingest."""
    return frozenset(
        doc_id
        for table in tables
        for shard in table.shards()
        for doc_id in shard.read(["doc_id"])["doc_id"].to_pylist()
    )


def is_caught(planted: Mapping[str, Any], fate: RecordOutcomes) -> bool:
    """Whether the pipeline dealt with a planted defect.

    A broken record must be rejected at ingest. Personal data must be cut (as many edits as there
    are addresses) or the document gone. Of a copy and its original, the copy must be gone or the
    original dropped as its duplicate. Anything else must be gone.
    """
    doc_id, defect = planted["doc_id"], planted["defect"]
    if defect == "broken_record":
        return doc_id in fate.rejected
    if fate.is_removed(doc_id):
        return True
    if defect == "personal_data":
        verdict = fate.verdicts.get(doc_id)
        return verdict is not None and verdict.edits >= planted["count"]
    if defect in DUPLICATES and planted["partner"] is not None:
        original = fate.verdicts.get(planted["partner"])
        return original is not None and not original.kept and original.partner is not None
    return False


def planted_observations(
    truth: Iterable[Mapping[str, Any]], fate: RecordOutcomes
) -> list[Observation]:
    """`recall` under `planted/<defect>`, then `kept` under `planted/none`.

    Records with no planted defect should be kept; originals of planted copies are not counted,
    since either of the two may be removed.
    """
    rows = sorted(truth, key=lambda row: (row["defect"], row["doc_id"]))
    recalled = [
        Observation(
            f"planted/{row['defect']}", row["doc_id"], "recall", float(is_caught(row, fate))
        )
        for row in rows
    ]
    touched = {row["doc_id"] for row in rows}
    touched |= {row["partner"] for row in rows if row["defect"] in DUPLICATES and row["partner"]}
    sound = sorted((fate.verdicts.keys() | fate.rejected) - touched)
    return recalled + [
        Observation("planted/none", doc_id, "kept", float(not fate.is_removed(doc_id)))
        for doc_id in sound
    ]


def contaminated_items(
    contamination: Input, verdicts: Mapping[str, LedgerEntry] | None
) -> set[ItemName]:
    """Items that share an n-gram with a document; given verdicts, with one that was kept."""
    if verdicts is None:
        rows = contamination.read_table("items.parquet", ["benchmark", "item_id", "documents"])
        return {(r["benchmark"], r["item_id"]) for r in rows.to_pylist() if r["documents"] > 0}
    hit_items: set[ItemName] = set()
    for path in contamination.paths("*/*.parquet"):
        table = contamination.read_table(path, ["doc_id", "ngrams_hit", "hits"])
        for row in table.filter(pc.greater(table["ngrams_hit"], 0)).to_pylist():
            verdict = verdicts.get(row["doc_id"])
            if verdict is None or verdict.kept:
                hit_items |= {(hit["benchmark"], hit["item_id"]) for hit in row["hits"]}
    return hit_items
