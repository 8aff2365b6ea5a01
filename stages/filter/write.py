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
from stages.filter.assess import check_names, findings_of, holders_of, spans_of
from stages.filter.config import FilterConfig
from stages.filter.coverage import Beside
from stages.filter.decide import Copies
from stages.filter.edits import Edits, Spans, apply, edits_of
from stages.filter.ledger import ledger_of, with_copies
from stages.filter.links import Known
from stages.filter.passages import (
    are_lost,
    are_passages,
    holders_kept,
    other_views,
    passage_views,
)

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

_DOCUMENTS = KINDS["documents"].tables["*.parquet"].arrow()
_NO_SPANS = pa.array([], KINDS["views"].tables["*.parquet"].arrow().field("spans").type.value_type)
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
    class_rows: NDArray[np.int64]
    """Documents that another one names the duplicate class of, and …"""
    class_names: pa.StringArray
    """… the doc_ids of those."""
    linked_rows: NDArray[np.int64]
    """Documents whose class has other names, from earlier runs, and …"""
    linked_names: pa.ListArray
    """… those names."""
    holders: pa.StringArray
    """Documents that stay and hold passages first which these repeat."""


def decided(
    shards: Sequence[Beside],
    results: Sequence[ShardResult],
    known: Known,
    passes: NDArray[np.bool_],
    copies: Copies,
    config: FilterConfig,
) -> list[Decided]:
    """The decisions about all documents, cut into those of each shard."""
    classes, ids = known.classes(), known.ids
    nobody = pa.array([], pa.string())
    stay = [nobody] * len(shards)
    if passage_views(config.views):
        kept = passes & (copies.partner < 0)
        named = [holders_of(result) for result in results]
        stay = holders_kept(named, ids.slice(0, len(kept)), kept, known.earlier)
    items, stop = [], 0
    for shard, result, holders in zip(shards, results, stay, strict=True):
        start, stop = stop, stop + shard.documents.rows
        own = copies.between(start, stop)
        others = np.flatnonzero(classes.names[start:stop] != np.arange(start, stop))
        linked = classes.rows_with_others(start, stop)
        items.append(
            Decided(
                id=shard.id,
                shard=shard,
                assessed=result,
                copies=own,
                # Taken, not sliced: a pickled slice would carry the whole array along.
                partners=ids.take(pa.array(own.partner, mask=own.partner < 0)),
                class_rows=others,
                class_names=ids.take(pa.array(classes.names[start + others])),
                linked_rows=linked,
                linked_names=classes.others_of(start + linked, ids),
                holders=holders,
            )
        )
    return items


def write_shard(item: Decided, out: ShardOutput, *, config: FilterConfig) -> dict[str, Any]:
    """Write the kept documents of a shard and its ledger; return what was counted, by reason."""
    documents, names = item.shard.documents, check_names(config)
    final = with_copies(findings_of(item.assessed), item.copies, names, config.duplicates.threshold)
    ids = documents.read(["doc_id"])["doc_id"]
    cuts = _cuts(item, ids, config)
    characters = _write_documents(item, out, final.passes, cuts)
    made = np.where(final.passes, cuts.counts, 0).astype(np.int32)
    ledger = ledger_of(ids, names, final, item.partners, made, pa.array(characters))
    out.write_table("ledger", f"{beside(documents.input.digest)}/{documents.path}", ledger)
    passages = cuts.counted(final.passes) if passage_views(config.views) else {}
    return {**counted(ledger), **passages}


