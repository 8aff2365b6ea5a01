"""Token shards as arrays: what a training step or a held-out pass feeds to the model.

Shards are read through memory maps, opened when first touched. Piece borders need no index: text
never holds a special token's id, so a piece ends at `end_of_text` or at the end of its row. The
index tables are read for one purpose only, to name documents (`documents_of`).

Shapes: B rows (sequences) of a batch, L tokens of a sequence.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.training.permutation import Indices

if TYPE_CHECKING:
    from stages.engine import Input
    from stages.training.clock import SampleClock

Ints = npt.NDArray[np.int64]

IGNORED = -100
"""Target that carries no loss (the `ignore_index` of PyTorch's cross entropy)."""

OPEN_FILES = 256


@dataclass(frozen=True)
class Batch:
    """Arrays of one batch, all int64.

    `targets_BL` is the next token of the same piece, or `IGNORED`; `positions_BL` counts from 0 in
    each piece; `documents_BL` numbers the pieces of a row from 0, -1 in padding; `sources_B` are
    positions in `TokenShards.sources`.
    """

    tokens_BL: Ints
    targets_BL: Ints
    positions_BL: Ints
    documents_BL: Ints
    sources_B: Ints


@dataclass(frozen=True)
class Piece:
    """A run of one document's tokens within a sequence."""

    doc_id: str
    start: int
    length: int
    document_start: int


@dataclass(frozen=True)
class _File:
    input: Input
    path: str
    sequences: int


class TokenShards:
    """The sequences of several token_shards outputs, by source; the sources of one name are joined.

    `sources` are the sorted names, `sequences` maps each to its number of sequences, numbered
    through inputs and shards in order. InputError if the inputs differ in tokenizer or sequence
    length.
    """

    def __init__(self, inputs: Sequence[Input]) -> None:
        if not inputs:
            raise InputError("no token shards were given")
        tables = [given.read_json("shards.json") for given in inputs]
        first = tables[0]
        for table, given in zip(tables, inputs, strict=True):
            for name in ("tokenizer", "vocabulary_size", "sequence_length", "dtype", "end_id"):
                if table[name] != first[name]:
                    raise InputError(
                        f"{name} is {table[name]}, that of the first input is {first[name]}",
                        where=f"token shards {given.stage}/{given.key[:12]}:{given.output}",
                        hint="pack both with one tokenizer and one sequence length",
                    )
        self.tokenizer: str = first["tokenizer"]
        self.vocabulary_size: int = first["vocabulary_size"]
        self.sequence_length: int = first["sequence_length"]
        self.padding_id: int = first["padding_id"]
        self._end_id: int = first["end_id"]
        self._dtype = np.dtype(first["dtype"]).newbyteorder("<")
        self._inputs = tuple(inputs)
        self._tables = tables
        self.sources = tuple(sorted({name for table in tables for name in table["sources"]}))
        self._files = {name: self._files_of(name) for name in self.sources}
        self._edges = {
            name: np.cumsum([0, *(file.sequences for file in files)], dtype=np.int64)
            for name, files in self._files.items()
        }
        self.sequences = {name: int(self._edges[name][-1]) for name in self.sources}
        self._maps: OrderedDict[tuple[str, str], npt.NDArray[Any]] = OrderedDict()

    def total(self, quantity: str) -> dict[str, int]:
        """`tokens`, `documents`, `bytes` or `sequences` of each source, over all inputs."""
        return {
            name: sum(table["sources"].get(name, {}).get(quantity, 0) for table in self._tables)
            for name in self.sources
        }

    def token_bytes(self) -> Ints:
        """[vocabulary_size] UTF-8 bytes of each token, 0 for special tokens."""
        raw = self._inputs[0].read_bytes("token_bytes.bin")
        return np.frombuffer(raw, dtype="<u2").astype(np.int64)

    def train_counts(self) -> Ints:
        """[vocabulary_size] occurrences of each token in the train split, over all inputs."""
        raw = [given.read_bytes("train_counts.bin") for given in self._inputs]
        return np.sum([np.frombuffer(counts, dtype="<i8") for counts in raw], axis=0)

    def batch(self, sources_B: Indices, sequences_B: Indices) -> Batch:
        """The named sequences, one a row. CorruptArtifact for a token outside the vocabulary."""
        tokens_BL = np.empty((len(sources_B), self.sequence_length), dtype=np.int64)
        for row, (source, sequence) in enumerate(zip(sources_B, sequences_B, strict=True)):
            file, line = self._locate(self.sources[source], int(sequence))
            tokens_BL[row] = self._map(file)[line]
        if len(sources_B) and tokens_BL.max() >= self.vocabulary_size:
            row = int(np.argmax(tokens_BL.max(axis=1)))
            file, line = self._locate(self.sources[sources_B[row]], int(sequences_B[row]))
            raise CorruptArtifact(
                f"token {tokens_BL.max()} in sequence {line}, but the vocabulary has "
                f"{self.vocabulary_size}",
                where=file.path,
                hint="pack again",
            )
        targets_BL, positions_BL, documents_BL = pieces(tokens_BL, self._end_id, self.padding_id)
        return Batch(tokens_BL, targets_BL, positions_BL, documents_BL, np.asarray(sources_B))

    def documents_of(self, sources_B: Indices, sequences_B: Indices) -> list[list[Piece]]:
        """The documents behind each of the named sequences, from left to right."""
        wanted: dict[tuple[str, str], tuple[_File, dict[int, list[int]]]] = {}
        for row, (source, sequence) in enumerate(zip(sources_B, sequences_B, strict=True)):
            file, line = self._locate(self.sources[source], int(sequence))
            key = (file.input.digest, file.path)
            wanted.setdefault(key, (file, {}))[1].setdefault(line, []).append(row)
        found: list[list[Piece]] = [[] for _ in range(len(sources_B))]
        for file, lines in wanted.values():
            for line, piece in _indexed(file, sorted(lines)):
                for row in lines[line]:
                    found[row].append(piece)
        return found

    def _files_of(self, source: str) -> list[_File]:
        return [
            _File(given, shard["file"], shard["sequences"])
            for given, table in zip(self._inputs, self._tables, strict=True)
            for shard in table["sources"].get(source, {}).get("shards", [])
        ]

    def _locate(self, source: str, sequence: int) -> tuple[_File, int]:
        if not 0 <= sequence < self.sequences[source]:
            raise ValueError(f"source '{source}' has no sequence {sequence}")
        edges = self._edges[source]
        index = int(np.searchsorted(edges, sequence, side="right")) - 1
        return self._files[source][index], sequence - int(edges[index])

    def _map(self, file: _File) -> npt.NDArray[Any]:
        key = (file.input.digest, file.path)
        if key not in self._maps:
            path = file.input.local_path(file.path)
            expected = file.sequences * self.sequence_length * self._dtype.itemsize
            if path.stat().st_size != expected:
                raise CorruptArtifact(
                    f"{path.stat().st_size} bytes, expected {expected}",
                    where=file.path,
                    hint="pack again",
                )
            shape = (file.sequences, self.sequence_length)
            # Rows are cut from it all the time: a plain array does that five times as fast.
            self._maps[key] = np.asarray(np.memmap(path, self._dtype, mode="r", shape=shape))
            if len(self._maps) > OPEN_FILES:
                self._maps.popitem(last=False)
        self._maps.move_to_end(key)
        return self._maps[key]


def pieces(tokens_BL: Ints, end_id: int, padding_id: int) -> tuple[Ints, Ints, Ints]:
    """Targets, positions and piece numbers of packed rows (see `Batch`), all [B, L].

    A piece starts at the left edge and after each `end_id`; padding is at the right only.
    """
    length = tokens_BL.shape[1]
    padding_BL = tokens_BL == padding_id
    starts_BL = np.zeros(tokens_BL.shape, dtype=bool)
    starts_BL[:, 0] = True
    starts_BL[:, 1:] = tokens_BL[:, :-1] == end_id
    documents_BL = np.cumsum(starts_BL, axis=1, dtype=np.int64) - 1
    documents_BL[padding_BL] = -1
    columns_L = np.arange(length, dtype=np.int64)
    first_BL = np.maximum.accumulate(np.where(starts_BL, columns_L, 0), axis=1)
    positions_BL = columns_L - first_BL
    targets_BL = np.full(tokens_BL.shape, IGNORED, dtype=np.int64)
    inside_BL = ~starts_BL[:, 1:] & ~padding_BL[:, 1:]
    targets_BL[:, :-1][inside_BL] = tokens_BL[:, 1:][inside_BL]
    return targets_BL, positions_BL, documents_BL


def clock_batch(shards: TokenShards, clock: SampleClock, step: int) -> Batch:
    """The batch of training step `step`."""
    draw = clock.batch(step)
    return shards.batch(draw.sources, draw.sequences)


def _indexed(file: _File, lines: list[int]) -> Iterator[tuple[int, Piece]]:
    """The pieces of the given sequences of a shard, in order of sequence and start."""
    import pyarrow.compute as pc

    table = file.input.read_table(file.path.removesuffix(".tokens") + ".index.parquet")
    mask = pc.is_in(table["sequence"], value_set=pc.cast(lines, "int64"))
    for row in table.filter(mask).to_pylist():
        yield (
            row["sequence"],
            Piece(row["doc_id"], row["start"], row["length"], row["document_start"]),
        )
