"""Token shards as arrays: what a training step or a held-out pass feeds to the model.

Opening them reads `shards.json` alone; a batch reads its own rows and nothing else, so the first
one costs the same at any size, and so does a seek. Index tables are read to name documents, to find
them, and for the languages of a source that has several.

Shapes: B rows (sequences) of a batch, L tokens of a sequence, P pieces of a batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.training.clock import SampleClock, rank_rows
from stages.training.permutation import Indices
from stages.training.pieces import IGNORED, cut_into_pieces
from stages.training.reused_memory import ReusedMemory
from stages.training.shard_files import ShardFiles
from stages.training.shard_index import Piece, lines_of, pieces_of
from stages.training.shard_languages import ShardLanguages
from stages.training.shard_tables import ShardTables

if TYPE_CHECKING:
    from stages.engine import Input

__all__ = ["IGNORED", "Batch", "Piece", "TokenShards", "clock_batch"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Arrays of one batch.

    `targets_BL` is the next token of the same piece, or `IGNORED`; `positions_BL` counts from 0 in
    each piece; `documents_BL` numbers the pieces of a row from 0, -1 in padding; `sources_B` are
    positions in `TokenShards.sources`, `sequences_B` numbers within the source. `cu_seqlens`
    [P + 1] are the starts of all pieces in the flattened rows, and their end, as attention over
    sequences of varying length takes them (`flash_attn_varlen_func`, `torch.nn.attention.varlen`):
    every row begins a piece, and the padding of a row is one. `max_length` is the longest piece.
    """

    tokens_BL: NDArray[np.int32]
    targets_BL: NDArray[np.int64]
    positions_BL: NDArray[np.int32]
    documents_BL: NDArray[np.int32]
    sources_B: Indices
    sequences_B: Indices
    cu_seqlens: NDArray[np.int32]
    max_length: int

    def __len__(self) -> int:
        return len(self.tokens_BL)

    def part(self, start: int, stop: int) -> Batch:
        """Rows `start` to `stop`, as a batch."""
        rows, length = slice(start, stop), self.tokens_BL.shape[1]
        first, last = np.searchsorted(self.cu_seqlens, [start * length, stop * length])
        edges = self.cu_seqlens[first : last + 1] - np.int32(start * length)
        return Batch(
            self.tokens_BL[rows],
            self.targets_BL[rows],
            self.positions_BL[rows],
            self.documents_BL[rows],
            self.sources_B[rows],
            self.sequences_B[rows],
            edges,
            int(np.diff(edges).max(initial=0)),
        )


