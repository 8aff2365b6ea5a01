"""Texts as people are shown them: with edits made, whatever is decided about other documents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from artifacts_schema.kinds import KINDS
from stages.engine.excerpts import rows_of
from stages.filter.edits import Spans, apply, edits_of
from stages.filter.passages import other_views

if TYPE_CHECKING:
    from stages.engine.inputs import Input

_SPANS = KINDS["views"].tables["*.parquet"].arrow().field("spans").type


def spans_by_id(views: Iterable[Input], doc_ids: Collection[str]) -> dict[str, list[Any]]:
    """The spans of some documents, those of all `views` together."""
    found: dict[str, list[Any]] = {}
    for given in views:
        for doc_id, row in rows_of([given], doc_ids, ["spans"]).items():
            found.setdefault(doc_id, []).extend(row["spans"])
    return found


def shown(
    text: str, spans: Sequence[Any], views: Sequence[str], keep: Collection[str] = frozenset()
) -> str:
    """`text` with the edits of `views` made, but for passages that other documents hold."""
    if not spans:
        return text
    told = Spans.of(pa.chunked_array([pa.array([list(spans)], _SPANS)]))
    return apply(text, edits_of(told, other_views(views), keep).of(0))
