"""What is exported: the token files of each source, over all inputs in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.engine import Input, ShardResult

PIECE = np.dtype([("file", "<i4"), ("length", "<i4"), ("place", "<i8")])
"""A run of one document's tokens: position of its file in `Source.files`, number of tokens, first
token within the file."""

LENGTH = np.dtype("<i4")
"""Tokens of a document, as Megatron's index holds it."""


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
        given = self.input
        return f"token shards {given.stage}/{given.key[:12]}:{given.output}, {self.path}"

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
    """The files of one source, and what the maps before found in them. An item of a map."""

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
    """All sources, sorted by name; those without a token are left out."""

    sources: tuple[Source, ...]
    tokenizer: str
    facts: dict[str, Any]
    """Of shards.json, equal in all inputs."""

    @classmethod
    def of(cls, inputs: Sequence[Input]) -> Packed:
        """InputError if inputs were packed with different tokenizers or hold no document."""
        tables = [given.read_json("shards.json") for given in inputs]
        facts = {name: tables[0][name] for name in _EQUAL}
        for given, table in zip(inputs, tables, strict=True):
            for name in _EQUAL:
                if table[name] != facts[name]:
                    raise InputError(
                        f"{name} is {table[name]}, that of the first input is {facts[name]}",
                        where=f"token shards {given.stage}/{given.key[:12]}:{given.output}",
                        hint="export shards of different tokenizers apart",
                    )
        names = sorted({name for table in tables for name in table["sources"]})
        sources = [_source(name, inputs, tables) for name in names]
        filled = [source for source in sources if any(file.tokens for file in source.files)]
        if not filled:
            raise InputError(
                "the token shards hold no document",
                hint="Megatron reads no empty dataset; look at what pack counted",
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
        found = (
            replace(source, scans=tuple(next(waiting) for _ in source.files))
            for source in self.sources
        )
        return replace(self, sources=tuple(found))

    def with_joins(self, results: Sequence[ShardResult]) -> Packed:
        """With the results of `join_source` for all sources, in order."""
        found = zip(self.sources, results, strict=True)
        return replace(self, sources=tuple(replace(one, join=join) for one, join in found))


def _source(name: str, inputs: Iterable[Input], tables: Iterable[dict[str, Any]]) -> Source:
    files: list[TokenFile] = []
    documents = 0
    for given, table in zip(inputs, tables, strict=True):
        one = table["sources"].get(name, {"shards": [], "documents": 0})
        documents += one["documents"]
        for shard in one["shards"]:
            number = len(files)
            files.append(
                TokenFile(
                    id=f"{number:07d}",
                    input=given,
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