class TokenShards:
    """The sequences of several token_shards outputs, by source; the sources of one name are joined.

    Where the outputs differ in sequence length, a source of each length is one of its own, called
    `web@4096`; `lengths` maps each source to its length, and a batch has rows of one length.
    `sources` are the sorted names, `sequences` maps each to its number of sequences, numbered
    through inputs and shards in order; `languages` maps each to the tokens of each language, with
    the empty name for documents that declare none. Raises InputError if the inputs differ in
    tokenizer or type of ids, CorruptArtifact if `shards.json` contradicts itself
    or the files.
    """

    def __init__(self, inputs: Sequence[Input]) -> None:
        tables = ShardTables(inputs)
        self.tokenizer: str = tables.common["tokenizer"]
        self.vocabulary_size: int = tables.common["vocabulary_size"]
        self.padded_vocabulary_size: int = tables.common["padded_vocabulary_size"]
        self.lengths: Mapping[str, int] = tables.lengths
        self.begin_id: int | None = tables.common["begin_id"]
        self.end_id: int = tables.common["end_id"]
        self.padding_id: int = tables.common["padding_id"]
        self.sources = tables.sources
        self.sequences = self._by_source(tables.totals["sequences"])
        self.languages = tables.languages
        self._inputs, self._tables = tuple(inputs), tables
        self._memory = ReusedMemory()
        self._files = ShardFiles(
            self._inputs,
            tables.input_of,
            tables.paths,
            tables.sequences,
            tables.length_of,
            tables.dtype,
        )
        self._spoken = ShardLanguages(self._inputs, tables)

    @property
    def sequence_length(self) -> int:
        """Tokens of a sequence; InputError where there are several lengths."""
        lengths = sorted(set(self.lengths.values()))
        if len(lengths) > 1:
            raise InputError(
                f"token shards have sequences of {', '.join(map(str, lengths))} tokens",
                where="token shards",
                hint="give those of one length",
            )
        return lengths[0]

    def total(self, quantity: str) -> dict[str, int]:
        """A sum of `shards.json` for each source, over all inputs.

        `tokens`, `documents`, `bytes`, `sequences`, `repetitive` or `cut`.
        """
        return self._by_source(self._tables.totals[quantity])

    def token_bytes(self) -> NDArray[np.int64]:
        """[vocabulary_size] UTF-8 bytes of each token, 0 for special tokens."""
        return self._by_token(self._inputs[0], "token_bytes.bin", "<u2")

    def train_counts(self) -> NDArray[np.int64]:
        """[vocabulary_size] occurrences of each token in the train split, over all inputs."""
        counts = [self._by_token(given, "train_counts.bin", "<i8") for given in self._inputs]
        return np.sum(counts, axis=0, dtype=np.int64)

    def batch(self, sources_B: Indices, sequences_B: Indices) -> Batch:
        """The named sequences, one a row.

        Raises CorruptArtifact for a token outside the vocabulary, or a file that is gone, cut or
        changed; ValueError for a sequence that is not there, and for several lengths.
        """
        sources_B, sequences_B = np.asarray(sources_B), np.asarray(sequences_B)
        files_B, lines_B = self._tables.locate(sources_B, sequences_B)
        lengths_B = self._tables.length_of[files_B]
        if (lengths_B != lengths_B[:1]).any():
            raise ValueError("a batch has sequences of one length")
        raw_BL = self._files.read(files_B, lines_B)
        cut = cut_into_pieces(raw_BL, self.end_id, self.padding_id, self._memory)
        if cut.largest >= self.vocabulary_size:
            row, position = np.argwhere(raw_BL >= self.vocabulary_size)[0].tolist()
            raise CorruptArtifact(
                f"sequence {lines_B[row]} has token {raw_BL[row, position]} at {position}, "
                f"the vocabulary has {self.vocabulary_size}",
                where=self._files.where(int(files_B[row])),
                hint="ingot verify compares it with its checksum; pack again",
            )
        return Batch(
            cut.tokens_BL,
            cut.targets_BL,
            cut.positions_BL,
            cut.documents_BL,
            sources_B,
            sequences_B,
            cut.cu_seqlens,
            cut.max_length,
        )

    def documents_of(self, sources_B: Indices, sequences_B: Indices) -> list[list[Piece]]:
        """The documents behind each of the named sequences, from left to right."""
        files_B, lines_B = self._tables.locate(np.asarray(sources_B), np.asarray(sequences_B))
        wanted: dict[int, dict[int, list[int]]] = {}
        for row, (file, line) in enumerate(zip(files_B.tolist(), lines_B.tolist(), strict=True)):
            wanted.setdefault(file, {}).setdefault(line, []).append(row)
        found: list[list[Piece]] = [[] for _ in range(len(files_B))]
        for file, lines in wanted.items():
            for line, piece in pieces_of(*self._file(file), lines):
                for row in lines[line]:
                    found[row].append(piece)
        return found

    def languages_within(
        self, sources_B: Indices, sequences_B: Indices, documents_BL: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """[B, L] The language of each token, among those that `groups.spoken` has of its source.

        `documents_BL` has the number of each token's piece within the named sequences, as a batch
        has them. The index tables of sources in several languages are read for it.
        """
        sources_B = np.asarray(sources_B)
        files_B, lines_B = self._tables.locate(sources_B, np.asarray(sequences_B))
        return self._spoken.of(sources_B, files_B, lines_B, documents_BL)

    def sequences_of(self, doc_ids: Iterable[str]) -> dict[str, Indices]:
        """The sequences of each source that hold any of these documents; sources that do only.

        Every index table is read for it.
        """
        wanted = frozenset(doc_ids)
        return self._numbered(
            {file: lines_of(*self._file(file), wanted) for file in range(len(self._tables.paths))}
        )

    def sequences_in(
        self, lines: Mapping[str, Mapping[str, Collection[int]]]
    ) -> dict[str, Indices]:
        """Rows of token files (by digest of the input, then by file) as sequences of sources."""
        chosen: dict[int, Indices] = {}
        for file, path in enumerate(self._tables.paths):
            given = self._inputs[self._tables.input_of[file]]
            rows = lines.get(given.digest, {}).get(path, ())
            chosen[file] = np.array(sorted(rows), dtype=np.int64)
        return self._numbered(chosen)

    def _numbered(self, lines: Mapping[int, Indices]) -> dict[str, Indices]:
        found = {}
        for number, source in enumerate(self.sources):
            first = self._tables.bases[number]
            parts = [
                lines[file] + (self._tables.edges[file] - first)
                for file in self._tables.of_source(number)
                if len(lines[file])
            ]
            if parts:
                found[source] = np.concatenate(parts)
        return found

    def _file(self, file: int) -> tuple[Input, str]:
        return self._inputs[self._tables.input_of[file]], self._tables.paths[file]

    def _by_source(self, totals: Mapping[str, int]) -> dict[str, int]:
        return {name: totals[name] for name in self.sources}

    def _by_token(self, given: Input, path: str, dtype: str) -> NDArray[np.int64]:
        values = np.frombuffer(given.read_bytes(path), dtype=np.uint8)
        expected = self.vocabulary_size * np.dtype(dtype).itemsize
        if len(values) != expected:
            raise CorruptArtifact(
                f"{path} has {len(values):,} bytes, the vocabulary needs {expected:,}",
                where=f"token shards {given.stage} {given.key[:12]}: {given.output}",
                hint="pack again",
            )
        return values.view(dtype).astype(np.int64)


def clock_batch(
    shards: TokenShards, clock: SampleClock, step: int, *, rank: int = 0, world: int = 1
) -> Batch:
    """The rows that `rank` of `world` reads in training step `step`: all of them to a single one.

    The ranks' rows, put together in order, are the step's batch at any world size. ValueError for a
    step that is skipped or outside the run.
    """
    draw = clock.batch(step)
    rows = rank_rows(len(draw.sources), rank, world)
    return shards.batch(draw.sources[rows], draw.sequences[rows])
