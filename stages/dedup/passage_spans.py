"""From repeated passages to spans: what may be cut, and which passages occur most often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stages.engine.tally import excerpt

if TYPE_CHECKING:
    from stages.engine import Shard

MOST_FREQUENT = 20
"""Passages that are listed for each measure."""
EXCERPT = 200
"""Characters of a passage that are listed."""


class Occurrences(NamedTuple):
    """Occurrences, by row, then start, of passages that occur more than once.

    Characters [start, end) of the document in that row of its shard; the text after the passage
    begins at `next_start`, and `following` more passages follow in the document. `times` is how
    often the passage occurs in all documents, (high, low) the id of the document that holds it
    first, and `is_first` whether this is that first place.
    """

    hash: NDArray[np.uint64]
    row: NDArray[np.int32]
    start: NDArray[np.int32]
    end: NDArray[np.int32]
    next_start: NDArray[np.int32]
    following: NDArray[np.int32]
    times: NDArray[np.int64]
    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    is_first: NDArray[np.bool_]

    @classmethod
    def from_table(cls, table: pa.Table) -> Occurrences:
        """The rows of a table with these columns."""
        return cls._make(
            table[name].to_numpy() if name != "is_first" else np.asarray(table[name], dtype=bool)
            for name in cls._fields
        )

    def take(self, chosen: NDArray[Any]) -> Occurrences:
        """Some of them."""
        return Occurrences._make(column[chosen] for column in self)


class Spans(NamedTuple):
    """Spans of several documents by row, then start; none overlap.

    Characters [starts[i], ends[i]) of the document in row rows[i] occur earlier, first in the
    document with the id (high[i], low[i]).
    """

    rows: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    high: NDArray[np.uint64]
    low: NDArray[np.uint64]


@dataclass(frozen=True)
class Stretch:
    """Passages in their first place, one into the other, that all occur `count` times."""

    count: int
    hash: int
    """Of the first of them."""
    row: int
    start: int
    end: int
    doc_id: str


def line_spans(repeats: Occurrences) -> Spans:
    """Lines with their line feeds; at the end of a text, where no line stays, with those before."""
    last_of_row = np.searchsorted(repeats.row, repeats.row, side="right") - 1
    cut_after = last_of_row - np.arange(len(repeats.row))
    line_stays_after = cut_after < repeats.following
    starts = repeats.start - (~line_stays_after & (repeats.start > 0))
    ends = np.where(line_stays_after, repeats.next_start, repeats.end)
    chosen = starts < ends
    return Spans(
        repeats.row[chosen],
        starts[chosen].astype(np.int32),
        ends[chosen],
        repeats.high[chosen],
        repeats.low[chosen],
    )


def merge_spans(repeats: Occurrences) -> Spans:
    """Repeats that overlap as one span, labelled as the first of them.

    If all is cut from the beginning of a text, so is the white space before what follows.
    """
    group_starts = _overlapping(repeats.row, repeats.start, repeats.end)
    lasts = np.append(group_starts[1:], len(repeats.row))[: len(group_starts)] - 1
    rows, starts, ends = repeats.row[group_starts], repeats.start[group_starts], repeats.end[lasts]
    next_starts = repeats.next_start[lasts]
    # Spans from the beginning of a text on with nothing between them.
    opens = np.ones(len(rows), dtype=bool)
    opens[1:] = rows[1:] != rows[:-1]
    cut_before = np.where(opens, 0, np.roll(next_starts, 1))
    gaps = np.cumsum(starts > cut_before)
    first_of_row = np.flatnonzero(opens)[np.cumsum(opens) - 1]
    leading = gaps == gaps[first_of_row]
    leading &= starts[first_of_row] == 0
    starts = np.where(leading, np.maximum(starts, cut_before), starts)
    ends = np.where(leading, next_starts, ends)
    return Spans(
        rows,
        starts.astype(np.int32),
        ends.astype(np.int32),
        repeats.high[group_starts],
        repeats.low[group_starts],
    )


def find_stretches(occurrences: Occurrences) -> list[Stretch]:
    """The most frequent of passages in their first place, overlapping ones as one.

    By falling count, then hash.
    """
    groups = _overlapping(occurrences.row, occurrences.start, occurrences.end, occurrences.times)
    order = np.lexsort((occurrences.hash[groups], -occurrences.times[groups]))[:MOST_FREQUENT]
    last = np.append(groups[1:], len(occurrences.row))[: len(groups)] - 1
    return [
        Stretch(
            int(occurrences.times[begin]),
            int(occurrences.hash[begin]),
            int(occurrences.row[begin]),
            int(occurrences.start[begin]),
            int(occurrences.end[end]),
            format_doc_id(int(occurrences.high[begin]), int(occurrences.low[begin])),
        )
        for begin, end in zip(groups[order].tolist(), last[order].tolist(), strict=True)
    ]


def most_frequent(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Those that occur most often; of equally frequent ones those of least hash."""
    return sorted(stretches, key=lambda one: (-one.count, one.hash))[:MOST_FREQUENT]


def concatenate_spans(parts: Sequence[Spans]) -> Spans:
    """All of them, one after the other."""
    places, ids = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint64)
    columns = zip(Spans(places, places, places, ids, ids), *parts, strict=True)
    return Spans._make(np.concatenate(column) for column in columns)


def format_doc_id(high: int, low: int) -> str:
    """The 32 hex digits of an id in two halves."""
    return f"{high:016x}{low:016x}"


def with_excerpts(stretches: Sequence[tuple[Stretch, Shard]]) -> list[dict[str, Any]]:
    """`count`, `doc_id` and `excerpt` of each; only the row groups they lie in are read."""
    return [
        {
            "count": stretch.count,
            "doc_id": stretch.doc_id,
            "excerpt": excerpt(_text(shard, stretch.row)[stretch.start : stretch.end], EXCERPT),
        }
        for stretch, shard in stretches
    ]


def _overlapping(
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    counts: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """The first of each group of passages that overlap and occur equally often."""
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (rows[1:] != rows[:-1]) | (starts[1:] >= ends[:-1])
    if counts is not None:
        begins[1:] |= counts[1:] != counts[:-1]
    return np.flatnonzero(begins)


def _text(shard: Shard, row: int) -> str:
    with shard.input.open(shard.path) as file:
        parquet = pq.ParquetFile(file)
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if row < rows:
                table = parquet.read_row_group(group, columns=["text"], use_threads=False)
                return table["text"][row].as_py()
            row -= rows
    raise ValueError(f"{shard.path} has no such row")
