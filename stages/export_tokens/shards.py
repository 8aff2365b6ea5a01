"""The token files of each source, and which documents are whole in one of them.

A document is whole where its pieces follow each other from its first token to the one that ends
it. Only the others have to be looked for in other shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.engine import Input, ShardOutput, ShardResult
from stages.engine.arrays import numpy_array

PIECE = np.dtype([("file", "<i4"), ("length", "<i4"), ("place", "<i8")])
"""A run of one document's tokens: position of its file in `Source.files`, number of tokens, first
token within the file."""

LENGTH = np.dtype("<i4")
"""Tokens of a document; Megatron's index holds them so."""


def plain_bytes(rows: NDArray[Any]) -> memoryview:
    """The bytes of an array, as a file takes them."""
    return np.ascontiguousarray(rows).view(np.uint8).data


def blocks(path: Path, dtype: np.dtype[Any], most: int) -> Iterator[NDArray[Any]]:
    """The rows of a file of `plain_bytes`, at most so many at a time."""
    with open(path, "rb") as file:
        while len(rows := np.fromfile(file, dtype, most)):
            yield rows


_EQUAL = ("tokenizer", "vocabulary_size", "dtype", "begin_id", "end_id", "padding_id")


@dataclass(frozen=True)
class TokenFile:
    """One shard of one source: [sequences, sequence_length] ids and the index beside it."""

    id: str
    input: Input
    path: str
    number: int
    """Position among the files of its source."""
    sequences: int
    sequence_length: int
    tokens: int
    """Those that are not padding, by shards.json."""
    dtype: str
    vocabulary_size: int
    end_id: int
    padding_id: int

    @property
    def where(self) -> str:
        """For error messages."""
        return f"{_describe(self.input)}, {self.path}"

    def ids(self) -> NDArray[Any]:
        """All ids of the file, flat, mapped from disk. CorruptArtifact if it has another size."""
        path = self.input.local_path(self.path)
        dtype = np.dtype(self.dtype).newbyteorder("<")
        count = self.sequences * self.sequence_length
        size = path.stat().st_size
        if size != count * dtype.itemsize:
            raise CorruptArtifact(
                f"{size:,} bytes, expected {count * dtype.itemsize:,}: {self.sequences:,} "
                f"sequences of {self.sequence_length:,} tokens",
                where=self.where,
                hint="pack again",
            )
        if not count:
            return np.empty(0, dtype)
        # Pieces are cut from it all the time: a plain array does that five times as fast.
        return np.asarray(np.memmap(path, dtype, mode="r"))


@dataclass(frozen=True)
class Source:
    """The files of one source, and the results of earlier maps over them. An item of a map."""

    id: str
    name: str
    files: tuple[TokenFile, ...]
    documents: int
    """By shards.json."""
    scans: tuple[ShardResult, ...] = ()
    """Of each file, by `scan_shard`."""
    join: ShardResult | None = None
    """Of `join_source`."""


@dataclass(frozen=True)
class Packed:
    """All sources, sorted by name; those without a token are skipped."""

    sources: tuple[Source, ...]
    tokenizer: str
    facts: dict[str, Any]
    """Of shards.json, equal in all inputs."""

    @classmethod
    def read(cls, inputs: Sequence[Input]) -> Packed:
        """InputError for different tokenizers, for conversations, and for no document at all."""
        tables = [shards_input.read_json("shards.json") for shards_input in inputs]
        facts = {name: tables[0][name] for name in _EQUAL}
        for shards_input, table in zip(inputs, tables, strict=True):
            if table.get("marks"):
                raise InputError(
                    "they hold conversations, and no other trainer's format says which of their "
                    "tokens are learnt",
                    where=_describe(shards_input),
                    hint="give shards of pack, or release the conversations themselves",
                )
            for name in _EQUAL:
                if table[name] != facts[name]:
                    raise InputError(
                        f"{name} is {table[name]}, that of the first input is {facts[name]}",
                        where=_describe(shards_input),
                        hint="export shards of different tokenizers apart",
                    )
        names = sorted({name for table in tables for name in table["sources"]})
        sources = [_collect_source(name, inputs, tables) for name in names]
        filled = [source for source in sources if any(file.tokens for file in source.files)]
        if not filled:
            raise InputError(
                "the token shards hold no document",
                hint="no trainer reads an empty dataset; look at what pack counted",
            )
        numbered = [
            replace(
                source,
                id=f"{index:05d}",
                files=tuple(replace(file, id=f"{index:05d}-{file.id}") for file in source.files),
            )
            for index, source in enumerate(filled)
        ]
        return cls(tuple(numbered), facts["tokenizer"], facts)

    def with_scans(self, results: Sequence[ShardResult]) -> Packed:
        """With the results of `scan_shard` for all files, in order."""
        waiting = iter(results)
        sources = (
            replace(source, scans=tuple(next(waiting) for _ in source.files))
            for source in self.sources
        )
        return replace(self, sources=tuple(sources))

    def with_joins(self, results: Sequence[ShardResult]) -> Packed:
        """With the results of `join_source` for all sources, in order."""
        pairs = zip(self.sources, results, strict=True)
        return replace(self, sources=tuple(replace(one, join=join) for one, join in pairs))


