"""A shard is read: every passage of its documents is written, in runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stages.dedup.passages.firsts import Found, Run
from stages.dedup.passages.lines import line_occurrences
from stages.dedup.passages.occurrences import RunWriter
from stages.dedup.passages.sentences import sentence_occurrences
from stages.dedup.passages.substrings import anchor_occurrences, window_occurrences
from stages.dedup.signing import id_halves
from stages.engine.row_groups import rows_at_once
from stages.text.batch import batches

if TYPE_CHECKING:
    from stages.dedup.config import PassagesConfig
    from stages.dedup.signing import DocumentShard
    from stages.engine import Shard, ShardOutput

LINES, SENTENCES, ANCHORS, WINDOWS = "lines", "sentences", "anchors", "windows"
"""What is noted: windows of tokens take two readings, of their anchors and of themselves."""

BATCH_CHARACTERS = 1 << 19
"""Texts split together; it bounds memory and changes nothing."""
PIECE_BYTES, PAGES_BYTES = 8 << 20, 1 << 16
"""Text that is read at once, and of a column's pages."""


class Texts(NamedTuple):
    """Documents of consecutive rows: the first row, their texts, and their ids [documents, 2]."""

    row: int
    texts: list[str]
    ids: NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class WindowTask:
    """A shard whose windows are to be noted, and the runs of its anchors."""

    id: str
    shard: Shard
    runs: tuple[Run, ...]


def note_passages(
    item: DocumentShard, out: ShardOutput, *, config: PassagesConfig, limit: int
) -> dict[str, Any]:
    """Leave the passages of a shard that the config asks for.

    A run ends with the batch that brings it to `limit` occurrences. Returns `documents`,
    `characters`, `windows`, and the `runs` of each measure.
    """
    least = config.substrings
    asked = {LINES: config.lines, SENTENCES: config.sentences, ANCHORS: least is not None}
    told = {"documents": 0, "characters": 0, "windows": 0}
    with ExitStack() as files:
        writers = {
            name: files.enter_context(RunWriter(out, name, limit, places=name != ANCHORS))
            for name, wanted in asked.items()
            if wanted
        }
        for row, texts, ids in text_batches(item.shard, limit):
            told["documents"] += len(texts)
            told["characters"] += sum(map(len, texts))
            if config.lines:
                writers[LINES].add(line_occurrences(texts, row), ids)
            if config.sentences:
                writers[SENTENCES].add(sentence_occurrences(texts, row), ids)
            if least is not None:
                anchors, windows = anchor_occurrences(texts, row, least)
                writers[ANCHORS].add(anchors, ids)
                told["windows"] += windows
    return {**told, "runs": {name: writer.runs for name, writer in writers.items()}}


def note_windows(
    task: WindowTask, out: ShardOutput, *, found: Found, least: int, limit: int
) -> dict[str, Any]:
    """Leave the windows of a shard that may be repeated, since their anchors are."""
    stops = np.cumsum([run.documents for run in task.runs])
    waiting = iter(task.runs)
    end, repeated = 0, np.empty(0, dtype=np.uint64)
    with RunWriter(out, WINDOWS, limit) as writer:
        for row, texts, ids in text_batches(task.shard, limit, stops):
            if row == end:
                run = next(waiting)
                end, repeated = end + run.documents, found.of(run)["hash"].copy()
            writer.add(window_occurrences(texts, row, least, repeated), ids)
    return {"runs": {WINDOWS: writer.runs}}


def text_batches(
    shard: Shard, limit: int, stops: NDArray[np.int64] | Sequence[int] = ()
) -> Iterator[Texts]:
    """The documents of a shard in order, at most `limit` characters or one text at a time.

    A batch ends at each of the rows `stops`, which ascend. Row groups are read in pieces.
    """
    row, ends = 0, np.asarray(stops, dtype=np.int64)
    with shard.input.open(shard.path) as file:
        for piece in _pieces(pq.ParquetFile(file, buffer_size=PAGES_BYTES)):
            texts = piece["text"].to_pylist()
            ids = id_halves(piece["doc_id"], where=shard.path)
            last = row + len(texts)
            cuts = [row, *ends[(ends > row) & (ends < last)].tolist(), last]
            for start, end in pairwise(cut - row for cut in cuts):
                sizes = [len(text) for text in texts[start:end]]
                for part in batches(sizes, min(BATCH_CHARACTERS, limit)):
                    chosen = slice(start + part.start, start + part.stop)
                    yield Texts(row + chosen.start, texts[chosen], ids[chosen])
            row = last


def _pieces(parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    for group in range(parquet.num_row_groups):
        rows = rows_at_once(parquet.metadata.row_group(group), PIECE_BYTES)
        yield from parquet.iter_batches(
            batch_size=rows, row_groups=[group], columns=["doc_id", "text"], use_threads=False
        )
