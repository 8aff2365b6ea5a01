"""What the stage writes: columns of signals, and spans of views.

A view is a named edit of a text. Its spans are found one by one, or come from a label for each
character (`Marks`): kept, or cut and why. The label is an index into the names of the view, 0 is
kept, and neighbours of one label are one cut; cuts and edited texts follow from it. The rows of the
views table are put together from arrays, without a Python object for each cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS, Column
from stages.text.batch import sum_before


@dataclass(frozen=True)
class Signal:
    """A column of the signals table. `view` names the edit of the text it was computed on."""

    name: str
    type: str
    unit: str
    source: str
    description: str
    view: str = "text"

    @property
    def column(self) -> Column:
        """The column of the Arrow schema."""
        return Column(self.name, self.type, self.description)


def share(name: str, source: str, description: str, *, null: bool = False) -> Signal:
    """A part of a whole; `null` where some documents have none."""
    return Signal(name, "float64?" if null else "float64", "share", source, description)


def count(name: str, unit: str, source: str, description: str, *, null: bool = False) -> Signal:
    """A number of things; `null` where some documents have none."""
    return Signal(name, "int64?" if null else "int64", unit, source, description)


class Span(NamedTuple):
    """Characters [start, end) of a text: what they are and what to put there."""

    start: int
    end: int
    label: str
    replacement: str


def drop_overlaps(spans: Sequence[Span]) -> list[Span]:
    """From left to right; of two that overlap the first, of two that start together the longer."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not kept or kept[-1].end <= span.start:
            kept.append(span)
    return kept


def to_character_offsets(text: str, encoded: bytes, places: Sequence[int]) -> Sequence[int]:
    """Ascending places where characters of `encoded` begin, counted in characters of `text`."""
    if len(text) == len(encoded):
        return places
    offsets, last, count = [], 0, 0
    for place in places:
        count += len(encoded[last:place].decode("utf-8", "surrogatepass"))
        last = place
        offsets.append(count)
    return offsets


KEPT, WHITE_SPACE, LINE_BREAK = 0, 1, 2
"""Labels of every view. A line break is one character, a boundary of another sort that becomes a
line feed; two are never neighbours, since no line that is kept is empty."""
LABELS = ("kept", "white_space", "line_break")

_LINE_FEED = ord("\n")

Marks = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Cuts:
    """The spans of one view, by text, then start; none overlap.

    Span i has the characters [starts[i], ends[i]) of text text_of[i] and is called
    label_names[labels[i]]; replacement_names[replacements[i]] takes its place.
    """

    view: str
    text_of: NDArray[np.int64]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    labels: NDArray[np.uint8]
    label_names: tuple[str, ...]
    replacements: NDArray[np.uint8]
    replacement_names: tuple[str, ...]

    def moved(self, texts: int) -> Cuts:
        """The same, with texts numbered from `texts` on."""
        return replace(self, text_of=self.text_of + texts)


def find_cuts(view: str, marks: Marks, offsets: NDArray[np.int64], names: Sequence[str]) -> Cuts:
    """The runs of equal labels in a batch of texts, as spans within each text."""
    cut, border = marks != KEPT, np.ones(len(marks) + 1, dtype=np.bool_)
    border[1:-1] = marks[1:] != marks[:-1]
    border[offsets] = True
    starts, ends = np.flatnonzero(cut & border[:-1]), np.flatnonzero(cut & border[1:]) + 1
    texts, labels = np.searchsorted(offsets, starts, side="right") - 1, marks[starts]
    first = offsets[texts]
    return Cuts(
        view, texts, (starts - first).astype(np.int32), (ends - first).astype(np.int32), labels,
        tuple(names), (labels == LINE_BREAK).astype(np.uint8), ("", "\n"),
    )  # fmt: skip


def apply_marks(
    codes: NDArray[np.uint32], offsets: NDArray[np.int64], marks: Marks
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The code points that the cuts leave, and where each text begins among them."""
    breaks = marks == LINE_BREAK
    left = breaks | (marks == KEPT)
    return np.where(breaks, _LINE_FEED, codes)[left], sum_before(left, offsets)


def decode_texts(codes: NDArray[np.uint32], offsets: NDArray[np.int64]) -> list[str]:
    """The strings of code points; text d has those from offsets[d] to offsets[d + 1]."""
    if len(codes) and codes.max() < 128:
        joined = codes.astype(np.uint8).tobytes().decode("ascii")
    else:
        joined = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return [joined[start:end] for start, end in pairwise(offsets.tolist())]


_SCHEMA = KINDS["views"].tables["*.parquet"].arrow()
_SPAN = _SCHEMA.field("spans").type.value_type
_SPANS = pa.schema([("row", pa.int64()), *_SPAN])
"""Spans as columns, with the row of the document of each."""
_SORT_KEYS = [(name, "ascending") for name in ("row", "view", "start", "end")]


def make_view_table(
    doc_ids: pa.ChunkedArray | pa.Array,
    views: Sequence[Mapping[str, Sequence[Span]]],
    cuts: Sequence[Cuts] = (),
    further: pa.ChunkedArray | None = None,
) -> pa.Table:
    """The rows of the views table: spans by view, then start, then end.

    For each document: the spans of its `views`; the `cuts`, whose `text_of` is the row of the
    document; and the `further` spans of another views table's column. Spans that equal in all three
    stay in this order.
    """
    parts = [_make_spans(views), *map(_convert_cuts, cuts)]
    if further is not None:
        lists = further.combine_chunks()
        rows = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy())
        spans = lists.flatten()
        parts.append(
            pa.table({"row": rows, **{f.name: spans.field(f.name) for f in _SPAN}}, _SPANS)
        )
    spans = pa.concat_tables(parts).sort_by(_SORT_KEYS)
    columns = [spans[field.name].combine_chunks() for field in _SPAN]
    offsets = np.zeros(len(doc_ids) + 1, dtype=np.int32)
    np.cumsum(np.bincount(spans["row"], minlength=len(doc_ids)), out=offsets[1:])
    lists = pa.ListArray.from_arrays(
        pa.array(offsets),
        pa.StructArray.from_arrays(columns, fields=list(_SPAN)),
        type=_SCHEMA.field("spans").type,
    )
    return pa.table([doc_ids, lists], schema=_SCHEMA)


def _make_spans(views_by_row: Sequence[Mapping[str, Sequence[Span]]]) -> pa.Table:
    spans = [
        {"row": row, "view": view, **span._asdict()}
        for row, views in enumerate(views_by_row)
        for view, spans in views.items()
        for span in spans
    ]
    return pa.Table.from_pylist(spans, _SPANS)


def _convert_cuts(cuts: Cuts) -> pa.Table:
    columns = {
        "row": cuts.text_of,
        "view": pa.repeat(cuts.view, len(cuts.starts)),
        "start": cuts.starts,
        "end": cuts.ends,
        "label": pa.array(cuts.label_names).take(pa.array(cuts.labels)),
        "replacement": pa.array(cuts.replacement_names).take(pa.array(cuts.replacements)),
    }
    return pa.table(columns, _SPANS)
