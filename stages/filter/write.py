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
from stages.filter.assess import Beside, assessed, check_names
from stages.filter.config import FilterConfig
from stages.filter.decide import Copies
from stages.filter.edits import Edits, apply, edits_of
from stages.filter.ledger import ledger_of, with_copies

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

_DOCUMENTS = KINDS["documents"].tables["*.parquet"].arrow()
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
        own = copies.between(start, stop)
        items.append(
            Decided(
                id=shard.id,
                shard=shard,
                assessed=result,
                copies=own,
                # Taken, not sliced: a pickled slice would carry the whole array along.
                partners=doc_ids.take(pa.array(own.partner, mask=own.partner < 0)),
                duplicate_class=classes.take(pa.array(np.arange(start, stop))),
            )
        )
    return items


def write_shard(item: Decided, out: ShardOutput, *, config: FilterConfig) -> dict[str, Any]:
    """Write the kept documents of a shard and its ledger; return what was counted, by reason."""
    documents, names = item.shard.documents, check_names(config)
    final = with_copies(assessed(item.assessed), item.copies, names, config.duplicates.threshold)
    edits = _edits(item, config)
    characters = _write_documents(item, out, final.passes, edits)
    made = edits.counts if edits else np.zeros(documents.rows, dtype=np.int32)
    ledger = ledger_of(
        documents.read(["doc_id"])["doc_id"],
        names,
        final,
        item.partners,
        np.where(final.passes, made, 0).astype(np.int32),
        pa.array(characters),
    )
    out.write_table("ledger", f"{beside(documents.input.digest)}/{documents.path}", ledger)
    return _counted(ledger)


def _edits(item: Decided, config: FilterConfig) -> Edits | None:
    if item.shard.views is None or not config.views:
        return None
    spans = item.shard.views.read(["spans"])["spans"]
    return edits_of(spans, config.views, config.personal_data.kept())


def _write_documents(
    item: Decided, out: ShardOutput, kept: NDArray[np.bool_], edits: Edits | None
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
                rows = group.take(pa.array(staying))
                if edits is not None:
                    rows = _edited(rows, start + staying, edits)
                writer.write(rows.select(_DOCUMENTS.names))
    return np.concatenate(characters)


def _edited(rows: pa.Table, numbers: NDArray[np.int64], edits: Edits) -> pa.Table:
    """`rows` with the edits of their row numbers made; only texts that change become strings."""
    changed = edits.counts[numbers] > 0
    if not changed.any():
        return rows
    texts = rows["text"].combine_chunks()
    made = [
        apply(text, edits.of(number))
        for text, number in zip(
            texts.filter(pa.array(changed)).to_pylist(), numbers[changed].tolist(), strict=True
        )
    ]
    place = rows.schema.get_field_index("text")
    replaced = pc.replace_with_mask(texts, pa.array(changed), pa.array(made, pa.string()))
    return rows.set_column(place, "text", replaced)


def _counted(ledger: pa.Table) -> dict[str, Any]:
    """Documents and characters in and kept, edits, and documents and samples by reason."""
    kept = ledger.filter(pc.equal(ledger["verdict"], "kept"))
    counts = ledger["reason"].combine_chunks().drop_null().value_counts().to_pylist()
    reasons = {counted["values"]: counted["counts"] for counted in counts}
    return {
        "documents": len(ledger),
        "kept": len(kept),
        "edited": pc.sum(pc.greater(kept["edits"], 0)).as_py() or 0,
        "edits": pc.sum(kept["edits"]).as_py() or 0,
        "characters": pc.sum(ledger["characters"]).as_py() or 0,
        "characters_kept": pc.sum(kept["characters"]).as_py() or 0,
        "dropped": reasons,
        "samples": {reason: _samples(ledger, reason) for reason in reasons},
    }


def _samples(ledger: pa.Table, reason: str) -> list[str]:
    """The first documents that were dropped for a reason, one a line."""
    rows = pc.indices_nonzero(pc.equal(ledger["reason"], reason))[:_SAMPLES]
    shown = ledger.select(["doc_id", "value", "threshold", "partner"]).take(rows)
    return [_sample(row) for row in shown.to_pylist()]


def _sample(row: dict[str, Any]) -> str:
    """One dropped document in a line."""
    value = "" if row["value"] is None else f" {row['value']:.4g} against {row['threshold']:.4g}"
    partner = "" if row["partner"] is None else f", kept: {row['partner']}"
    return f"{row['doc_id']}{value}{partner}"
