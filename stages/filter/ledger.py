"""The outputs of `filter`: kept documents with their edits made, and the ledger.

Here text is written for the second and last time. The ledger is built from arrays, without a Python
object for each document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS, sidecar_folder
from stages.filter.assess import read_findings, read_holders, read_spans, reason_names
from stages.filter.checks import EXACT_DUPLICATE, NEAR_DUPLICATE, Findings
from stages.filter.config import FilterConfig, other_views, passage_views
from stages.filter.copies import DecidedCopies, ShardCopies
from stages.filter.decide import Copies
from stages.filter.edits import (
    Edits,
    Spans,
    apply_edits,
    lost_mask,
    passage_mask,
    select_edits,
)
from stages.filter.sidecars import AlignedShard

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult


LEDGER = KINDS["ledger"].tables["*/*.parquet"].arrow()
_FAILING = LEDGER.field("failing").type


def add_copies(
    findings: Findings, copies: Copies, names: Sequence[str], near_threshold: float | None
) -> Findings:
    """The findings with the last check added: being a copy of a kept document."""
    is_copy = copies.partner >= 0
    code = np.where(copies.exact, names.index(EXACT_DUPLICATE), names.index(NEAR_DUPLICATE))
    codes = np.insert(findings.codes, findings.offsets[1:][is_copy], code[is_copy])
    offsets = findings.offsets + np.concatenate([[0], np.cumsum(is_copy)]).astype(np.int32)
    first = is_copy & findings.passes
    limit = np.where(copies.exact, 1.0, np.nan if near_threshold is None else near_threshold)
    value = np.where(first, copies.similarity.astype(np.float64), findings.value)
    threshold = np.where(first, limit, findings.threshold)
    return Findings(offsets, codes.astype(np.int32), value, threshold)


def first_failures(final: Findings) -> NDArray[np.int32]:
    """The place of each document's reason among the names; -1 for a document that stays."""
    first = np.full(len(final.offsets) - 1, -1, dtype=np.int32)
    dropped = np.flatnonzero(~final.passes)
    first[dropped] = final.codes[final.offsets[dropped]]
    return first


def ledger_table(
    doc_ids: pa.Array | pa.ChunkedArray,
    names: Sequence[str],
    final: Findings,
    partners: pa.StringArray,
    edits: NDArray[np.int32],
    characters: pa.Array | pa.ChunkedArray,
) -> pa.Table:
    """One row a document; `partners` and `edits` are those of each, `final` holds the copies."""
    kept = final.passes
    known = pa.array(list(names), pa.string())
    first = first_failures(final)
    verdicts = pa.array(["dropped", "kept"]).take(pa.array(kept.view(np.int8)))
    columns = [
        doc_ids,
        verdicts,
        known.take(pa.array(first, mask=kept)),
        pa.ListArray.from_arrays(
            pa.array(final.offsets), known.take(pa.array(final.codes)), type=_FAILING
        ),
        pa.array(final.value, from_pandas=True),
        pa.array(final.threshold, from_pandas=True),
        partners,
        pa.array(edits),
        pc.cast(characters, pa.int64()),
    ]
    return pa.table(columns, schema=LEDGER)


_DOCUMENTS = KINDS["documents"].tables["*.parquet"].arrow()
_NO_SPANS = pa.array([], KINDS["views"].tables["*.parquet"].arrow().field("spans").type.value_type)
_SAMPLES = 5


@dataclass(frozen=True, eq=False)
class DecidedShard:
    """A shard whose documents are decided on."""

    id: str
    shard: AlignedShard
    assessed: ShardResult
    start: int
    """The first of its documents among all."""
    staying: NDArray[np.bool_] | None = None
    """Which of its `HOLDERS` stay; None where no passages are cut."""

    def holders(self) -> pa.StringArray:
        """The documents that stay and hold passages first which these repeat."""
        if self.staying is None:
            return pa.array([], pa.string())
        return read_holders(self.assessed).filter(pa.array(self.staying))


