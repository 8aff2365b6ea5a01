"""The ledger of a batch of documents, built from arrays: no Python object a document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS
from stages.filter.checks import EXACT_DUPLICATE, NEAR_DUPLICATE, Findings
from stages.filter.decide import Copies

LEDGER = KINDS["ledger"].tables["*/*.parquet"].arrow()
_FAILING = LEDGER.field("failing").type


def with_copies(
    found: Findings, copies: Copies, names: Sequence[str], near_threshold: float | None
) -> Findings:
    """The findings with the last check added: being a copy of a kept document."""
    is_copy = copies.partner >= 0
    code = np.where(copies.exact, names.index(EXACT_DUPLICATE), names.index(NEAR_DUPLICATE))
    codes = np.insert(found.codes, found.offsets[1:][is_copy], code[is_copy])
    offsets = found.offsets + np.concatenate([[0], np.cumsum(is_copy)]).astype(np.int32)
    first = is_copy & found.passes
    limit = np.where(copies.exact, 1.0, np.nan if near_threshold is None else near_threshold)
    value = np.where(first, copies.similarity.astype(np.float64), found.value)
    threshold = np.where(first, limit, found.threshold)
    return Findings(offsets, codes.astype(np.int32), value, threshold)


def first_failing(final: Findings) -> NDArray[np.int32]:
    """The place of each document's reason among the names; -1 for a document that stays."""
    first = np.full(len(final.offsets) - 1, -1, dtype=np.int32)
    dropped = np.flatnonzero(~final.passes)
    first[dropped] = final.codes[final.offsets[dropped]]
    return first


def ledger_of(
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
    first = first_failing(final)
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
