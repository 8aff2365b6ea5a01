"""Token shards as arrays: what a training step or a held-out pass feeds to the model.

Opening them reads `shards.json` alone; a batch reads its own rows and nothing else, so the first
one costs the same at any size, and so does a seek. Index tables are read to name documents, to find
them, and for the languages of a source that has several.

Files are read by `pread`. Why no memory maps: what a map has touched counts as the process's memory
for as long as the map lives, a row that is not in the page cache stops all Python threads while the
disk seeks, and a file that is cut while it is read kills the process by a signal. `pread` has none
of the three.

Rows are cut into segments without an index: text never holds a special token's id, so a segment
ends at the token that ends a document or at the end of its row, and padding is at the right only.
Rows of conversations are cut by the marks beside them (token_marks.py).
NumPy does it at 55 to 124 million tokens a CPU second; a compiled pass did 390 to 502, but the
quickstart's model trains on 5,000.

Shapes: B rows (sequences) of a batch, L tokens of a sequence.
"""

from __future__ import annotations

import os
import resource
import threading
import weakref
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError, StoreError
from artifacts_schema.store.sparse import SparseCopy, fetch
from stages.engine import Input
from stages.training.permutation import Indices
from stages.training.shard_index import (
    DocumentSegment,
    ShardLanguages,
    ShardTables,
    read_index,
    read_segments,
    rows_of_documents,
)
from stages.training.token_marks import IGNORED, PADDED, cut_by_marks

__all__ = ["IGNORED", "PADDED", "Batch", "TokenShards", "cut_into_segments", "spread"]

TOKENS, MARKS, WEIGHTS = ".tokens", ".marks", ".weights"
"""Endings of the files of token ids, and of those with the marks and weights of conversations."""

_MOST_OPEN = 1024
_READ = os.O_RDONLY | os.O_CLOEXEC


@dataclass(frozen=True, eq=False)
class Batch:
    """Arrays of one batch.

    `targets_BL` is the next token of the same segment, or `IGNORED`; `documents_BL` numbers the
    segments of a row from 0, `PADDED` in padding; `sources_B` are positions in
    `TokenShards.sources`, `sequences_B` numbers within the source; `weights_BL` is how much each
    target counts, None where all count 1.
    """

    tokens_BL: NDArray[np.int32]
    targets_BL: NDArray[np.int64]
    documents_BL: NDArray[np.int32]
    sources_B: Indices
    sequences_B: Indices
    weights_BL: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.tokens_BL)


def spread(size: int, count: int) -> NDArray[np.int64]:
    """`count` indexes below `size`, evenly spaced."""
    return np.arange(count, dtype=np.int64) * size // max(count, 1)