def _describe(shards: Input) -> str:
    return f"token shards {shards.stage}/{shards.key[:12]}:{shards.output}"


def _collect_source(name: str, inputs: Iterable[Input], tables: Iterable[dict[str, Any]]) -> Source:
    files: list[TokenFile] = []
    documents = 0
    for shards_input, table in zip(inputs, tables, strict=True):
        one = table["sources"].get(name, {"shards": [], "documents": 0})
        documents += one["documents"]
        for shard in one["shards"]:
            number = len(files)
            files.append(
                TokenFile(
                    id=f"{number:07d}",
                    input=shards_input,
                    path=shard["file"],
                    number=number,
                    sequences=shard["sequences"],
                    sequence_length=table["sequence_length"],
                    tokens=shard["tokens"],
                    dtype=table["dtype"],
                    vocabulary_size=table["vocabulary_size"],
                    end_id=table["end_id"],
                    padding_id=table["padding_id"],
                )
            )
    return Source("", name, tuple(files), documents)


ENTRY = np.dtype(
    [("id", "S32"), ("start", "<i8"), ("place", "<i8"), ("length", "<i4"), ("state", "<i4")]
)
"""A whole document (`length` its tokens, `place` its first) or a piece of another one; `start` is
the first token within the document."""

PART, LAST, WHOLE = 0, 1, 2
"""States: a piece that does not end its document, one that does, and a whole document."""

LONGEST = 2**31 - 1
"""Tokens of a document: Megatron's index counts them as int32, so they are counted here."""

_COLUMNS = ["doc_id", "document_start", "sequence", "start", "length"]
Entries = NDArray[np.void]
Ints = NDArray[np.int64]


def scan_shard(file: TokenFile, out: ShardOutput) -> dict[str, Any]:
    """Check a shard against its index, and sort its documents into whole ones and others.

    Leaves `pieces` (PIECE) and `lengths` (LENGTH) of whole documents by place, and `entries`
    (ENTRY) of all documents by id and start. Returns {"entries": their number, "documents",
    "tokens": of whole documents}. CorruptArtifact where ids, index and shards.json disagree.
    """
    ids = file.ids()
    pieces = read_pieces(file)
    check_tokens(file, ids, pieces)
    pieces = pieces[np.lexsort((pieces["start"], pieces["id"]))]
    ends = ids[pieces["place"] + pieces["length"] - 1] == file.end_id
    pieces["state"] = np.where(ends, LAST, PART)
    first, whole = whole_documents(pieces)
    last = np.append(first[1:], len(pieces))
    totals = sum_groups(pieces["length"], first)
    check_lengths(pieces["id"][first], totals, file.where)
    with out.open_scratch("entries") as raw:
        raw.write(plain_bytes(entries := _entries(pieces, first, whole, totals)))
    by_place = np.flatnonzero(whole)
    by_place = by_place[np.argsort(pieces["place"][first[by_place]])]
    with out.open_scratch("pieces") as raw:
        chosen = pieces[expand_ranges(first[by_place], last[by_place])]
        raw.write(plain_bytes(to_pieces(chosen, np.full(len(chosen), file.number))))
    with out.open_scratch("lengths") as raw:
        raw.write(plain_bytes(totals[by_place].astype(LENGTH)))
    documents, tokens = len(by_place), int(totals[by_place].sum())
    return {"entries": len(entries), "documents": documents, "tokens": tokens}


def read_pieces(file: TokenFile) -> Entries:
    """The index of a shard as ENTRY rows in its own order; `state` is not known yet.

    CorruptArtifact for a piece that leaves its sequence, is empty, or overlaps another one.
    """
    table = file.input.read_table(file.path.removesuffix(".tokens") + ".index.parquet", _COLUMNS)
    columns = {name: _column(table, name) for name in _COLUMNS[1:]}
    length = columns["length"]
    outside = (columns["sequence"] < 0) | (columns["sequence"] >= file.sequences)
    outside |= (columns["start"] < 0) | (columns["start"] + length > file.sequence_length)
    outside |= (length < 1) | (columns["document_start"] < 0)
    if outside.any():
        row = int(np.argmax(outside))
        raise CorruptArtifact(
            f"row {row:,} of the index names no tokens of the shard: "
            + ", ".join(f"{name} {column[row]}" for name, column in columns.items()),
            where=file.where,
            hint="pack again",
        )
    pieces = np.zeros(len(table), ENTRY)
    pieces["id"] = document_ids(table["doc_id"], file.where)
    pieces["start"], pieces["length"] = columns["document_start"], length
    pieces["place"] = columns["sequence"] * file.sequence_length + columns["start"]
    order = np.argsort(pieces["place"])
    ends = pieces["place"][order] + length[order]
    if (pieces["place"][order][1:] < ends[:-1]).any():
        raise CorruptArtifact("two pieces of the index overlap", where=file.where)
    return pieces


