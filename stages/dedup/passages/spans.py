"""From repeated passages to spans: what is cut, and what is cut most often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.dedup.passages.firsts import Repeated
from stages.dedup.passages.occurrences import Occurrences
from stages.text.native import compiled

MOST_FREQUENT = 20
"""Passages that are told of each measure."""


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

    def part(self, chosen: slice) -> Spans:
        """Some of them."""
        return Spans._make(column[chosen] for column in self)


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


class Judged(NamedTuple):
    """Of the occurrences of a run which are repeats, and the records of all that occur twice."""

    repeats: NDArray[np.bool_]
    known: NDArray[np.bool_]
    records: Repeated
    """[occurrences] where `known`; anything elsewhere."""


def judged(found: Occurrences, repeated: Repeated) -> Judged:
    """Everything but the first place of a passage is a repeat."""
    if not len(repeated):
        nothing = np.zeros(len(found), dtype=bool)
        return Judged(nothing, nothing, np.zeros(len(found), dtype=repeated.dtype))
    places = np.searchsorted(repeated["hash"], found["hash"])
    places[places == len(repeated)] = 0
    records = repeated[places]
    known = records["hash"] == found["hash"]
    return Judged(known & ~(found["first"] & records["here"]), known, records)


def line_spans(found: Occurrences, verdict: Judged) -> Spans:
    """Lines with their line feeds; at the end of a text, where no line stays, with those before."""
    starts, ends = _line_cuts(
        found["row"].copy(), found["start"].copy(), found["end"].copy(), found["behind"].copy(),
        verdict.repeats,
    )  # fmt: skip
    chosen = np.flatnonzero(verdict.repeats)
    chosen = chosen[starts[chosen] < ends[chosen]]
    return _spans(found, verdict, chosen, starts[chosen], ends[chosen])


@compiled
def _line_cuts(
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    behind: NDArray[np.int32],
    cut: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    first, last = starts.copy(), ends.copy()
    kept_later = False
    for line in range(len(rows) - 1, -1, -1):
        if line == len(rows) - 1 or rows[line] != rows[line + 1]:
            kept_later = False
        if not cut[line]:
            kept_later = True
        elif kept_later:
            last[line] = behind[line]
        elif starts[line]:
            first[line] -= 1
    return first, last


def joined_spans(found: Occurrences, verdict: Judged) -> Spans:
    """Repeats that overlap as one span, labelled as the first of them.

    Where all is cut from the beginning of a text, so is the white space before what follows.
    """
    chosen = np.flatnonzero(verdict.repeats)
    groups = _overlapping(found["row"][chosen], found["start"][chosen], found["end"][chosen])
    lasts = chosen[np.append(groups[1:], len(chosen))[: len(groups)] - 1]
    firsts = chosen[groups]
    rows, starts, ends = found["row"][firsts], found["start"][firsts], found["end"][lasts]
    _trim_beginnings(rows, starts, ends, found["behind"][lasts])
    return _spans(found, verdict, firsts, starts, ends)


@compiled
def _trim_beginnings(
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    behind: NDArray[np.int32],
) -> None:
    cut = 0
    for span in range(len(rows)):
        if span == 0 or rows[span] != rows[span - 1]:
            cut = 0
        if starts[span] <= cut:
            starts[span] = max(starts[span], cut)
            cut = ends[span] = behind[span]


def stretches(
    found: Occurrences, verdict: Judged, most: int = MOST_FREQUENT, blank: int | None = None
) -> list[Stretch]:
    """The most frequent passages that have their first place here, overlapping ones as one.

    By falling count, then hash. `blank` is the hash of a passage without content, left out.
    """
    first = verdict.known & ~verdict.repeats
    if blank is not None:
        first &= found["hash"] != np.uint64(blank)
    chosen = np.flatnonzero(first)
    held, counts = found[chosen], verdict.records["count"][chosen]
    groups = _overlapping(held["row"], held["start"], held["end"], counts)
    order = np.lexsort((held["hash"][groups], -counts[groups].astype(np.int64)))[:most]
    last = np.append(groups[1:], len(held))[: len(groups)] - 1
    return [
        Stretch(
            int(counts[begin]),
            int(held["hash"][begin]),
            int(held["row"][begin]),
            int(held["start"][begin]),
            int(held["end"][end]),
            doc_id(int(record["high"]), int(record["low"])),
        )
        for begin, end in zip(groups[order].tolist(), last[order].tolist(), strict=True)
        for record in [verdict.records[chosen[begin]]]
    ]


def joined(parts: Sequence[Spans]) -> Spans:
    """All of them, one after the other."""
    places, ids = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint64)
    columns = zip(Spans(places, places, places, ids, ids), *parts, strict=True)
    return Spans._make(np.concatenate(column) for column in columns)


def doc_id(high: int, low: int) -> str:
    """The 32 hex digits of an id in two halves."""
    return f"{high:016x}{low:016x}"


def _overlapping(
    rows: NDArray[np.int32],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    alike: NDArray[np.uint64] | None = None,
) -> NDArray[np.int64]:
    """Where those begin that do not overlap the one before, or are not alike."""
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (rows[1:] != rows[:-1]) | (starts[1:] >= ends[:-1])
    if alike is not None:
        begins[1:] |= alike[1:] != alike[:-1]
    return np.flatnonzero(begins)


def _spans(
    found: Occurrences,
    verdict: Judged,
    chosen: NDArray[np.int64],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
) -> Spans:
    records = verdict.records[chosen]
    return Spans(found["row"][chosen], starts, ends, records["high"], records["low"])
