"""The passages of all documents that occur earlier, as spans of views.

Three maps: over shards, to write the occurrences of every passage; over ranges of hashes, to find
with DuckDB those that occur more than once, and where first; over shards, to write the spans of all
other places. For runs of tokens the first two are made twice, of anchors and of the windows that
these leave. A task takes the memory of about `rows_per_task` passages, whatever the size of the
corpus; what does not fit, DuckDB sorts on disk: 6 million lines, a third of them repeated, take it
5 CPU seconds at its least memory, 64 MiB.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS, sidecar_folder
from stages.dedup import passage_units as units
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
from stages.dedup.signing import id_halves
from stages.engine.arrays import rows_at_once
from stages.text.batch import batches

if TYPE_CHECKING:
    from stages.dedup.config import PassagesConfig
    from stages.dedup.signing import DocumentShard
    from stages.engine import Context, Shard, ShardOutput, ShardResult


LINES, SENTENCES, ANCHORS, WINDOWS = "lines", "sentences", "anchors", "windows"
"""The measures: windows of tokens are found in two steps, by their anchors and by themselves."""
VIEWS = {
    LINES: units.LINES_VIEW,
    SENTENCES: units.SENTENCES_VIEW,
    WINDOWS: units.SUBSTRINGS_VIEW,
}
"""The view of each measure, in alphabetical order."""
BATCH_CHARACTERS = 1 << 19
"""Characters of the texts that are split together; it bounds memory and changes nothing."""
PIECE_BYTES, PAGES_BYTES = 8 << 20, 1 << 16
"""Bytes of text that are read together, and of a column's pages."""
MOST_RANGES = 64
"""Ranges of hashes; the row groups of occurrences are as fine, so that a task reads its own."""
_ROW_GROUP = 1 << 14
_BYTES_A_ROW, _LEAST_MEMORY = 160, 64 << 20
"""Of DuckDB: for each of `rows_per_task`, and at least."""

_OCCURRENCES = pa.schema(
    [
        ("hash", pa.uint64()),
        *((name, pa.int32()) for name in ("row", "start", "end", "next_start", "following")),
        ("high", pa.uint64()),
        ("low", pa.uint64()),
        ("shard", pa.int32()),
        ("generation", pa.int32()),
    ]
)
"""Occurrences as `write_occurrences` leaves them; the id of their document is (high, low)."""
_VIEWS_SCHEMA = KINDS["views"].tables["*.parquet"].arrow()
_SPAN_TYPE = _VIEWS_SCHEMA.field("spans").type.value_type


@dataclass(frozen=True, eq=False)
class ShardTask:
    """A shard of documents with its number among all."""

    id: str
    number: int
    generation: int
    shard: Shard


@dataclass(frozen=True)
class RangeTask:
    """The passages of a measure whose hash is in [low, high)."""

    id: str
    measure: str
    low: int
    high: int


def find_passages(
    context: Context, shards: Sequence[DocumentShard], config: PassagesConfig, *, rows_per_task: int
) -> dict[str, Any]:
    """Write the views of every shard, and return by view what was found.

    Writes output `views`, a table for each shard of documents, unless the config selects no
    passages: then it does nothing and returns an empty dict. A passage stays where it occurs
    first: in the earliest documents output, in the document of least id, at the first place. Spans
    of one view do not overlap, and have the id of the document that holds the first occurrence as
    their label (of overlapping passages that of the first). For each view there are numbers of
    `documents` and `characters` in all; `passages`, `repeated` ones, `spans`, and the
    `repeated_characters` and `repeated_documents` they cover (of lines also `repeated_blank`); and
    the `most_frequent` passages with `count`, `doc_id` and `excerpt` of their first occurrence.
    Nothing of it depends on the order of rows or shards, the number of workers, or
    `rows_per_task`.
    """
    if not (config.lines or config.sentences or config.substrings):
        return {}
    tasks = [
        ShardTask(shard.id, number, shard.generation, shard.shard)
        for number, shard in enumerate(shards)
    ]
    scans = context.map(write_occurrences, tasks, config=config, limit=rows_per_task)
    measured = {LINES: config.lines, SENTENCES: config.sentences, ANCHORS: config.substrings}
    measures = [measure for measure, wanted in measured.items() if wanted]
    repeats = _find_repeats(context, measures, scans, rows_per_task)
    if config.substrings:
        windows = context.map(
            write_window_occurrences,
            tasks,
            repeats=repeats.pop(ANCHORS),
            least=config.substrings,
            limit=rows_per_task,
        )
        repeats |= _find_repeats(context, [WINDOWS], windows, rows_per_task)
    written = context.map(write_passages, tasks, repeats=repeats)
    return {
        view: _summarise(name, shards, scans, written)
        for name, view in VIEWS.items()
        if name in repeats
    }


