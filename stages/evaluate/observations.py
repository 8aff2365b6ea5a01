"""What was measured, item by item, and the scores that follow from it.

Observations of a checkpoint and of the pipeline: which of the defects planted in a made corpus
it caught, what it removed wrongly, and which benchmark items the corpus holds an n-gram of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.kinds import KINDS
from stages.engine import Input
from stages.scoring.uncertainty import normal_interval, ratio, share_interval

ItemName = tuple[str, str]
"""(benchmark, item_id)."""

_SCHEMA = pa.schema(
    [
        ("benchmark", pa.string()),
        ("item_id", pa.string()),
        ("metric", pa.string()),
        ("numerator", pa.float64()),
        ("denominator", pa.float64()),
        ("baseline", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Observation:
    """One item under one metric: `numerator / denominator` is its value.

    Denominators are 1 for metrics that are means over items, bytes for bits per byte. `baseline` is
    what chance or the unigram model has in the place of the numerator.
    """

    benchmark: str
    item_id: str
    metric: str
    numerator: float
    denominator: float = 1.0
    baseline: float | None = None


def to_table(observations: Iterable[Observation]) -> pa.Table:
    """Observations as a table, for a worker to hand over."""
    return pa.Table.from_pylist([asdict(item) for item in observations], schema=_SCHEMA)


def from_table(table: pa.Table) -> list[Observation]:
    """The inverse of `to_table`."""
    return [Observation(**row) for row in table.to_pylist()]


def results_table(
    observations: Sequence[Observation],
    contaminated: Mapping[ItemName, bool] | None = None,
    clusters: Mapping[ItemName, str | None] | None = None,
) -> pa.Table:
    """A row for each benchmark and metric, in the order of first appearance.

    Value = Σ numerators / Σ denominators, with the standard error of that ratio over items, or over
    their clusters, and a 95 % interval: Wilson's for shares of items, else 1.96 standard errors.
    Where items are contaminated, a row `<metric>_clean` follows without them.
    """
    names = clusters or {}
    groups: dict[ItemName, list[Observation]] = {}
    for item in observations:
        groups.setdefault((item.benchmark, item.metric), []).append(item)
    rows = []
    for (benchmark, metric), group in groups.items():
        rows.append(_result(benchmark, metric, group, names))
        if contaminated is not None:
            clean = [i for i in group if not contaminated.get((benchmark, i.item_id), False)]
            if 0 < len(clean) < len(group):
                rows.append(_result(benchmark, f"{metric}_clean", clean, names))
    return pa.Table.from_pylist(rows, schema=KINDS["evaluation"].tables["results.parquet"].arrow())


def items_table(
    observations: Sequence[Observation],
    contaminated: Mapping[ItemName, bool] | None = None,
    clusters: Mapping[ItemName, str | None] | None = None,
) -> pa.Table:
    """A row for each observation; `contaminated` is null where nothing is known of the item."""
    rows = [
        {
            "benchmark": item.benchmark,
            "item_id": item.item_id,
            "metric": item.metric,
            "value": item.numerator / item.denominator,
            "weight": item.denominator,
            "cluster": (clusters or {}).get((item.benchmark, item.item_id)),
            "contaminated": (contaminated or {}).get((item.benchmark, item.item_id)),
        }
        for item in observations
    ]
    return pa.Table.from_pylist(rows, schema=KINDS["evaluation"].tables["items.parquet"].arrow())


def _result(
    benchmark: str,
    metric: str,
    group: Sequence[Observation],
    names: Mapping[ItemName, str | None],
) -> dict[str, object]:
    clusters = [names.get((item.benchmark, item.item_id)) for item in group]
    numerators = [item.numerator for item in group]
    denominators = [item.denominator for item in group]
    estimate = ratio(numerators, denominators, clusters)
    is_share = set(numerators) <= {0.0, 1.0} and set(denominators) == {1.0}
    least = 0.0 if min(numerators) >= 0 else -math.inf  # Differences of scores are below 0 too.
    ends = share_interval(numerators, clusters) if is_share else normal_interval(estimate, least)
    low, high = ends or (None, None)
    baselines = [item.baseline for item in group if item.baseline is not None]
    known = len(baselines) == len(group)
    return {
        "benchmark": benchmark,
        "metric": metric,
        "value": estimate.value,
        "standard_error": estimate.standard_error,
        "low": low,
        "high": high,
        "count": round(sum(denominators)),
        "baseline": sum(baselines) / sum(denominators) if known else None,
    }


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
