"""The passage index: what later runs need to find the passages of these documents in theirs.

It holds, for the measures that its run found:

- `lines/`, `sentences/`: every passage once, as its hash and the id of the document of the run that
  holds it first, sorted by hash;
- `anchors/`: the anchors of windows of tokens (see `passage_units`), each with the shard and row of
  every document that has it, sorted by hash;
- `tokens/`: the hashes of each document's tokens in order, row for row beside the documents; none
  for documents too short to have a window.

A window is looked up in two steps: anchors tell which earlier documents may share one, and their
tokens then give the very windows that their texts would give. So no window is stored, and results
are those of a run over all texts. Sorted tables are cut into parts of equal ranges of hashes, by
their size alone; nothing in an index depends on workers or memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.kinds import KINDS, sidecar_folder
from stages.dedup.passage_spans import format_doc_id
from stages.dedup.passage_units import Tokens
from stages.dedup.sorted_runs import END
from stages.engine.inputs import Input

if TYPE_CHECKING:
    from stages.dedup.config import PassagesConfig
    from stages.dedup.signing import DocumentShard
    from stages.engine import ShardOutput

OUTPUT, RECORD = "passage_index", "index.json"
FORMAT = 1
"""Raised whenever a file, the record, or the hash of a passage means something else."""

LINES, SENTENCES, ANCHORS, WINDOWS = "lines", "sentences", "anchors", "windows"
"""The measures: windows of tokens are found in two steps, by their anchors and by themselves."""

ROWS_OF_A_PART, ROWS_OF_A_GROUP = 1 << 24, 1 << 16
"""Of sorted tables: a reader of a range of hashes reads whole groups."""
TOKENS_OF_A_GROUP, DOCUMENTS_OF_A_GROUP = 1 << 19, 1 << 13
"""Of the tables of tokens: a group is full when it has as many of either."""
_DICTIONARY_BYTES = 16 << 20
"""Room for the distinct tokens of a group, so that each is stored once there."""
_TOKENS = KINDS[OUTPUT].tables["tokens/*.parquet"].arrow()


def table_path(measure: str, part: int) -> str:
    """Path of a part of a sorted table."""
    return f"{measure}/{part:05d}.parquet"


def tokens_path(shard: DocumentShard) -> str:
    """Path of the tokens of a shard of documents."""
    return f"tokens/{sidecar_folder(shard.shard.input.digest)}/{shard.shard.path}"


def part_edges(parts: int) -> list[int]:
    """Where the ranges of hashes of so many parts begin, and the end of the last."""
    return [part * END // parts for part in range(parts + 1)]


# Writing -----------------------------------------------------------------------------------------


def write_sorted_table(
    out: ShardOutput, measure: str, part: int, batches: Iterable[pa.RecordBatch]
) -> int:
    """Write a part of a sorted table; returns its rows.

    Row groups have ROWS_OF_A_GROUP rows each, however the rows come.
    """
    path = table_path(measure, part)
    schema = KINDS[OUTPUT].tables[f"{measure}/*.parquet"].arrow()
    held, size, rows = [schema.empty_table()], 0, 0
    with out.open(OUTPUT, path) as file:
        writer = pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            version="2.6",
            use_dictionary=False,
            column_encoding={"hash": "DELTA_BINARY_PACKED"},
        )
        with writer:
            for batch in batches:
                held.append(pa.Table.from_batches([batch]).cast(schema))
                size, rows = size + batch.num_rows, rows + batch.num_rows
                while size >= ROWS_OF_A_GROUP:
                    table = pa.concat_tables(held)
                    writer.write_table(table.slice(0, ROWS_OF_A_GROUP).combine_chunks())
                    held, size = [table.slice(ROWS_OF_A_GROUP)], size - ROWS_OF_A_GROUP
            if size:
                writer.write_table(pa.concat_tables(held).combine_chunks())
    out.note_rows(OUTPUT, path, rows)
    return rows


class TokenWriter:
    """Writes the tokens of one shard of documents; holds one row group."""

    def __init__(self, file: IO[bytes] | Any, least: int) -> None:
        self._least = least
        self._ids: list[str] = []
        self._lists: list[NDArray[np.uint64]] = []
        self._size = 0
        self.rows = 0
        self._writer = pq.ParquetWriter(
            file,
            _TOKENS,
            compression="zstd",
            version="2.6",
            use_dictionary=["tokens.list.element"],
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
        )

    def add(self, ids: NDArray[np.uint64], tokens: Tokens) -> None:
        """The documents of a batch; `ids` are [documents, 2] halves."""
        bounds = tokens.offsets.tolist()
        for document, (high, low) in enumerate(ids.tolist()):
            begin, end = bounds[document], bounds[document + 1]
            end = end if end - begin >= self._least else begin
            self._ids.append(format_doc_id(high, low))
            self._lists.append(tokens.hashes[begin:end])
            self._size += end - begin
            if self._size >= TOKENS_OF_A_GROUP or len(self._ids) >= DOCUMENTS_OF_A_GROUP:
                self._flush()

    def close(self) -> None:
        """Write what is held, and the footer."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if not self._ids:
            return
        offsets = np.cumsum([0, *map(len, self._lists)], dtype=np.int64).astype(np.int32)
        kind = _TOKENS.field("tokens").type
        values = pa.array(np.concatenate(self._lists), pa.uint64())
        lists = pa.ListArray.from_arrays(pa.array(offsets), values, type=kind)
        table = pa.table([pa.array(self._ids, pa.string()), lists], schema=_TOKENS)
        self._writer.write_table(table)
        self.rows += len(self._ids)
        self._size = 0
        self._ids, self._lists = [], []


