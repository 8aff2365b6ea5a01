"""The views of a shard: the spans of every measure, row for row beside the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS, beside
from stages.dedup.passages import lines, sentences, substrings
from stages.dedup.passages.firsts import Found, Run
from stages.dedup.passages.noting import LINES, SENTENCES, WINDOWS
from stages.dedup.passages.occurrences import OCCURRENCE, places_of, read_records
from stages.dedup.passages.spans import (
    MOST_FREQUENT,
    Spans,
    Stretch,
    doc_id,
    joined,
    joined_spans,
    judged,
    line_spans,
    stretches,
)

if TYPE_CHECKING:
    from stages.engine import Shard, ShardOutput, ShardResult

VIEWS = {LINES: lines.VIEW, SENTENCES: sentences.VIEW, WINDOWS: substrings.VIEW}
"""The view of each measure, in alphabetical order."""


_SCHEMA = KINDS["views"].tables["*.parquet"].arrow()
_SPAN = _SCHEMA.field("spans").type.value_type


def counted(measure: str) -> tuple[str, ...]:
    """What is counted of a measure; blank lines, which CCNet cuts like others, apart as well."""
    names = ("passages", "repeated", "spans", "repeated_characters", "repeated_documents")
    return (*names, "repeated_blank") if measure == LINES else names


@dataclass(frozen=True, eq=False)
class ViewTask:
    """A shard to be written, and by measure what was noted of it and the runs of that."""

    id: str
    shard: Shard
    noted: dict[str, ShardResult]
    runs: dict[str, tuple[Run, ...]]


class Measured:
    """The spans of one measure in one shard, read run by run, and what they come to."""

    def __init__(self, task: ViewTask, measure: str, found: Found) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(counted(measure), 0))
        self.frequent: list[Stretch] = []
        self._measure, self._found = measure, found
        self._noted, self._runs = task.noted[measure], iter(task.runs[measure])
        self._held: list[Spans] = []
        self._read = 0

    def before(self, row: int) -> Spans:
        """The spans of the rows below `row` that were not given before."""
        while self._read < row and (run := next(self._runs, None)) is not None:
            self._held.append(self._of(run))
            self._read += run.documents
        spans = joined(self._held)
        cut = int(np.searchsorted(spans.rows, row))
        self._held = [spans.part(slice(cut, None))]
        return spans.part(slice(cut))

    def _of(self, run: Run) -> Spans:
        with open(self._noted.scratch_path(places_of(self._measure)), "rb") as file:
            places = read_records(file, OCCURRENCE, run.place, run.place + run.occurrences)
        verdict = judged(places, self._found.of(run))
        by_line = self._measure == LINES
        spans = (line_spans if by_line else joined_spans)(places, verdict)
        self.counts["passages"] += len(places)
        self.counts["repeated"] += int(np.count_nonzero(verdict.repeats))
        self.counts["spans"] += len(spans.rows)
        self.counts["repeated_characters"] += int((spans.ends - spans.starts).sum(dtype=np.int64))
        self.counts["repeated_documents"] += len(np.unique(spans.rows))
        if by_line:
            blank = verdict.repeats & (places["hash"] == np.uint64(lines.BLANK))
            self.counts["repeated_blank"] += int(np.count_nonzero(blank))
        more = stretches(places, verdict, blank=lines.BLANK if by_line else None)
        self.frequent = most_frequent([*self.frequent, *more])
        return spans

    def told(self) -> dict[str, Any]:
        """The counts, JSON-able."""
        return {**self.counts, "frequent": [asdict(stretch) for stretch in self.frequent]}


def most_frequent(found: Sequence[Stretch]) -> list[Stretch]:
    """Those that occur most often; of equally frequent ones those of least hash."""
    return sorted(found, key=lambda one: (-one.count, one.hash))[:MOST_FREQUENT]


def write_passages(
    task: ViewTask, out: ShardOutput, *, found: dict[str, Found]
) -> dict[str, dict[str, Any]]:
    """Write the views table beside the shard; returns by measure what it holds."""
    measured = {name: Measured(task, name, found[name]) for name in VIEWS if name in found}
    path, row = f"{beside(task.shard.input.digest)}/{task.shard.path}", 0
    with out.table_writer("views", path, _SCHEMA) as writer:
        for group in task.shard.row_groups(["doc_id"]):
            end = row + group.num_rows
            spans = [(VIEWS[name], each.before(end)) for name, each in measured.items()]
            writer.write(views_table(group["doc_id"], row, spans))
            row = end
    return {name: each.told() for name, each in measured.items()}


def views_table(
    doc_ids: pa.ChunkedArray, first_row: int, views: Sequence[tuple[str, Spans]]
) -> pa.Table:
    """The rows of the views table for these documents, the first of which is row `first_row`.

    `views` come in alphabetical order.
    """
    spans = joined([found for _, found in views])
    sizes = [len(found.rows) for _, found in views]
    view = np.repeat(np.arange(len(views)), sizes)
    order = np.lexsort((spans.starts, view, spans.rows))
    names = pa.array([name for name, _ in views], pa.string())
    columns = {
        "view": names.take(pa.array(view[order])),
        "start": pa.array(spans.starts[order], pa.int32()),
        "end": pa.array(spans.ends[order], pa.int32()),
        "label": _labels(spans.high[order], spans.low[order]),
        "replacement": pa.array(np.full(len(order), "", dtype=object), pa.string()),
    }
    structs = pa.StructArray.from_arrays(
        [columns[field.name] for field in _SPAN], fields=list(_SPAN)
    )
    offsets = np.zeros(len(doc_ids) + 1, dtype=np.int32)
    counts = np.bincount(spans.rows - first_row, minlength=len(doc_ids))
    np.cumsum(counts, out=offsets[1:])
    kind = _SCHEMA.field("spans").type
    lists = pa.ListArray.from_arrays(pa.array(offsets), structs, type=kind)
    return pa.table([doc_ids, lists], schema=_SCHEMA)


def _labels(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> pa.Array:
    """Ids as strings, each made once."""
    halves = np.stack([high, low], axis=1)
    distinct, places = np.unique(halves, axis=0, return_inverse=True)
    ids = pa.array([doc_id(*pair) for pair in distinct.tolist()], pa.string())
    return ids.take(pa.array(places.reshape(-1)))
