"""Edits of texts: spans of views replaced, repeated passages cut, texts as people see them.

`dedup` writes repeated passages as views in which the label of a span is the doc_id of the document
that holds the first occurrence. They are cut where that document stays and kept otherwise, which is
known once copies are decided. All is arrays until one text is edited.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS
from stages.engine.tally import rows_by_id
from stages.filter.config import (
    PERSONAL_DATA,
    SECRET,
    SECRETS,
    other_views,
)

if TYPE_CHECKING:
    from stages.engine.inputs import Input


class Edit(NamedTuple):
    """Characters [start, end) of a text, and their replacement."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True, eq=False)
class Spans:
    """The spans of a batch of documents: `flat[i]` is one of the document `rows[i]`."""

    rows: NDArray[np.int64]
    flat: pa.StructArray
    documents: int

    @classmethod
    def from_columns(cls, *columns: pa.ChunkedArray) -> Spans:
        """All spans of `spans` columns (one at least) that describe the same documents."""
        lists = [column.combine_chunks() for column in columns]
        lengths = [pc.list_value_length(one).to_numpy(zero_copy_only=False) for one in lists]
        documents = len(lists[0])
        rows = [np.repeat(np.arange(documents), counts) for counts in lengths]
        flat = pa.concat_arrays([one.flatten() for one in lists])
        return cls(np.concatenate(rows), flat, documents)

    def where(self, chosen: NDArray[np.bool_]) -> Spans:
        """Some of them."""
        return Spans(self.rows[chosen], self.flat.filter(pa.array(chosen)), self.documents)


@dataclass(frozen=True, eq=False)
class Edits:
    """The edits of a batch of texts, from left to right and without overlap.

    Those of row r are the places `offsets[r] : offsets[r + 1]` of `start`, `end`, `replacement`.
    """

    offsets: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    replacement: pa.StringArray

    @property
    def counts(self) -> NDArray[np.int32]:
        """How many each row has."""
        return np.diff(self.offsets).astype(np.int32)

    def for_row(self, row: int) -> list[Edit]:
        """The edits of one row."""
        first, last = int(self.offsets[row]), int(self.offsets[row + 1])
        replacements = self.replacement.slice(first, last - first).to_pylist()
        places = zip(self.start[first:last].tolist(), self.end[first:last].tolist(), strict=True)
        return [
            Edit(start, end, replacement)
            for (start, end), replacement in zip(places, replacements, strict=True)
        ]

    def only_cut(self) -> NDArray[np.int64]:
        """The rows that are edited and of which every replacement is blank."""
        blank = pc.equal(pc.utf8_trim_whitespace(self.replacement), "").to_numpy(False)
        filled = np.concatenate([[0], np.cumsum(~blank)])
        untouched = filled[self.offsets[1:]] == filled[self.offsets[:-1]]
        return np.flatnonzero(untouched & (self.counts > 0))


def select_edits(spans: Spans, views: Sequence[str], keep: Collection[str] = frozenset()) -> Edits:
    """The edits that `views` make.

    `keep` names sorts of personal data that stay as they are. Of spans that overlap, the one that
    begins first, then the longer, then that of the view that `views` names first, is replaced
    together with all of them.
    """
    flat = spans.flat
    rank = pc.index_in(flat.field("view"), value_set=pa.array(views, pa.string()))
    chosen = _choose_spans(flat, rank, keep)
    start = flat.field("start").to_numpy()[chosen].astype(np.int64)
    end = flat.field("end").to_numpy()[chosen].astype(np.int64)
    rows, ranks = spans.rows[chosen], rank.take(pa.array(chosen)).to_numpy(False)
    order = np.lexsort((ranks, -end, start, rows))
    rows, start, end = rows[order], start[order], end[order]

    # Places along all texts end to end, so that one running maximum serves every row.
    beyond = rows * _BEYOND
    reach = np.maximum.accumulate(beyond + end) if len(rows) else beyond
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (beyond + start)[1:] >= reach[:-1]
    begins[1:] |= np.diff(rows) > 0
    group_starts = np.flatnonzero(begins)
    lasts = np.append(group_starts[1:], len(rows))[: len(group_starts)] - 1
    offsets = np.searchsorted(rows[group_starts], np.arange(spans.documents + 1))
    replacement = flat.field("replacement").take(pa.array(chosen[order][group_starts]))
    return Edits(offsets, start[group_starts], (reach - beyond)[lasts], replacement)


_BEYOND = 1 << 32
"""More than any place within a text (spans are int32)."""


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """`text` with each edit made; `edits` from left to right, without overlap."""
    pieces, last = [], 0
    for edit in edits:
        pieces += [text[last : edit.start], edit.replacement]
        last = edit.end
    return "".join([*pieces, text[last:]])


def leaves_nothing(text: str, edits: Sequence[Edit]) -> bool:
    """Whether only white space is outside `edits`."""
    last = 0
    for edit in edits:
        if text[last : edit.start].strip():
            return False
        last = edit.end
    return not text[last:].strip()


def _choose_spans(flat: pa.StructArray, rank: pa.Array, keep: Collection[str]) -> NDArray[np.int64]:
    """The places of the spans that are replaced."""
    chosen = pc.is_valid(rank)
    if keep:
        view = flat.field("view")
        sort = pc.is_in(flat.field("label"), value_set=pa.array(sorted(keep)))
        stays = pc.and_(pc.equal(view, PERSONAL_DATA), sort)
        if SECRET in keep:
            stays = pc.or_(stays, pc.equal(view, SECRETS))
        chosen = pc.and_(chosen, pc.invert(stays))
    return np.flatnonzero(chosen.to_numpy(zero_copy_only=False))


def passage_holders(spans: Spans, views: Sequence[str]) -> pa.StringArray:
    """The documents, each once, that hold passages of `views` first."""
    return pc.unique(spans.flat.field("label").filter(pa.array(passage_mask(spans, views))))


def passage_mask(spans: Spans, views: Sequence[str]) -> NDArray[np.bool_]:
    """Which spans are those of `views`."""
    chosen = pc.is_in(spans.flat.field("view"), value_set=pa.array(views, pa.string()))
    return chosen.to_numpy(zero_copy_only=False)


def lost_mask(spans: Spans, views: Sequence[str], kept: pa.StringArray) -> NDArray[np.bool_]:
    """Which spans are passages of `views` whose first holder is not among `kept`: they stay.

    What a document repeats of itself is not lost: the first occurrence is in the same document.
    """
    label_kept = pc.is_in(spans.flat.field("label"), value_set=kept)
    return passage_mask(spans, views) & ~label_kept.to_numpy(zero_copy_only=False)


_SPANS = KINDS["views"].tables["*.parquet"].arrow().field("spans").type


def spans_by_id(views: Iterable[Input], doc_ids: Collection[str]) -> dict[str, list[Any]]:
    """The spans of some documents, those of all `views` together."""
    spans: dict[str, list[Any]] = {}
    for input_ in views:
        for doc_id, row in rows_by_id([input_], doc_ids, ["spans"]).items():
            spans.setdefault(doc_id, []).extend(row["spans"])
    return spans


def apply_views(
    text: str, spans: Sequence[Any], views: Sequence[str], keep: Collection[str] = frozenset()
) -> str:
    """`text` with the edits of `views` made, but for passages that other documents hold."""
    if not spans:
        return text
    all_spans = Spans.from_columns(pa.chunked_array([pa.array([list(spans)], _SPANS)]))
    return apply_edits(text, select_edits(all_spans, other_views(views), keep).for_row(0))