@contextmanager
def token_writer(out: ShardOutput, path: str, least: int) -> Iterator[TokenWriter]:
    """Write a table of tokens into the index; `least` tokens make a window."""
    with out.open(OUTPUT, path) as file:
        writer = TokenWriter(file, least)
        yield writer
        writer.close()
    out.note_rows(OUTPUT, path, writer.rows)


def passage_index_record(
    documents: Sequence[str],
    shards: Sequence[DocumentShard],
    config: PassagesConfig,
    tables: dict[str, dict[str, int]],
) -> dict[str, Any]:
    """The content of `index.json`; `tables` are `parts` and `rows` of each sorted table."""
    return {
        "format": FORMAT,
        "documents": list(documents),
        "shards": [
            {
                "generation": shard.generation,
                "documents": shard.shard.rows,
                "tokens": tokens_path(shard) if config.substrings else None,
            }
            for shard in shards
        ],
        "substrings": config.substrings,
        "tables": tables,
    }


# Reading -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EarlierTable:
    """A sorted table of an earlier index; `index` is the place of the index among all, and
    `generation` what counts as the age of its passages."""

    source: Input
    measure: str
    parts: int
    index: int
    generation: int

    def local_paths(self, low: int, high: int) -> list[str]:
        """Files on this machine that hold the hashes in [low, high), checked."""
        edges = part_edges(self.parts)
        return [
            str(self.source.local_path(table_path(self.measure, part)))
            for part in range(self.parts)
            if edges[part] < high and low < edges[part + 1]
        ]


@dataclass(frozen=True, eq=False)
class EarlierShard:
    """The tokens of a shard of documents of an earlier index."""

    id: str
    source: Input
    path: str
    index: int
    """The place of its index among all, and …"""
    shard: int
    """… its own among the shards of that index."""
    generation: int

    def row_groups(self) -> Iterator[tuple[int, int, Any]]:
        """First row, end, and a function that reads the table, of each row group."""
        with self.source.open(self.path) as file:
            parquet, row = pq.ParquetFile(file), 0
            for group in range(parquet.num_row_groups):
                end = row + parquet.metadata.row_group(group).num_rows
                yield row, end, lambda group=group: parquet.read_row_group(group, use_threads=False)
                row = end


@dataclass(frozen=True, eq=False)
class PassageIndex:
    """An earlier index, with its number among all and that of its first documents output."""

    source: Input
    record: dict[str, Any]
    number: int
    generation: int

    @property
    def where(self) -> str:
        """For messages."""
        return _label(self.source)

    def table(self, measure: str) -> EarlierTable:
        """One of its sorted tables."""
        parts = self.record["tables"][measure]["parts"]
        return EarlierTable(self.source, measure, parts, self.number, self.generation)

    def rows(self, measure: str) -> int:
        """Rows of a sorted table."""
        return int(self.record["tables"][measure]["rows"])

    def shards(self) -> list[EarlierShard]:
        """The tokens of its documents."""
        return [
            EarlierShard(
                id=f"{self.number:03d}-{place:06d}",
                source=self.source,
                path=shard["tokens"],
                index=self.number,
                shard=place,
                generation=self.generation + shard["generation"],
            )
            for place, shard in enumerate(self.record["shards"])
        ]


def read_passage_indexes(
    inputs: Sequence[Input], config: PassagesConfig, documents: Sequence[str]
) -> tuple[PassageIndex, ...]:
    """The earlier indexes, in the order of their documents' age, which is that of `inputs`.

    `documents` are the digests of the documents outputs of this run. Raises UsageError where the
    config asks for no passages; InputError, which names the index, for one of another format,
    without a measure that the config asks for, or of windows of another length, and for documents
    that come twice.
    """
    if inputs and not config.measures():
        raise UsageError(
            "a passage index is given, and no passages are asked for",
            where="passages",
            hint="set passages.lines, passages.sentences or passages.substrings",
        )
    held = dict.fromkeys(documents, "the documents of this run")
    indexes: list[PassageIndex] = []
    generation = 0
    for number, input_ in enumerate(inputs):
        record = _read_record(input_, config)
        for digest in record["documents"]:
            if digest in held:
                raise InputError(
                    f"passages of documents {short(digest)} come twice: in {held[digest]} and in "
                    f"{_label(input_)}",
                    where="dedup",
                    hint="leave one of them out",
                )
            held[digest] = _label(input_)
        indexes.append(PassageIndex(input_, record, number, generation))
        generation += len(record["documents"])
    return tuple(indexes)


def read_passage_record(input_: Input) -> dict[str, Any]:
    """`index.json` of a passage index. Raises InputError for another format, or for none."""
    if not input_.has(RECORD):
        raise InputError(
            "no passage index was written by the run that made it",
            where=_label(input_),
            hint="run that step with passages.index: true, or leave its index out",
        )
    record: dict[str, Any] = input_.read_json(RECORD)
    if record.get("format") != FORMAT:
        raise InputError(
            f"the passage index has format {record.get('format', 'unknown')}, this program reads "
            f"{FORMAT}",
            where=_label(input_),
            hint="make it again, or use the program that made it",
        )
    return record


def _read_record(input_: Input, config: PassagesConfig) -> dict[str, Any]:
    record = read_passage_record(input_)
    for measure in config.measures():
        if measure not in record["tables"]:
            raise InputError(
                f"the passage index holds no {measure}",
                where=_label(input_),
                hint="give all runs the same passages, or leave the index out",
            )
    if config.substrings and record["substrings"] != config.substrings:
        raise InputError(
            f"the passage index is of substrings of {record['substrings']} tokens, this run asks "
            f"for {config.substrings}",
            where=_label(input_),
            hint="give this run the same passages.substrings, or leave the index out",
        )
    return record


def _label(input_: Input) -> str:
    return f"passage_index {short(input_.digest)} of {input_.stage} {short(input_.key)}"
