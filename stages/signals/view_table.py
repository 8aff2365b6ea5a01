"""The rows of the views table, put together from arrays: no Python object for a compiled cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS
from stages.signals.line_rules.marks import Cuts
from stages.signals.spans import Span

_SCHEMA = KINDS["views"].tables["*.parquet"].arrow()
_SPAN = _SCHEMA.field("spans").type.value_type
_NAMED = ("view", "label", "replacement")


@dataclass(frozen=True)
class _Names:
    """A column of strings: names[codes[i]]."""

    codes: NDArray[np.int64]
    names: Sequence[str]

    @staticmethod
    def of(strings: pa.Array) -> _Names:
        encoded = strings.dictionary_encode()
        return _Names(np.asarray(encoded.indices, dtype=np.int64), encoded.dictionary.to_pylist())


@dataclass(frozen=True)
class _Spans:
    """Spans as columns: rows of their documents, characters, and the strings by name."""

    rows: NDArray[np.int64]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    named: Mapping[str, _Names]


def view_table(
    doc_ids: pa.ChunkedArray | pa.Array,
    found: Sequence[Mapping[str, Sequence[Span]]],
    cuts: Sequence[Cuts] = (),
    further: pa.ChunkedArray | None = None,
) -> pa.Table:
    """The rows of the views table: spans by view, then start, then end.

    For each document: what was `found` by view; the `cuts`, whose `text_of` is the row of the
    document; and the `further` spans of another views table's column. Spans that equal in all three
    stay in this order.
    """
    parts = [_found(found), *map(_cut, cuts)]
    if further is not None:
        parts.append(_further(further))
    rows = np.concatenate([part.rows for part in parts])
    starts = np.concatenate([part.starts for part in parts])
    ends = np.concatenate([part.ends for part in parts])
    named = {name: _joined([part.named[name] for part in parts]) for name in _NAMED}

    ranks = np.argsort(np.argsort(np.array(named["view"].names, dtype=np.str_)))
    order = np.lexsort((ends, starts, ranks[named["view"].codes], rows))
    columns = {"start": pa.array(starts[order]), "end": pa.array(ends[order])}
    for name, column in named.items():
        strings = pa.array(column.names, type=pa.string())
        columns[name] = strings.take(pa.array(column.codes[order]))
    spans = pa.StructArray.from_arrays([columns[field.name] for field in _SPAN], fields=list(_SPAN))
    offsets = np.zeros(len(doc_ids) + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=len(doc_ids)), out=offsets[1:])
    lists = pa.ListArray.from_arrays(pa.array(offsets), spans, type=_SCHEMA.field("spans").type)
    return pa.table([doc_ids, lists], schema=_SCHEMA)


def _found(found: Sequence[Mapping[str, Sequence[Span]]]) -> _Spans:
    spans = [
        (row, view, span)
        for row, views in enumerate(found)
        for view, spans in views.items()
        for span in spans
    ]
    return _Spans(
        np.array([row for row, _, _ in spans], dtype=np.int64),
        np.array([span.start for _, _, span in spans], dtype=np.int32),
        np.array([span.end for _, _, span in spans], dtype=np.int32),
        {
            "view": _strings([view for _, view, _ in spans]),
            "label": _strings([span.label for _, _, span in spans]),
            "replacement": _strings([span.replacement for _, _, span in spans]),
        },
    )


def _strings(strings: list[str]) -> _Names:
    return _Names.of(pa.array(strings, type=pa.string()))


def _cut(cuts: Cuts) -> _Spans:
    named = {
        "view": _Names(np.zeros(len(cuts.starts), dtype=np.int64), (cuts.view,)),
        "label": _Names(cuts.labels.astype(np.int64), cuts.label_names),
        "replacement": _Names(cuts.replacements.astype(np.int64), cuts.replacement_names),
    }
    return _Spans(cuts.text_of, cuts.starts, cuts.ends, named)


def _further(column: pa.ChunkedArray) -> _Spans:
    lists = column.combine_chunks()
    spans = lists.flatten()
    return _Spans(
        np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy()),
        spans.field("start").to_numpy(),
        spans.field("end").to_numpy(),
        {name: _Names.of(spans.field(name)) for name in _NAMED},
    )


def _joined(columns: Sequence[_Names]) -> _Names:
    """One column below the other, each name once."""
    numbers: dict[str, int] = {}
    codes = []
    for column in columns:
        place = np.array(
            [numbers.setdefault(name, len(numbers)) for name in column.names], dtype=np.int64
        )
        codes.append(place[column.codes])
    return _Names(np.concatenate(codes), list(numbers))
