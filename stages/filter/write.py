"""Where text is written for the second and last time: kept documents, edited, and the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS, beside
from stages.filter.assess import Beside, assessed
from stages.filter.checks import EXACT_DUPLICATE, NEAR_DUPLICATE, Findings
from stages.filter.decide import Copies
from stages.filter.edits import Edit, apply, edits_by_row

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

_DOCUMENTS = KINDS["documents"].tables["*.parquet"].arrow()
_LEDGER = KINDS["ledger"].tables["*/*.parquet"].arrow()
_SAMPLES = 5


@dataclass(frozen=True, eq=False)
class Decided:
    """A shard with all that is decided about its documents."""

    id: str
    shard: Beside
    assessed: ShardResult
    copies: Copies
    partners: pa.StringArray
    """doc_id of the kept partner; null for a document that is no copy."""
    duplicate_class: pa.StringArray


def decided(
    shards: Sequence[Beside],
    results: Sequence[ShardResult],
    doc_ids: pa.StringArray,
    copies: Copies,
    classes: pa.StringArray,
) -> list[Decided]:
    """The decisions about all documents, cut into those of each shard."""
    items, stop = [], 0
    for shard, result in zip(shards, results, strict=True):
        start, stop = stop, stop + shard.documents.rows
        partner = copies.partner[start:stop]
        own = Copies(partner, copies.similarity[start:stop], copies.exact[start:stop])
        items.append(
            Decided(
                id=shard.id,
                shard=shard,
                assessed=result,
                copies=own,
                # Taken, not sliced: a pickled slice would carry the whole array along.
                partners=doc_ids.take(pa.array(partner, mask=partner < 0)),
                duplicate_class=classes.take(pa.array(np.arange(start, stop))),
            )
        )
    return items


def write_shard(
    item: Decided,
    out: ShardOutput,
    *,
    names: Sequence[str],
    views: Sequence[str],
    near_threshold: float | None,
) -> dict[str, Any]:
    """Write the kept documents of a shard and its ledger; return what was counted, by reason."""
    ids, findings = assessed(item.assessed)
    final = with_copies(findings, item.copies, names, near_threshold)
    kept = np.diff(final.offsets) == 0
    edits = {row: found for row, found in _edits(item, views).items() if kept[row]}
    characters = _write_documents(item, out, kept, edits)

    verdict = pa.array(np.where(kept, "kept", "dropped"))
    failing = pa.array(list(names), pa.string()).take(pa.array(final.codes))
    reason = failing.take(pa.array(final.offsets[:-1], mask=kept))
    edit_counts = np.zeros(len(ids), dtype=np.int32)
    edit_counts[list(edits)] = [len(found) for found in edits.values()]
    columns = [
        ids,
        verdict,
        reason,
        pa.ListArray.from_arrays(pa.array(final.offsets), failing, type=_LEDGER.field(3).type),
        pa.array(final.value, from_pandas=True),
        pa.array(final.threshold, from_pandas=True),
        item.partners,
        pa.array(edit_counts),
        pa.array(characters),
    ]
    ledger = pa.table(columns, schema=_LEDGER)
    documents = item.shard.documents
    out.write_table("ledger", f"{beside(documents.input.digest)}/{documents.path}", ledger)
    return _counted(ledger)


def with_copies(
    found: Findings, copies: Copies, names: Sequence[str], near_threshold: float | None
) -> Findings:
    """The findings with the last check added: being a copy of a kept document."""
    is_copy = copies.partner >= 0
    code = np.where(copies.exact, names.index(EXACT_DUPLICATE), names.index(NEAR_DUPLICATE))
    codes = np.insert(found.codes, found.offsets[1:][is_copy], code[is_copy])
    offsets = found.offsets + np.concatenate([[0], np.cumsum(is_copy)]).astype(np.int32)
    first = is_copy & (np.diff(found.offsets) == 0)
    limit = np.where(copies.exact, 1.0, np.nan if near_threshold is None else near_threshold)
    value = np.where(first, copies.similarity.astype(np.float64), found.value)
    threshold = np.where(first, limit, found.threshold)
    return Findings(offsets, codes.astype(np.int32), value, threshold)


def _edits(item: Decided, views: Sequence[str]) -> dict[int, list[Edit]]:
    if item.shard.views is None:
        return {}
    return edits_by_row(item.shard.views.read(["spans"])["spans"], views)


def _write_documents(
    item: Decided, out: ShardOutput, kept: NDArray[np.bool_], edits: dict[int, list[Edit]]
) -> NDArray[np.int64]:
    """Write the kept rows, one row group in memory at a time; characters of each text."""
    shard = item.shard.documents
    characters = [np.empty(0, dtype=np.int64)]
    stop = 0
    with out.table_writer("documents", f"{item.id}.parquet", _DOCUMENTS) as writer:
        for group in shard.row_groups():
            start, stop = stop, stop + len(group)
            characters.append(pc.utf8_length(group["text"]).to_numpy().astype(np.int64))
            group = group.set_column(
                group.schema.get_field_index("duplicate_class"),
                "duplicate_class",
                item.duplicate_class.slice(start, len(group)),
            )
            staying = np.flatnonzero(kept[start:stop])
            if len(staying):
                rows = _edited(group.take(pa.array(staying)), start + staying, edits)
                writer.write(rows.select(_DOCUMENTS.names))
    return np.concatenate(characters)


def _edited(rows: pa.Table, numbers: NDArray[np.int64], edits: dict[int, list[Edit]]) -> pa.Table:
    """`rows` with the edits of their row numbers made."""
    if not any(int(number) in edits for number in numbers):
        return rows
    texts = [
        apply(text, edits.get(int(number), []))
        for text, number in zip(rows["text"].to_pylist(), numbers, strict=True)
    ]
    place = rows.schema.get_field_index("text")
    return rows.set_column(place, "text", pa.array(texts, pa.string()))


def _counted(ledger: pa.Table) -> dict[str, Any]:
    """Documents and characters in and kept, edits, and documents and samples by reason."""
    kept = ledger.filter(pc.equal(ledger["verdict"], "kept"))
    dropped = ledger.filter(pc.equal(ledger["verdict"], "dropped"))
    reasons = dropped["reason"].value_counts().to_pylist()
    samples: dict[str, list[str]] = {}
    for row in dropped.select(["doc_id", "reason", "value", "threshold", "partner"]).to_pylist():
        shown = samples.setdefault(row["reason"], [])
        if len(shown) < _SAMPLES:
            shown.append(_sample(row))
    return {
        "documents": len(ledger),
        "kept": len(kept),
        "edited": pc.sum(pc.greater(kept["edits"], 0)).as_py() or 0,
        "edits": pc.sum(kept["edits"]).as_py() or 0,
        "characters": pc.sum(ledger["characters"]).as_py() or 0,
        "characters_kept": pc.sum(kept["characters"]).as_py() or 0,
        "dropped": {reason["values"]: reason["counts"] for reason in reasons},
        "samples": samples,
    }


def _sample(row: dict[str, Any]) -> str:
    """One dropped document in a line."""
    value = "" if row["value"] is None else f" {row['value']:.4g} against {row['threshold']:.4g}"
    partner = "" if row["partner"] is None else f", kept: {row['partner']}"
    return f"{row['doc_id']}{value}{partner}"