def check_tokens(file: TokenFile, ids: NDArray[Any], pieces: Entries) -> None:
    """CorruptArtifact for an id outside the vocabulary, or tokens that no piece names."""
    if len(ids) and (greatest := int(ids.max())) >= file.vocabulary_size:
        place = int(np.argmax(ids))
        raise CorruptArtifact(
            f"token {greatest} in sequence {place // file.sequence_length}, but the vocabulary has "
            f"{file.vocabulary_size}",
            where=file.where,
            hint="pack again",
        )
    counts = {
        "the shard": int(np.count_nonzero(ids != file.padding_id)),
        "its index": int(pieces["length"].sum(dtype=np.int64)),
        "shards.json": file.tokens,
    }
    if len(set(counts.values())) > 1:
        listing = ", ".join(f"{count:,} in {name}" for name, count in counts.items())
        raise CorruptArtifact(f"numbers of tokens differ: {listing}", where=file.where)


def check_lengths(ids: NDArray[Any], totals: Ints, where: str) -> None:
    """InputError for a document that is longer than `LONGEST`."""
    if len(totals) and (longest := int(totals.max())) > LONGEST:
        raise InputError(
            f"document {ids[int(totals.argmax())].decode()} has {longest:,} tokens; at most "
            f"{LONGEST:,} can be counted",
            where=where,
            hint="leave it out with `filter`",
        )


def whole_documents(pieces: Entries) -> tuple[Ints, NDArray[np.bool_]]:
    """First row of each document, and which of them are whole; rows by id and start."""
    if not len(pieces):
        return np.empty(0, np.int64), np.empty(0, bool)
    opens = np.append(True, pieces["id"][1:] != pieces["id"][:-1])
    follows = np.append(False, pieces["start"][1:] == pieces["start"][:-1] + pieces["length"][:-1])
    follows[1:] &= pieces["state"][:-1] == PART
    first = np.flatnonzero(opens)
    sound = np.where(opens, pieces["start"] == 0, follows)
    last = np.append(first[1:], len(pieces)) - 1
    return first, np.logical_and.reduceat(sound, first) & (pieces["state"][last] == LAST)


def document_ids(ids: pa.ChunkedArray, where: str) -> NDArray[np.bytes_]:
    """The ids as bytes; CorruptArtifact for one that has not 32 characters."""
    odd = ids.filter(pc.not_equal(pc.binary_length(ids), 32))
    if len(odd):
        raise CorruptArtifact(
            f"doc_id '{odd[0]}' is not 32 hex digits",
            where=where,
            hint="documents get ids from `ingest`, or by `artifacts_schema.identity.document_id`",
        )
    parts = [np.empty(0, "S32")]
    for chunk in ids.cast(pa.large_string()).chunks:
        start = int(np.frombuffer(chunk.buffers()[1], "<i8")[chunk.offset]) if len(chunk) else 0
        if len(chunk):
            parts.append(np.frombuffer(chunk.buffers()[2], "S32", len(chunk), start))
    return np.concatenate(parts)


def to_pieces(entries: Entries, files: Ints) -> NDArray[np.void]:
    """Rows as PIECE; `files` are the positions of their files."""
    pieces = np.empty(len(entries), PIECE)
    pieces["file"], pieces["length"], pieces["place"] = files, entries["length"], entries["place"]
    return pieces


def sum_groups(values: NDArray[Any], first: Ints) -> Ints:
    """Sums of the groups that begin at `first` and leave out nothing."""
    return np.add.reduceat(values.astype(np.int64), first) if len(first) else first


def expand_ranges(first: Ints, last: Ints) -> Ints:
    """The numbers from each first one to its last one, which is not among them."""
    sizes = last - first
    return np.arange(sizes.sum()) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)


def _entries(pieces: Entries, first: Ints, whole: NDArray[np.bool_], totals: Ints) -> Entries:
    """One row for each whole document, and all of the others."""
    entries = pieces.copy()
    entries["length"][first[whole]] = totals[whole]
    entries["state"][first[whole]] = WHOLE
    last = np.append(first[1:], len(pieces))
    kept = np.repeat(~whole, last - first)
    kept[first] = True
    return entries[kept]


def _column(table: pa.Table, name: str) -> Ints:
    column = table[name].cast(pa.int64()).combine_chunks()
    return numpy_array(column if isinstance(column, pa.Array) else column.chunk(0))