def cut_into_segments(
    raw_BL: NDArray[Any], end_id: int, padding_id: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """[B, L] targets and segment numbers of rows of ids.

    A segment starts at the left edge and after each `end_id`. `end_id` may itself be the padding:
    the first one after a text ends it then.
    """
    rows, length = raw_BL.shape
    text_BL = np.logical_or.accumulate((raw_BL != padding_id)[:, ::-1], axis=1)[:, ::-1]
    if end_id == padding_id:
        text_BL = np.concatenate([np.ones((rows, 1), dtype=np.bool_), text_BL[:, :-1]], axis=1)
    ends_BL = raw_BL == end_id
    documents_BL = np.zeros((rows, length), dtype=np.int32)
    np.cumsum(ends_BL[:, :-1], axis=1, dtype=np.int32, out=documents_BL[:, 1:])
    documents_BL[~text_BL] = PADDED
    targets_BL = np.full((rows, length), IGNORED, dtype=np.int64)
    inside_BL = text_BL[:, 1:] & ~ends_BL[:, :-1]
    targets_BL[:, :-1][inside_BL] = raw_BL[:, 1:][inside_BL]
    return targets_BL, documents_BL


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
        self._files = ShardFiles(self._inputs, tables)
        self._marks = ShardFiles(self._inputs, tables, MARKS)
        self._weights = ShardFiles(self._inputs, tables, WEIGHTS)
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
        counts = [self._by_token(artifact, "train_counts.bin", "<i8") for artifact in self._inputs]
        return np.sum(counts, axis=0, dtype=np.int64)

    def batch(self, sources_B: Indices, sequences_B: Indices) -> Batch:
        """The named sequences, one a row.

        Raises CorruptArtifact for a token outside the vocabulary, or a file that is gone, cut or
        changed; ValueError for a sequence that is not there, and for several lengths.
        """
        sources_B, sequences_B = np.asarray(sources_B), np.asarray(sequences_B)
        files_B, lines_B = self.locate(sources_B, sequences_B)
        lengths_B = self._tables.length_of[files_B]
        if (lengths_B != lengths_B[:1]).any():
            raise ValueError("a batch has sequences of one length")
        raw_BL = self._files.read(files_B, lines_B, self._tables.dtype)
        if raw_BL.size and raw_BL.max() >= self.vocabulary_size:
            row, position = np.argwhere(raw_BL >= self.vocabulary_size)[0].tolist()
            raise CorruptArtifact(
                f"sequence {lines_B[row]} has token {raw_BL[row, position]} at {position}, "
                f"the vocabulary has {self.vocabulary_size}",
                where=self._files.where(int(files_B[row])),
                hint="ingot verify compares it with its checksum; pack again",
            )
        targets_BL, documents_BL = cut_into_segments(raw_BL, self.end_id, self.padding_id)
        marked_B = self._tables.marked[files_B]
        if marked_B.any():
            marks_BL = self.marks(sources_B[marked_B], sequences_B[marked_B])
            targets_BL[marked_B], documents_BL[marked_B] = cut_by_marks(raw_BL[marked_B], marks_BL)
        weights_BL, weighted_B = None, self._tables.weighted[files_B]
        if weighted_B.any():
            weights_BL = np.ones(raw_BL.shape, dtype=np.float32)
            read_BL = self._weights.read(files_B[weighted_B], lines_B[weighted_B], np.dtype("<f4"))
            weights_BL[weighted_B, :-1] = read_BL[:, 1:]  # As targets are the next tokens.
        return Batch(
            raw_BL.astype(np.int32), targets_BL, documents_BL, sources_B, sequences_B, weights_BL
        )

    def marks(self, sources_B: Indices, sequences_B: Indices) -> NDArray[np.uint8]:
        """[B, L] The marks (token_marks.py) of the named sequences, which hold conversations.

        Errors are those of `batch`; ValueError for sequences of text, which have none.
        """
        files_B, lines_B = self.locate(np.asarray(sources_B), np.asarray(sequences_B))
        if not self._tables.marked[files_B].all():
            raise ValueError("sequences of text have no marks")
        return self._marks.read(files_B, lines_B, np.dtype(np.uint8))

    @property
    def is_weighted(self) -> bool:
        """Whether some tokens count more or less than 1 where they are learnt."""
        return bool(self._tables.weighted.any())

    @property
    def chat_template(self) -> str | None:
        """What renders the conversations in these shards; None where there are none."""
        return self._tables.chat_template

    @property
    def marked_sources(self) -> frozenset[str]:
        """The sources that hold conversations, or some among their texts."""
        return self._sources_with(self._tables.marked)

    @property
    def paired_sources(self) -> frozenset[str]:
        """The sources that hold preference pairs, or some among their conversations."""
        return self._sources_with(self._tables.paired)

    @property
    def unpaired_sources(self) -> frozenset[str]:
        """The sources that hold something other than preference pairs."""
        return self._sources_with(~self._tables.paired)

    def _sources_with(self, files: NDArray[np.bool_]) -> frozenset[str]:
        return frozenset(
            name
            for number, name in enumerate(self.sources)
            if files[self._tables.of_source(number)].any()
        )

    def row_numbers(self, sources_B: Indices, sequences_B: Indices) -> Indices:
        """The numbers of these sequences, counted through the sources in order."""
        return self._tables.bases[np.asarray(sources_B)] + sequences_B

    def document_counts(self) -> Indices:
        """[sequences] Documents of each, through the sources in order: every index table is read.

        A document that spans sequences counts in each of them.
        """
        counts = [
            np.bincount(
                read_index(*self._file(file), ["sequence"])["sequence"].to_numpy(),
                minlength=int(sequences),
            )
            for file, sequences in enumerate(self._tables.sequences.tolist())
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *counts])

    def locate(self, sources_B: Indices, sequences_B: Indices) -> tuple[Indices, Indices]:
        """File and row of each sequence. ValueError for one that does not exist."""
        tables = self._tables
        numbers_B = tables.bases[sources_B] + sequences_B
        outside = (sequences_B < 0) | (numbers_B >= tables.bases[sources_B + 1])
        if outside.any():
            row = int(np.argmax(outside))
            source = self.sources[sources_B[row]]
            raise ValueError(f"source '{source}' has no sequence {sequences_B[row]}")
        files_B = np.searchsorted(tables.edges, numbers_B, side="right") - 1
        return files_B, numbers_B - tables.edges[files_B]

    def documents_of(self, sources_B: Indices, sequences_B: Indices) -> list[list[DocumentSegment]]:
        """The documents of each of the named sequences, from left to right."""
        files_B, lines_B = self.locate(np.asarray(sources_B), np.asarray(sequences_B))
        wanted: dict[int, dict[int, list[int]]] = {}
        for row, (file, line) in enumerate(zip(files_B.tolist(), lines_B.tolist(), strict=True)):
            wanted.setdefault(file, {}).setdefault(line, []).append(row)
        results: list[list[DocumentSegment]] = [[] for _ in range(len(files_B))]
        for file, lines in wanted.items():
            for line, piece in read_segments(*self._file(file), lines):
                for row in lines[line]:
                    results[row].append(piece)
        return results

    def languages_within(
        self, sources_B: Indices, sequences_B: Indices, documents_BL: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """[B, L] The language of each token, among those that `groups.spoken` has of its source.

        `documents_BL` has the number of each token's piece within the named sequences, as a batch
        has them. The index tables of sources in several languages are read for it.
        """
        sources_B = np.asarray(sources_B)
        files_B, lines_B = self.locate(sources_B, np.asarray(sequences_B))
        return self._spoken.language_of_tokens(sources_B, files_B, lines_B, documents_BL)

    def sequences_of(self, doc_ids: Iterable[str]) -> dict[str, Indices]:
        """The sequences of each source that hold any of these documents; sources that do only.

        Every index table is read for it.
        """
        wanted = frozenset(doc_ids)
        return self._numbered(
            {
                file: rows_of_documents(*self._file(file), wanted)
                for file in range(len(self._tables.paths))
            }
        )

    def sequences_in(
        self, lines: Mapping[str, Mapping[str, Collection[int]]]
    ) -> dict[str, Indices]:
        """Rows of token files (by digest of the input, then by file) as sequences of sources."""
        chosen: dict[int, Indices] = {}
        for file, path in enumerate(self._tables.paths):
            artifact = self._inputs[self._tables.input_of[file]]
            rows = lines.get(artifact.digest, {}).get(path, ())
            chosen[file] = np.array(sorted(rows), dtype=np.int64)
        return self._numbered(chosen)

    def sidecar(self, inputs: Sequence[Input], ending: str) -> ShardFiles:
        """Files of other outputs that have a value for each token of these shards.

        `inputs` are as many as those of the shards, in their order; a file lies at the path of its
        token file, with another `ending`.
        """
        return ShardFiles(inputs, self._tables, ending)

    def _numbered(self, lines: Mapping[int, Indices]) -> dict[str, Indices]:
        results = {}
        for number, source in enumerate(self.sources):
            first = self._tables.bases[number]
            parts = [
                lines[file] + (self._tables.edges[file] - first)
                for file in self._tables.of_source(number)
                if len(lines[file])
            ]
            if parts:
                results[source] = np.concatenate(parts)
        return results

    def _file(self, file: int) -> tuple[Input, str]:
        return self._inputs[self._tables.input_of[file]], self._tables.paths[file]

    def _by_source(self, totals: Mapping[str, int]) -> dict[str, int]:
        return {name: totals[name] for name in self.sources}

    def _by_token(self, artifact: Input, path: str, dtype: str) -> NDArray[np.int64]:
        values = np.frombuffer(artifact.read_bytes(path), dtype=np.uint8)
        expected = self.vocabulary_size * np.dtype(dtype).itemsize
        if len(values) != expected:
            raise CorruptArtifact(
                f"{path} has {len(values):,} bytes, the vocabulary needs {expected:,}",
                where=f"token shards {artifact.stage} {artifact.key[:12]}: {artifact.output}",
                hint="pack again",
            )
        return values.view(dtype).astype(np.int64)


def open_at_once() -> int:
    """Files that a reader keeps open: a quarter of what the process may, at most 1,024."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_OPEN if soft == resource.RLIM_INFINITY else max(16, min(_MOST_OPEN, soft // 4))


class _OpenFile(NamedTuple):
    descriptor: int
    copy: SparseCopy | None = None
    """Of a remote store: what of the file is here."""


class ShardFiles:
    """Token files by number, opened when first read; the least recently read ones are closed.

    With another `ending`, the files beside them that have a value for each token. Threads may share
    it.
    """

    def __init__(self, inputs: Sequence[Input], tables: ShardTables, ending: str = TOKENS) -> None:
        self._inputs, self._tables, self._ending = inputs, tables, ending
        self._most = open_at_once()
        self._open: OrderedDict[int, _OpenFile] = OrderedDict()
        self._known: dict[int, str] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._open)

    def read(self, files_B: Indices, lines_B: Indices, dtype: np.dtype[Any]) -> NDArray[Any]:
        """[B, L] values of row `lines_B[i]` of file `files_B[i]`; all of these have one length.

        Raises CorruptArtifact for a file that is gone, cut or changed, StoreError for one that
        cannot be read.
        """
        lengths = self._tables.length_of
        length = int(lengths[files_B[0]] if len(files_B) else lengths[:1].sum())
        raw_BL = np.empty((len(files_B), length), dtype=dtype)
        rows: dict[int, list[int]] = {}
        for row, file in enumerate(files_B.tolist()):
            rows.setdefault(file, []).append(row)
        with self._lock:
            for first in range(0, len(rows), self._most):
                files = list(rows)[first : first + self._most]
                self._fetch({file: lines_B[rows[file]] for file in files}, length * dtype.itemsize)
                for file in files:
                    for row in rows[file]:
                        self._read_row(file, int(lines_B[row]), raw_BL[row])
        return raw_BL

    def where(self, file: int) -> str:
        """A file's name for people."""
        source = self._inputs[self._tables.input_of[file]]
        return f"{source.stage} {source.key[:12]}: {source.output}/{self._path(file)}"

    def _path(self, file: int) -> str:
        return self._tables.paths[file].removesuffix(TOKENS) + self._ending

    def _fetch(self, lines: Mapping[int, Indices], size: int) -> None:
        """Have these rows of `size` bytes on this machine, by few requests for all files."""
        missing = []
        for file, lines_B in lines.items():
            copy = self._opened(file, size).copy
            if copy is not None:
                blocks = {
                    block
                    for line in lines_B.tolist()
                    for block in copy.covering(line * size, (line + 1) * size)
                }
                missing.append((copy, blocks))
        if missing:
            fetch(missing)

    def _read_row(self, file: int, line: int, raw_L: NDArray[Any]) -> None:
        descriptor, done = self._opened(file, raw_L.nbytes).descriptor, 0
        view = memoryview(raw_L.view(np.uint8).data)
        while done < len(view):  # One call may give a part of it.
            try:
                size = os.preadv(descriptor, [view[done:]], line * len(view) + done)
            except OSError as error:
                raise StoreError(
                    f"cannot be read: {error.strerror}", where=self.where(file)
                ) from None
            if not size:
                raise CorruptArtifact(
                    "the file was cut while it was read", where=self.where(file), hint="pack again"
                )
            done += size

    def _opened(self, file: int, row_bytes: int) -> _OpenFile:
        if file not in self._open:
            self._open[file] = self._open_file(file, row_bytes)
            if len(self._open) > self._most:
                os.close(self._open.popitem(last=False)[1].descriptor)
        self._open.move_to_end(file)
        return self._open[file]

    def _open_file(self, file: int, row_bytes: int) -> _OpenFile:
        """Open a file; its bytes are checked the first time, its size every time.

        Of a file of a remote store that has a table of blocks, rows are fetched and checked when
        they are read.
        """
        copy = self._inputs[self._tables.input_of[file]].open_sparse(self._path(file))
        if copy is not None:
            opened, size = _OpenFile(copy.descriptor, copy), copy.file.bytes
        else:
            opened = _OpenFile(self._open_whole(file))
            size = os.fstat(opened.descriptor).st_size
        expected = int(self._tables.sequences[file]) * row_bytes
        if size != expected:
            os.close(opened.descriptor)
            raise CorruptArtifact(
                f"{size:,} bytes, expected {expected:,}", where=self.where(file), hint="pack again"
            )
        return opened

    def _open_whole(self, file: int) -> int:
        try:
            try:
                return os.open(self._known.get(file) or self._checked_path(file), _READ)
            except FileNotFoundError:  # A copy of a remote file that made room for another one.
                return os.open(self._checked_path(file), _READ)
        except OSError as error:
            raise StoreError(
                f"cannot be opened: {error.strerror}", where=self.where(file)
            ) from None

    def _checked_path(self, file: int) -> str:
        source = self._inputs[self._tables.input_of[file]]
        self._known[file] = str(source.local_path(self._path(file)))
        return self._known[file]


def _close(files: OrderedDict[int, _OpenFile]) -> None:
    for file in files.values():
        os.close(file.descriptor)
    files.clear()
