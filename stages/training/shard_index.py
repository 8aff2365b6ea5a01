"""What `shards.json` and the index tables of token shards say: files, documents, languages.

`shards.json` is checked and joined over several outputs, and held as arrays over files, so that a
hundred thousand of them cost milliseconds and no object each. Index tables name the document and
the language of every token.

Shapes: B rows of L tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError
from artifacts_schema.identity import short
from stages.engine import Input
from stages.training.schedule import stream_name


def languages_with_tokens(tokens: Mapping[str, int]) -> tuple[str, ...]:
    """The languages of a source with so many tokens of each, sorted."""
    return tuple(sorted(name for name, count in tokens.items() if count))


_EQUAL = (
    "tokenizer",
    "vocabulary_size",
    "padded_vocabulary_size",
    "dtype",
    "begin_id",
    "end_id",
    "padding_id",
)
_SUMS = ("sequences", "tokens", "documents", "bytes", "repetitive", "cut")
_TYPES: dict[str, np.dtype[Any]] = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}


class ShardTables:
    """The files of several token_shards outputs, sorted by source, then as inputs and shards come.

    Where the inputs have sequences of several lengths, those of a source with one length are a
    source of their own, called as `phases.stream_of` has it; `lengths` has that of each source.
    Sequences have a number within their source, and one over all sources: that of the source's
    first, `bases[source]`, plus it. `edges` [files + 1] are the numbers at which files begin.
    Raises InputError if the inputs differ in tokenizer or type of ids, CorruptArtifact if one
    contradicts itself.
    """

    def __init__(self, inputs: Sequence[Input]) -> None:
        if not inputs:
            raise InputError("no token shards were given")
        tables = [artifact.read_json("shards.json") for artifact in inputs]
        for table, artifact in zip(tables, inputs, strict=True):
            _check(table, tables[0], artifact)
        self.common: Mapping[str, Any] = {name: tables[0][name] for name in _EQUAL}
        self.dtype = _TYPES[self.common["dtype"]]
        several = len({table["sequence_length"] for table in tables}) > 1
        named = [
            {
                stream_name(name, table["sequence_length"], several): name
                for name in table["sources"]
            }
            for table in tables
        ]
        self.lengths: dict[str, int] = {
            stream: table["sequence_length"]
            for table, streams in zip(tables, named, strict=True)
            for stream in streams
        }
        self.sources: tuple[str, ...] = tuple(sorted(self.lengths))
        self.totals = {name: Counter[str]() for name in _SUMS}
        self.languages: dict[str, dict[str, int]] = {}
        paths: list[str] = []
        input_of: list[NDArray[np.int32]] = []
        counts: list[NDArray[np.int64]] = []
        ends = [0]
        weighted: list[bool] = []
        sizes = [{file.path: file.bytes for file in artifact.files} for artifact in inputs]
        for source in self.sources:
            languages = Counter[str]()
            for number, (table, artifact) in enumerate(zip(tables, inputs, strict=True)):
                if source not in named[number]:
                    continue
                entry = table["sources"][named[number][source]]
                files, rows = self._files(source, entry, artifact, sizes[number])
                paths += files
                weighted += [bool(shard.get("weights")) for shard in entry["shards"]]
                counts.append(rows)
                input_of.append(np.full(len(files), number, dtype=np.int32))
                languages.update(entry["languages"])
                for name in _SUMS:
                    self.totals[name][source] += entry[name]
            self.languages[source] = dict(sorted(languages.items()))
            ends.append(len(paths))
        self.paths = paths
        self.chat_template = _chat_template(tables, inputs)
        marked = np.array([bool(table.get("marks")) for table in tables], dtype=np.bool_)
        self.sequences = np.concatenate([np.zeros(0, dtype=np.int64), *counts])
        self.input_of = np.concatenate([np.zeros(0, dtype=np.int32), *input_of])
        self.marked = marked[self.input_of]
        """Whether each file has one of marks beside it, since it holds conversations."""
        paired = np.array([bool(table.get("pairs")) for table in tables], dtype=np.bool_)
        self.paired = paired[self.input_of]
        """Whether the conversations of each file are pairs: a chosen and a rejected answer."""
        self.weighted = np.array(weighted, dtype=np.bool_)
        """Whether each file has one of weights beside it."""
        self.edges = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.sequences)])
        self.ends = np.array(ends, dtype=np.int64)
        self.bases = self.edges[self.ends]
        self.length_of = np.repeat(
            np.array([self.lengths[source] for source in self.sources], dtype=np.int64),
            np.diff(self.ends),
        )

    def of_source(self, source: int) -> range:
        """The files of a source."""
        return range(int(self.ends[source]), int(self.ends[source + 1]))

    def _files(
        self, source: str, entry: Mapping[str, Any], artifact: Input, sizes: Mapping[str, int]
    ) -> tuple[list[str], NDArray[np.int64]]:
        """Paths and sequences of one source's shards in one input; all numbers must agree."""
        shards = entry["shards"]
        paths = [shard["file"] for shard in shards]
        rows = np.array([shard["sequences"] for shard in shards], dtype=np.int64)
        tokens = np.array([shard["tokens"] for shard in shards], dtype=np.int64)
        for name, held in (("sequences", rows), ("tokens", tokens)):
            if held.sum() != entry[name] or (held < 0).any():
                raise _corrupt(
                    artifact,
                    f"source '{source}' has {entry[name]:,} {name}, its shards {held.sum():,}",
                )
        expected = rows * (self.lengths[source] * self.dtype.itemsize)
        there = np.array([sizes.get(path, -1) for path in paths], dtype=np.int64)
        for file in np.flatnonzero(there != expected).tolist():
            if there[file] < 0:
                raise _corrupt(artifact, f"names a file that is not there: {paths[file]}")
            raise _corrupt(
                artifact,
                f"{paths[file]} has {rows[file]:,} sequences, that is {expected[file]:,} bytes; "
                f"the file has {there[file]:,}",
            )
        return paths, rows


