"""What a pipeline caught of the defects planted in a made corpus, and what it removed wrongly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.evaluate.observations import Observation

if TYPE_CHECKING:
    from stages.engine import Input

DUPLICATES = ("near_duplicate", "exact_duplicate")


@dataclass(frozen=True)
class Verdict:
    """What the ledger says of a document."""

    kept: bool
    partner: str | None
    edits: int


@dataclass(frozen=True)
class Fate:
    """What became of every record: verdicts by doc_id, and the ids turned away at ingest."""

    verdicts: Mapping[str, Verdict]
    rejected: frozenset[str]

    def gone(self, doc_id: str) -> bool:
        """Whether the record was turned away or dropped."""
        verdict = self.verdicts.get(doc_id)
        return doc_id in self.rejected or (verdict is not None and not verdict.kept)

    def dropped_as_duplicate(self, doc_id: str) -> bool:
        """Whether the document was dropped in favour of a kept partner."""
        verdict = self.verdicts.get(doc_id)
        return verdict is not None and not verdict.kept and verdict.partner is not None


def read_verdicts(ledger: Input) -> dict[str, Verdict]:
    """Verdicts by doc_id, of all table sets of a ledger."""
    columns = ["doc_id", "verdict", "partner", "edits"]
    return {
        row["doc_id"]: Verdict(row["verdict"] == "kept", row["partner"], row["edits"])
        for path in ledger.paths("*/*.parquet")
        for row in ledger.read_table(path, columns).to_pylist()
    }


def rejected_ids(tables: Iterable[Input]) -> frozenset[str]:
    """Ids of the records that were turned away at ingest."""
    return frozenset(
        doc_id
        for given in tables
        for shard in given.shards()
        for doc_id in shard.read(["doc_id"])["doc_id"].to_pylist()
    )


def caught(planted: Mapping[str, Any], fate: Fate) -> bool:
    """Whether the pipeline dealt with a planted defect.

    A broken record must be turned away at ingest. Personal data must be cut (as many edits as there
    are addresses) or the document gone. Of a copy and its original, the copy must be gone or the
    original dropped as its duplicate. Anything else must be gone.
    """
    doc_id, defect = planted["doc_id"], planted["defect"]
    if defect == "broken_record":
        return doc_id in fate.rejected
    if fate.gone(doc_id):
        return True
    if defect == "personal_data":
        verdict = fate.verdicts.get(doc_id)
        return verdict is not None and verdict.edits >= planted["count"]
    if defect in DUPLICATES and planted["partner"] is not None:
        return fate.dropped_as_duplicate(planted["partner"])
    return False


def planted_observations(truth: Iterable[Mapping[str, Any]], fate: Fate) -> list[Observation]:
    """`recall` under `planted/<defect>`, then `kept` under `planted/none`.

    Records with no planted defect should be kept; originals of planted copies are left out there,
    since either of the two may go.
    """
    rows = sorted(truth, key=lambda row: (row["defect"], row["doc_id"]))
    recalled = [
        Observation(f"planted/{row['defect']}", row["doc_id"], "recall", float(caught(row, fate)))
        for row in rows
    ]
    touched = {row["doc_id"] for row in rows}
    touched |= {row["partner"] for row in rows if row["defect"] in DUPLICATES and row["partner"]}
    sound = sorted((fate.verdicts.keys() | fate.rejected) - touched)
    return recalled + [
        Observation("planted/none", doc_id, "kept", float(not fate.gone(doc_id)))
        for doc_id in sound
    ]