@dataclass(frozen=True, eq=False)
class _Cuts:
    """The edits of a shard's texts: all that may be made, and those without passages.

    A document of which the first would leave nothing is `spared`: only the second are made.
    """

    every: Edits
    others: Edits
    cut: NDArray[np.int64]
    """[documents] Passages that may be cut."""
    lost: NDArray[np.int64]
    """[documents] Passages that stay, for their first holder goes."""
    spared: NDArray[np.bool_]

    @property
    def counts(self) -> NDArray[np.int32]:
        """Edits that are made in each document, once all were."""
        return np.where(self.spared, self.others.counts, self.every.counts)

    def make(self, text: str, row: int) -> str:
        """The text of one document with its edits made."""
        made = apply(text, self.every.of(row))
        if made.strip() or not self.cut[row]:
            return made
        self.spared[row] = True
        return apply(text, self.others.of(row))

    def counted(self, kept: NDArray[np.bool_]) -> dict[str, int]:
        """What became of the passages of kept documents."""
        return {
            "passages_cut": int(self.cut[kept & ~self.spared].sum()),
            "passages_left": int(self.lost[kept].sum() + self.cut[kept & self.spared].sum()),
            "documents_spared": int((kept & self.spared).sum()),
        }


def _cuts(item: Decided, ids: pa.ChunkedArray, config: FilterConfig) -> _Cuts:
    documents, stay = len(ids), config.personal_data.kept()
    chosen, passages = config.views, passage_views(config.views)
    nothing = Spans(np.empty(0, np.int64), _NO_SPANS, documents)
    spans = spans_of(item.shard, ids) if item.shard.views and chosen else nothing
    lost = are_lost(spans, passages, item.holders)
    cut = are_passages(spans, passages) & ~lost
    return _Cuts(
        edits_of(spans.where(~lost), chosen, stay),
        edits_of(spans, other_views(chosen), stay),
        np.bincount(spans.rows[cut], minlength=documents),
        np.bincount(spans.rows[lost], minlength=documents),
        np.zeros(documents, dtype=bool),
    )


def _write_documents(
    item: Decided, out: ShardOutput, kept: NDArray[np.bool_], cuts: _Cuts
) -> NDArray[np.int64]:
    """Write the kept rows, one row group in memory at a time; characters of each text."""
    shard = item.shard.documents
    characters = [np.empty(0, dtype=np.int64)]
    stop = 0
    with out.table_writer("documents", f"{item.id}.parquet", _DOCUMENTS) as writer:
        for group in shard.row_groups():
            start, stop = stop, stop + len(group)
            characters.append(pc.utf8_length(group["text"]).to_numpy().astype(np.int64))
            staying = np.flatnonzero(kept[start:stop])
            if len(staying):
                rows = group if len(staying) == len(group) else group.take(pa.array(staying))
                rows = _edited(_classed(rows, start + staying, item), start + staying, cuts)
                writer.write(rows.select(_DOCUMENTS.names))
    return np.concatenate(characters)


def _classed(rows: pa.Table, numbers: NDArray[np.int64], item: Decided) -> pa.Table:
    """`rows` with the duplicate class of their row numbers, and its other names."""
    named = np.isin(numbers, item.class_rows, assume_unique=True)
    names = item.class_names.filter(pa.array(np.isin(item.class_rows, numbers)))
    classes = pc.replace_with_mask(rows["doc_id"].combine_chunks(), pa.array(named), names)
    place = rows.schema.get_field_index("duplicate_class")
    rows = rows.set_column(place, "duplicate_class", classes)
    linked = pa.array(np.searchsorted(item.linked_rows, numbers))
    linked = pc.if_else(np.isin(numbers, item.linked_rows), linked, None)
    place = rows.schema.get_field_index("linked_classes")
    return rows.set_column(place, "linked_classes", item.linked_names.take(linked))


def _edited(rows: pa.Table, numbers: NDArray[np.int64], cuts: _Cuts) -> pa.Table:
    """`rows` with the edits of their row numbers made; only texts that change become strings."""
    changed = cuts.every.counts[numbers] > 0
    if not changed.any():
        return rows
    texts = rows["text"].combine_chunks()
    made = [
        cuts.make(text, number)
        for text, number in zip(
            texts.filter(pa.array(changed)).to_pylist(), numbers[changed].tolist(), strict=True
        )
    ]
    place = rows.schema.get_field_index("text")
    replaced = pc.replace_with_mask(texts, pa.array(changed), pa.array(made, pa.string()))
    return rows.set_column(place, "text", replaced)


def counted(ledger: pa.Table) -> dict[str, Any]:
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
