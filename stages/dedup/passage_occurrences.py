"""Occurrences of passages, written to scratch by shard: from texts, or from an earlier index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stages.dedup import passage_units as units
from stages.dedup.passage_files import (
    ANCHORS,
    LINES,
    SENTENCES,
    WINDOWS,
    token_writer,
    tokens_path,
)
from stages.dedup.passage_repeats import MOST_RANGES, read_earlier_anchors, read_repeats
from stages.dedup.signing import id_halves
from stages.engine.arrays import rows_at_once
from stages.text.batch import batches, split_texts

if TYPE_CHECKING:
    from stages.dedup.config import PassagesConfig
    from stages.dedup.passage_files import EarlierShard
    from stages.dedup.signing import DocumentShard
    from stages.engine import Shard, ShardOutput, ShardResult

BATCH_CHARACTERS, BATCH_TOKENS = 1 << 19, 1 << 17
"""Characters of the texts, and stored tokens, that are taken together; it bounds memory and changes
nothing."""
PIECE_BYTES, PAGES_BYTES = 8 << 20, 1 << 16
"""Bytes of text that are read together, and of a column's pages."""

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
_EARLIER = -1
"""The shard of all occurrences in documents of earlier indexes."""


@dataclass(frozen=True, eq=False)
class ShardTask:
    """A shard of documents with its number among all, and its generation after all earlier ones."""

    id: str
    number: int
    generation: int
    document_shard: DocumentShard

    @property
    def shard(self) -> Shard:
        """Its file."""
        return self.document_shard.shard


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

    def __init__(
        self, out: ShardOutput, measure: str, shard: int, generation: int, limit: int
    ) -> None:
        self._out, self._measure, self._limit = out, measure, limit
        self._same = (shard, generation)
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
        columns += [ids[order, 0], ids[order, 1]]
        columns += [np.full(len(order), number, np.int32) for number in self._same]
        table = pa.table(columns, schema=_OCCURRENCES)
        self._writer.write_table(table, max(len(order) // MOST_RANGES, 1024))
        self.written += len(order)
        self._size = 0
        self._held.clear()


def write_occurrences(
    task: ShardTask, out: ShardOutput, *, config: PassagesConfig, limit: int
) -> dict[str, Any]:
    """Leave the occurrences of the passages that the config asks for, `limit` in memory.

    With `config.index` the tokens of the shard go into the passage index. Returns numbers of
    `documents`, `characters` and `windows`, and of occurrences by measure.
    """
    least, measures = config.substrings, config.measures()
    documents = characters = windows = 0
    with ExitStack() as files:
        writers = {
            name: files.enter_context(
                OccurrenceWriter(out, name, task.number, task.generation, limit)
            )
            for name in measures
        }
        stored = None
        if least is not None and config.index:
            path = tokens_path(task.document_shard)
            stored = files.enter_context(token_writer(out, path, least))
        for piece in read_pieces(task.shard):
            for batch in text_batches(piece, limit):
                documents += len(batch.texts)
                characters += sum(map(len, batch.texts))
                if LINES in writers:
                    writers[LINES].add(units.line_occurrences(batch.texts, batch.row), batch)
                if SENTENCES in writers:
                    occurrences = units.sentence_occurrences(batch.texts, batch.row)
                    writers[SENTENCES].add(occurrences, batch)
                if least is not None:
                    tokens = units.joined_tokens(split_texts(batch.texts))
                    occurrences, number = units.anchor_occurrences(tokens, batch.row, least)
                    writers[ANCHORS].add(occurrences, batch)
                    windows += number
                    if stored is not None:
                        stored.add(batch.ids, tokens)
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
    with OccurrenceWriter(out, WINDOWS, task.number, task.generation, limit) as writer:
        for piece in read_pieces(task.shard):
            anchors = read_repeats(repeats, task.number, piece.row, piece.row + len(piece.texts))
            hashes = np.unique(anchors.hash)
            for batch in text_batches(piece, limit):
                tokens = units.joined_tokens(split_texts(batch.texts))
                writer.add(units.window_occurrences(tokens, batch.row, least, hashes), batch)
    return {"occurrences": {WINDOWS: writer.written}}


def write_earlier_windows(
    task: EarlierShard, out: ShardOutput, *, repeats: Sequence[ShardResult], least: int, limit: int
) -> dict[str, Any]:
    """Leave the windows of earlier documents that share an anchor with those of this run.

    They are in shard -1, and their rows and places mean nothing.
    """
    with OccurrenceWriter(out, WINDOWS, _EARLIER, task.generation, limit) as writer:
        for first, stop, read in task.row_groups():
            rows, hashes = read_earlier_anchors(repeats, task.index, task.shard, first, stop)
            if not len(rows):
                continue
            table = read().take(pa.array(rows - first))
            sizes = pc.list_value_length(table["tokens"]).to_numpy().tolist()
            for part in batches(sizes, min(BATCH_TOKENS, limit)):
                piece = table.slice(part.start, part.stop - part.start)
                ids = id_halves(piece["doc_id"].combine_chunks(), where=task.path)
                tokens = units.stored_tokens(piece["tokens"].combine_chunks())
                occurrences = units.window_occurrences(tokens, 0, least, hashes)
                writer.add(occurrences, Texts(0, [], ids))
    return {"occurrences": {WINDOWS: writer.written}}


def read_pieces(shard: Shard) -> Iterator[Texts]:
    """The documents of a shard in order, about PIECE_BYTES at a time."""
    row = 0
    with shard.input.open(shard.path) as file:
        parquet = pq.ParquetFile(file, buffer_size=PAGES_BYTES, pre_buffer=False)
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