def write_shard(
    item: DecidedShard, out: ShardOutput, *, config: FilterConfig, decided: DecidedCopies
) -> dict[str, Any]:
    """Write the kept documents of a shard and its ledger; return what was counted, by reason."""
    documents, names = item.shard.documents, reason_names(config)
    known = decided.among(item.start, item.start + documents.rows)
    findings, threshold = read_findings(item.assessed), config.duplicates.threshold
    final = add_copies(findings, known.copies(), names, threshold)
    ids = documents.read(["doc_id"])["doc_id"]
    cuts = _shard_edits(item, ids, config)
    characters = _write_documents(item, out, known, final.passes, cuts)
    made = np.where(final.passes, cuts.counts, 0).astype(np.int32)
    ledger = ledger_table(ids, names, final, known.partners(), made, pa.array(characters))
    out.write_table("ledger", f"{sidecar_folder(documents.input.digest)}/{documents.path}", ledger)
    passages = cuts.counted(final.passes) if passage_views(config.views) else {}
    return {**count_ledger(ledger), **passages}


@dataclass(frozen=True, eq=False)
class _ShardEdits:
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
        made = apply_edits(text, self.every.for_row(row))
        if made.strip() or not self.cut[row]:
            return made
        self.spared[row] = True
        return apply_edits(text, self.others.for_row(row))

    def counted(self, kept: NDArray[np.bool_]) -> dict[str, int]:
        """What became of the passages of kept documents."""
        return {
            "passages_cut": int(self.cut[kept & ~self.spared].sum()),
            "passages_left": int(self.lost[kept].sum() + self.cut[kept & self.spared].sum()),
            "documents_spared": int((kept & self.spared).sum()),
        }


def _shard_edits(item: DecidedShard, ids: pa.ChunkedArray, config: FilterConfig) -> _ShardEdits:
    documents, stay = len(ids), config.personal_data.kept()
    chosen, passages = config.views, passage_views(config.views)
    nothing = Spans(np.empty(0, np.int64), _NO_SPANS, documents)
    spans = read_spans(item.shard, ids) if item.shard.views and chosen else nothing
    lost = lost_mask(spans, passages, item.holders())
    cut = passage_mask(spans, passages) & ~lost
    return _ShardEdits(
        select_edits(spans.where(~lost), chosen, stay),
        select_edits(spans, other_views(chosen), stay),
        np.bincount(spans.rows[cut], minlength=documents),
        np.bincount(spans.rows[lost], minlength=documents),
        np.zeros(documents, dtype=bool),
    )


def _write_documents(
    item: DecidedShard,
    out: ShardOutput,
    known: ShardCopies,
    kept: NDArray[np.bool_],
    cuts: _ShardEdits,
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
                rows = _edited(_classed(rows, start + staying, known), start + staying, cuts)
                writer.write(rows.select(_DOCUMENTS.names))
    return np.concatenate(characters)


def _classed(rows: pa.Table, numbers: NDArray[np.int64], known: ShardCopies) -> pa.Table:
    """`rows` with the duplicate class of their row numbers, and its other names."""
    class_rows, class_names = known.column("duplicate_class")
    named = np.isin(numbers, class_rows, assume_unique=True)
    names = class_names.filter(pa.array(np.isin(class_rows, numbers)))
    classes = pc.replace_with_mask(rows["doc_id"].combine_chunks(), pa.array(named), names)
    place = rows.schema.get_field_index("duplicate_class")
    rows = rows.set_column(place, "duplicate_class", classes)
    linked_rows, linked_names = known.column("linked_classes")
    linked = pa.array(np.searchsorted(linked_rows, numbers))
    linked = pc.if_else(np.isin(numbers, linked_rows), linked, None)
    place = rows.schema.get_field_index("linked_classes")
    return rows.set_column(place, "linked_classes", linked_names.take(linked))


def _edited(rows: pa.Table, numbers: NDArray[np.int64], cuts: _ShardEdits) -> pa.Table:
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


def count_ledger(ledger: pa.Table) -> dict[str, Any]:
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
    chosen = ledger.select(["doc_id", "value", "threshold", "partner"]).take(rows)
    return [_sample(row) for row in chosen.to_pylist()]


def _sample(row: dict[str, Any]) -> str:
    """One dropped document in a line."""
    value = "" if row["value"] is None else f" {row['value']:.4g} against {row['threshold']:.4g}"
    partner = "" if row["partner"] is None else f", kept: {row['partner']}"
    return f"{row['doc_id']}{value}{partner}"
