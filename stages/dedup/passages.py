"""The passages of all documents that occur earlier, as spans of views.

Three maps: over shards, to write the occurrences of every passage; over ranges of hashes, to find
with DuckDB those that occur more than once, and where first; over shards, to write the spans of all
other places. For runs of tokens the first two are made twice, of anchors and of the windows that
these leave. Passages of earlier documents come from their indexes: sorted tables in the second map,
and windows of those documents that share an anchor with this run's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS, sidecar_folder
from stages.dedup import passage_units as units
from stages.dedup.passage_files import (
    ANCHORS,
    LINES,
    OUTPUT,
    RECORD,
    SENTENCES,
    WINDOWS,
    PassageIndex,
    passage_index_record,
)
from stages.dedup.passage_occurrences import (
    ShardTask,
    write_earlier_windows,
    write_occurrences,
    write_window_occurrences,
)
from stages.dedup.passage_repeats import read_repeats, repeated_passages, write_index_tables
from stages.dedup.passage_spans import (
    Occurrences,
    Spans,
    Stretch,
    concatenate_spans,
    find_stretches,
    format_doc_id,
    line_spans,
    merge_spans,
    most_frequent,
    with_excerpts,
)

if TYPE_CHECKING:
    from stages.dedup.config import PassagesConfig
    from stages.dedup.signing import DocumentShard
    from stages.engine import Context, ShardOutput, ShardResult


VIEWS = {
    LINES: units.LINES_VIEW,
    SENTENCES: units.SENTENCES_VIEW,
    WINDOWS: units.SUBSTRINGS_VIEW,
}
"""The view of each measure, in alphabetical order."""

_VIEWS_SCHEMA = KINDS["views"].tables["*.parquet"].arrow()
_SPAN_TYPE = _VIEWS_SCHEMA.field("spans").type.value_type


def find_passages(
    context: Context,
    shards: Sequence[DocumentShard],
    config: PassagesConfig,
    *,
    rows_per_task: int,
    earlier: Sequence[PassageIndex] = (),
) -> dict[str, Any]:
    """Write the views of every shard, and return by view what was found.

    Writes output `views`, a table for each shard of documents, and `passage_index` if the config
    asks for it, unless the config selects no passages: then it does nothing and returns an empty
    dict. A passage stays where it occurs first: in the `earlier` indexes, in their order, then in
    the earliest documents output, in the document of least id, at the first place. Spans
    of one view do not overlap, and have the id of the document that holds the first occurrence as
    their label (of overlapping passages that of the first). For each view there are numbers of
    `documents` and `characters` in all; `passages`, `repeated` ones, `spans`, and the
    `repeated_characters` and `repeated_documents` they cover (of lines also `repeated_blank`); and
    the `most_frequent` passages that this run's documents hold first, with `count`, `doc_id` and
    `excerpt` of their first occurrence.
    Nothing of it depends on the order of rows or shards, the number of workers, or
    `rows_per_task`.
    """
    measures = config.measures()
    if not measures:
        return {}
    before = sum(len(index.record["documents"]) for index in earlier)
    tasks = [
        ShardTask(shard.id, number, before + shard.generation, shard)
        for number, shard in enumerate(shards)
    ]
    scans = context.map(write_occurrences, tasks, config=config, limit=rows_per_task)
    if config.index:
        tables = write_index_tables(context, measures, scans, rows_per_task)
        documents = [input_.digest for input_ in context.many("documents")]
        record = passage_index_record(documents, shards, config, tables)
        context.write_json(OUTPUT, RECORD, record)
    repeats = repeated_passages(context, measures, scans, rows_per_task, earlier)
    if config.substrings:
        shared = partial(
            context.map,
            repeats=repeats.pop(ANCHORS),
            least=config.substrings,
            limit=rows_per_task,
        )
        windows = shared(write_window_occurrences, tasks)
        if scans:
            stored = [shard for index in earlier for shard in index.shards()]
            windows += shared(write_earlier_windows, stored)
        repeats |= repeated_passages(context, [WINDOWS], windows, rows_per_task)
    written = context.map(write_passages, tasks, repeats=repeats)
    return {
        view: _summarise(name, shards, scans, written)
        for name, view in VIEWS.items()
        if name in repeats
    }


def _summarise(
    measure: str,
    shards: Sequence[DocumentShard],
    scans: Sequence[ShardResult],
    written: Sequence[ShardResult],
) -> dict[str, Any]:
    """The counts of all shards together, and the most frequent passages of all."""
    measured = [result.value[measure] for result in written]
    summary: dict[str, Any] = {
        name: sum(result.value[name] for result in scans) for name in ("documents", "characters")
    }
    summary["passages"] = sum(
        result.value["windows"] if measure == WINDOWS else result.value["occurrences"][measure]
        for result in scans
    )
    summary |= {name: sum(counts[name] for counts in measured) for name in count_names(measure)}
    files = {
        Stretch(**stretch): file
        for file, counts in enumerate(measured)
        for stretch in counts["frequent"]
    }
    most = [(stretch, shards[files[stretch]].shard) for stretch in most_frequent(list(files))]
    return {**summary, "most_frequent": with_excerpts(most)}


def count_names(measure: str) -> tuple[str, ...]:
    """Counters of a measure; blank lines, which CCNet cuts like others, are counted apart too."""
    names = ("repeated", "spans", "repeated_characters", "repeated_documents")
    return (*names, "repeated_blank") if measure == LINES else names


# Views -------------------------------------------------------------------------------------------


class MeasuredSpans:
    """The spans of one measure in one shard, and their counts."""

    def __init__(self, measure: str) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(count_names(measure), 0))
        self.frequent: list[Stretch] = []
        self._measure = measure

    def add(self, occurrences: Occurrences) -> Spans:
        """The spans of the occurrences in some rows of the shard."""
        is_blank = np.zeros(len(occurrences.row), dtype=bool)
        if self._measure == LINES:
            is_blank = occurrences.hash == np.uint64(units.BLANK)
            self.counts["repeated_blank"] += int(np.count_nonzero(is_blank & ~occurrences.is_first))
        repeats = occurrences.take(~occurrences.is_first)
        spans = (line_spans if self._measure == LINES else merge_spans)(repeats)
        self.counts["repeated"] += len(repeats.row)
        self.counts["spans"] += len(spans.rows)
        self.counts["repeated_characters"] += int((spans.ends - spans.starts).sum(dtype=np.int64))
        self.counts["repeated_documents"] += len(np.unique(spans.rows))
        more = find_stretches(occurrences.take(occurrences.is_first & ~is_blank))
        self.frequent = most_frequent([*self.frequent, *more])
        return spans

    def plain(self) -> dict[str, Any]:
        """The counts, JSON-able."""
        return {**self.counts, "frequent": [asdict(stretch) for stretch in self.frequent]}


def write_passages(
    task: ShardTask, out: ShardOutput, *, repeats: dict[str, list[ShardResult]]
) -> dict[str, dict[str, Any]]:
    """Write the views table of the shard; returns the counts by measure."""
    measured = {name: MeasuredSpans(name) for name in VIEWS if name in repeats}
    path, row = f"{sidecar_folder(task.shard.input.digest)}/{task.shard.path}", 0
    with out.table_writer("views", path, _VIEWS_SCHEMA) as writer:
        for group in task.shard.row_groups(["doc_id"]):
            end = row + group.num_rows
            spans = [
                (VIEWS[name], each.add(read_repeats(repeats[name], task.number, row, end)))
                for name, each in measured.items()
            ]
            writer.write(views_table(group["doc_id"], row, spans))
            row = end
    return {name: each.plain() for name, each in measured.items()}


def views_table(
    doc_ids: pa.ChunkedArray, first_row: int, views: Sequence[tuple[str, Spans]]
) -> pa.Table:
    """The rows of the views table for these documents, the first of which is row `first_row`.

    `views` come in alphabetical order.
    """
    spans = concatenate_spans([view_spans for _, view_spans in views])
    sizes = [len(view_spans.rows) for _, view_spans in views]
    view = np.repeat(np.arange(len(views)), sizes)
    order = np.lexsort((spans.starts, view, spans.rows))
    names = pa.array([name for name, _ in views], pa.string())
    columns = {
        "view": names.take(pa.array(view[order])),
        "start": pa.array(spans.starts[order], pa.int32()),
        "end": pa.array(spans.ends[order], pa.int32()),
        "label": _span_labels(spans.high[order], spans.low[order]),
        "replacement": pa.array(np.full(len(order), "", dtype=object), pa.string()),
    }
    structs = pa.StructArray.from_arrays(
        [columns[field.name] for field in _SPAN_TYPE], fields=list(_SPAN_TYPE)
    )
    offsets = np.zeros(len(doc_ids) + 1, dtype=np.int32)
    counts = np.bincount(spans.rows - first_row, minlength=len(doc_ids))
    np.cumsum(counts, out=offsets[1:])
    kind = _VIEWS_SCHEMA.field("spans").type
    lists = pa.ListArray.from_arrays(pa.array(offsets), structs, type=kind)
    return pa.table([doc_ids, lists], schema=_VIEWS_SCHEMA)


def _span_labels(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> pa.Array:
    """Ids as strings, each made once."""
    halves = np.stack([high, low], axis=1)
    distinct, places = np.unique(halves, axis=0, return_inverse=True)
    ids = pa.array([format_doc_id(*pair) for pair in distinct.tolist()], pa.string())
    return ids.take(pa.array(places.reshape(-1)))