def _chat_template(tables: Sequence[Mapping[str, Any]], inputs: Sequence[Input]) -> str | None:
    """What renders the conversations of these, or None; InputError where they have several."""
    template = None
    for table, artifact in zip(tables, inputs, strict=True):
        own: str | None = table.get("chat_template")
        if template is not None and own not in (None, template):
            raise InputError(
                "its conversations are rendered by another chat template than those before it",
                where=_where(artifact),
                hint="pack them by one",
            )
        template = own or template
    return template


def _check(table: Any, first: Mapping[str, Any], artifact: Input) -> None:
    for name, missing in _missing(table):
        raise _corrupt(artifact, f"{name} lacks '{missing}'")
    for name in _EQUAL:
        if table[name] != first[name]:
            ours, theirs = (
                short(one[name]) if name == "tokenizer" else one[name] for one in (table, first)
            )
            raise InputError(
                f"{name} is {ours}, that of the first input is {theirs}",
                where=_where(artifact),
                hint="pack both with one tokenizer",
            )
    dtype, size, padded = (table[n] for n in ("dtype", *_EQUAL[1:3]))
    if dtype not in _TYPES:
        raise _corrupt(artifact, f"dtype is {dtype!r}, known are uint16 and uint32")
    most = min(2 ** (8 * _TYPES[dtype].itemsize), 2**31 - 1)
    if not 1 <= size <= min(padded, most):
        raise _corrupt(artifact, f"a vocabulary of {size:,}, padded to {padded:,}, in {dtype}")
    for name in ("end_id", "padding_id"):
        if not 0 <= table[name] < size:
            raise _corrupt(artifact, f"{name} is {table[name]}, the vocabulary has {size:,}")
    if table["sequence_length"] < 1:
        raise _corrupt(artifact, f"sequences of {table['sequence_length']} tokens")


def _missing(table: Any) -> Iterator[tuple[str, str]]:
    """What kind version 2 promises and the table lacks: where, and what."""
    for name in (*_EQUAL, "sequence_length", "sources"):
        if name not in table:
            yield "shards.json", name
            return
    for source, entry in table["sources"].items():
        for name in ("shards", "languages", *_SUMS):
            if name not in entry:
                yield f"source '{source}'", name


def _where(artifact: Input) -> str:
    return f"token shards {artifact.stage} {short(artifact.key)}: {artifact.output}"


def _corrupt(artifact: Input, what: str) -> CorruptArtifact:
    return CorruptArtifact(f"shards.json: {what}", where=_where(artifact), hint="pack again")


@dataclass(frozen=True)
class DocumentSegment:
    """A run of one document's tokens within a sequence."""

    doc_id: str
    start: int
    length: int
    document_start: int
    language: str | None
    content_hash: str


def index_path(tokens_file: str) -> str:
    """The index table of a token file."""
    return tokens_file.removesuffix(".tokens") + ".index.parquet"