def _find_repeats(
    context: Context,
    measures: Sequence[str],
    scans: Sequence[ShardResult],
    rows_per_task: int,
) -> dict[str, list[ShardResult]]:
    """What `find_repeats` left for each measure."""
    tasks = []
    for measure in measures if scans else ():
        total = sum(result.value["occurrences"][measure] for result in scans)
        ranges = max(1, min(MOST_RANGES, -(-total // rows_per_task)))
        edges = [part * (1 << 64) // ranges for part in range(ranges + 1)]
        tasks += [
            RangeTask(f"{measure}-{ranges:02d}-{part:02d}", measure, edges[part], edges[part + 1])
            for part in range(ranges)
        ]
    memory = max(rows_per_task * _BYTES_A_ROW, _LEAST_MEMORY)
    name = f"first_{'_'.join(measures)}"
    results = context.map(find_repeats, tasks, name=name, scans=scans, memory=memory)
    return {
        measure: [r for t, r in zip(tasks, results, strict=True) if t.measure == measure]
        for measure in measures
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


# Occurrences -------------------------------------------------------------------------------------


class Texts(NamedTuple):
    """Documents of consecutive rows: the first row, their texts, and their ids [documents, 2]."""

    row: int
    texts: list[str]
    ids: NDArray[np.uint64]


class OccurrenceWriter:
    """Writes the occurrences of one measure in one shard as scratch table `measure`.

    Used as a context manager. About `limit` occurrences are held, sorted by hash and written, so
    that a row group holds a small range of hashes.
    """

    def __init__(self, out: ShardOutput, measure: str, task: ShardTask, limit: int) -> None:
        self._out, self._measure, self._task, self._limit = out, measure, task, limit
        self._held: list[tuple[units.Occurrences, NDArray[np.uint64]]] = []
        self._size = 0
        self.written = 0

    def __enter__(self) -> OccurrenceWriter:
        self._files = ExitStack()
        file = self._files.enter_context(self._out.open_scratch(self._measure))
        self._writer = self._files.enter_context(
            pq.ParquetWriter(file, _OCCURRENCES, compression="zstd")
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        if kind is None:
            self._flush()
        self._files.__exit__(kind, error, trace)

    def add(self, occurrences: units.Occurrences, batch: Texts) -> None:
        """The occurrences in a batch of texts."""
        self._held.append((occurrences, batch.ids[occurrences["row"] - batch.row]))
        self._size += len(occurrences)
        if self._size >= self._limit:
            self._flush()

    def _flush(self) -> None:
        if not self._size:
            return
        occurrences = np.concatenate([part for part, _ in self._held])
        ids = np.concatenate([part for _, part in self._held])
        order = np.argsort(occurrences["hash"])
        columns = [
            np.ascontiguousarray(occurrences[name][order]) for name in units.OCCURRENCE.names or ()
        ]
        same = (self._task.number, self._task.generation)
        columns += [ids[order, 0], ids[order, 1]]
        columns += [np.full(len(order), number, np.int32) for number in same]
        table = pa.table(columns, schema=_OCCURRENCES)
        self._writer.write_table(table, max(len(order) // MOST_RANGES, 1024))
        self.written += len(order)
        self._size = 0
        self._held.clear()


def write_occurrences(
    task: ShardTask, out: ShardOutput, *, config: PassagesConfig, limit: int
) -> dict[str, Any]:
    """Leave the occurrences of the passages that the config asks for, `limit` in memory.

    Returns numbers of `documents`, `characters` and `windows`, and of occurrences by measure.
    """
    least = config.substrings
    measured = {LINES: config.lines, SENTENCES: config.sentences, ANCHORS: least is not None}
    documents = characters = windows = 0
    with ExitStack() as files:
        writers = {
            name: files.enter_context(OccurrenceWriter(out, name, task, limit))
            for name, wanted in measured.items()
            if wanted
        }
        for piece in read_pieces(task.shard):
            for batch in text_batches(piece, limit):
                documents += len(batch.texts)
                characters += sum(map(len, batch.texts))
                if config.lines:
                    writers[LINES].add(units.line_occurrences(batch.texts, batch.row), batch)
                if config.sentences:
                    occurrences = units.sentence_occurrences(batch.texts, batch.row)
                    writers[SENTENCES].add(occurrences, batch)
                if least is not None:
                    occurrences, number = units.anchor_occurrences(batch.texts, batch.row, least)
                    writers[ANCHORS].add(occurrences, batch)
                    windows += number
    return {
        "documents": documents,
        "characters": characters,
        "windows": windows,
        "occurrences": {name: writer.written for name, writer in writers.items()},
    }


def write_window_occurrences(
    task: ShardTask, out: ShardOutput, *, repeats: Sequence[ShardResult], least: int, limit: int
) -> dict[str, Any]:
    """Leave the windows of a shard that may be repeated, because their anchors are."""
    with OccurrenceWriter(out, WINDOWS, task, limit) as writer:
        for piece in read_pieces(task.shard):
            anchors = read_repeats(repeats, task.number, piece.row, piece.row + len(piece.texts))
            hashes = np.unique(anchors.hash)
            for batch in text_batches(piece, limit):
                occurrences = units.window_occurrences(batch.texts, batch.row, least, hashes)
                writer.add(occurrences, batch)
    return {"occurrences": {WINDOWS: writer.written}}


def read_pieces(shard: Shard) -> Iterator[Texts]:
    """The documents of a shard in order, about PIECE_BYTES at a time."""
    row = 0
    with shard.input.open(shard.path) as file:
        parquet = pq.ParquetFile(file, buffer_size=PAGES_BYTES)
        for group in range(parquet.num_row_groups):
            rows = rows_at_once(parquet.metadata.row_group(group), PIECE_BYTES)
            for piece in parquet.iter_batches(
                batch_size=rows, row_groups=[group], columns=["doc_id", "text"], use_threads=False
            ):
                ids = id_halves(piece["doc_id"], where=shard.path)
                yield Texts(row, piece["text"].to_pylist(), ids)
                row += piece.num_rows


def text_batches(piece: Texts, limit: int) -> Iterator[Texts]:
    """The documents of a piece, at most `limit` characters or one text at a time."""
    sizes = [len(text) for text in piece.texts]
    for part in batches(sizes, min(BATCH_CHARACTERS, limit)):
        yield Texts(piece.row + part.start, piece.texts[part], piece.ids[part])


# First occurrences -------------------------------------------------------------------------------


def find_repeats(
    task: RangeTask, out: ShardOutput, *, scans: Sequence[ShardResult], memory: int
) -> dict[str, int]:
    """Leave the occurrences of all passages that occur more than once, as scratch `repeats`.

    They have the columns of `Occurrences` and their shard, and are sorted by shard, row and start.
    The first occurrence is in the earliest documents output, there in the document of least id, at
    the first place.
    """
    paths = [str(result.scratch_path(task.measure)) for result in scans]
    first = "ROW(generation, high, low, start)"
    query = f"""
        WITH occurrences AS (
            SELECT * FROM read_parquet($paths) WHERE hash BETWEEN $low AND $high
        ), firsts AS (
            SELECT hash, count(*) AS times, min({first}) AS first
            FROM occurrences GROUP BY hash HAVING count(*) > 1
        )
        SELECT shard, hash, "row", start, "end", next_start, following, times,
            first[2] AS high, first[3] AS low, {first} = first AS is_first
        FROM occurrences JOIN firsts USING (hash) ORDER BY shard, "row", start"""
    values = {"paths": paths, "low": task.low, "high": task.high - 1}
    with tempfile.TemporaryDirectory() as folder, out.open_scratch("repeats") as file:
        settings: dict[str, Any] = {
            "threads": 1,
            "memory_limit": f"{memory >> 20}MiB",
            "temp_directory": folder,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        with duckdb.connect(config=settings) as connection:
            reader = connection.sql(query, params=values).to_arrow_reader(_ROW_GROUP)
            with pq.ParquetWriter(file, reader.schema, compression="zstd") as writer:
                rows = 0
                for batch in reader:
                    writer.write_batch(batch)
                    rows += batch.num_rows
    return {"rows": rows}


def read_repeats(results: Sequence[ShardResult], shard: int, first: int, stop: int) -> Occurrences:
    """What `find_repeats` left of rows [first, stop) of a shard, by row, then start."""
    chosen = (pc.field("shard") == shard) & (pc.field("row") >= first) & (pc.field("row") < stop)
    columns = list(Occurrences._fields)
    parts = [
        pq.read_table(
            result.scratch_path("repeats"), columns=columns, filters=chosen, use_threads=False
        )
        for result in results
    ]
    table = pa.concat_tables(parts)
    return Occurrences.from_table(table.sort_by([("row", "ascending"), ("start", "ascending")]))


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