def read_index(artifact: Input, tokens_file: str, columns: Sequence[str]) -> pa.Table:
    """Columns of the index table of a token file: a row a piece, by sequence and start."""
    return artifact.read_table(index_path(tokens_file), list(columns))


def read_segments(
    artifact: Input, tokens_file: str, lines: Collection[int]
) -> Iterator[tuple[int, DocumentSegment]]:
    """The pieces of the given rows of a token file, each with its row, by row and start.

    CorruptArtifact for a row that the index does not name.
    """
    table = artifact.read_table(index_path(tokens_file))
    left = set(lines)
    for row in _rows(table, "sequence", sorted(left)).to_pylist():
        line = row.pop("sequence")
        left.discard(line)
        yield line, DocumentSegment(**row)
    if left:
        raise CorruptArtifact(
            f"no document for sequence {min(left)}",
            where=index_path(tokens_file),
            hint="pack again",
        )


def rows_of_documents(
    artifact: Input, tokens_file: str, doc_ids: Collection[str]
) -> NDArray[np.int64]:
    """The rows of a token file that hold any of these documents, ascending."""
    table = artifact.read_table(index_path(tokens_file), ["sequence", "doc_id"])
    results = _rows(table, "doc_id", sorted(doc_ids))["sequence"].to_pylist()
    return np.array(sorted(set(results)), dtype=np.int64)


def _rows(table: pa.Table, column: str, values: list[str] | list[int]) -> pa.Table:
    wanted = pa.array(values, table.schema.field(column).type)
    return table.filter(pc.is_in(table[column], value_set=wanted))


FileSegments = tuple[NDArray[np.int32], NDArray[np.unsignedinteger]]
"""[rows + 1] the first piece of each row of a file; the language of each piece."""


class ShardLanguages:
    """The language of each piece, as a position among those that its source has.

    An index table is read once, when a row of its file is first asked for; those of a source in one
    language never are. What is read stays in memory: a byte a piece and four a sequence.
    """

    def __init__(self, inputs: Sequence[Input], tables: ShardTables) -> None:
        self._inputs, self._tables = inputs, tables
        self._names = [languages_with_tokens(tables.languages[source]) for source in tables.sources]
        self._known: dict[int, FileSegments] = {}

    def language_of_tokens(
        self,
        sources_B: NDArray[np.int64],
        files_B: NDArray[np.int64],
        lines_B: NDArray[np.int64],
        documents_BL: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """[B, L] The language of each token of these rows of files; any in padding.

        CorruptArtifact where an index table does not fit its file.
        """
        found_BL = np.zeros(documents_BL.shape, dtype=np.int64)
        for file in np.unique(files_B).tolist():
            rows = np.flatnonzero(files_B == file)
            names = self._names[sources_B[rows[0]]]
            if len(names) < 2:
                continue
            if file not in self._known:
                self._known[file] = self._read(file, names)
            first, languages = self._known[file]
            pieces_BL = np.maximum(documents_BL[rows], 0) + first[lines_B[rows]][:, None]
            beyond = pieces_BL.max(axis=1) >= first[lines_B[rows] + 1]
            if beyond.any():
                line = int(lines_B[rows[np.argmax(beyond)]])
                raise self._corrupt(file, f"sequence {line} has more documents than it names")
            found_BL[rows] = languages[pieces_BL]
        return found_BL

    def _read(self, file: int, names: Sequence[str]) -> FileSegments:
        artifact = self._inputs[self._tables.input_of[file]]
        table = artifact.read_table(index_path(self._tables.paths[file]), ["sequence", "language"])
        lines = table["sequence"].to_numpy()
        if (np.diff(lines) < 0).any():
            raise self._corrupt(file, "its sequences are not in order")
        declared = pc.fill_null(table["language"], "")
        places = pc.index_in(declared, value_set=pa.array(names, declared.type))
        if places.null_count:
            strange = declared.filter(pc.is_null(places))[0].as_py()
            raise self._corrupt(file, f"language '{strange}' is none of shards.json")
        first = np.searchsorted(lines, np.arange(self._tables.sequences[file] + 1))
        return first.astype(np.int32), places.to_numpy().astype(np.min_scalar_type(len(names)))

    def _corrupt(self, file: int, what: str) -> CorruptArtifact:
        artifact = self._inputs[self._tables.input_of[file]]
        path = index_path(self._tables.paths[file])
        return CorruptArtifact(what, where=f"{artifact.output}/{path}", hint="pack again")
