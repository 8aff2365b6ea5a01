"""Which sequences are tried: the beginnings of documents, by how many documents begin so.

Packed shards hold every token that a model was trained on, with the place where each document
begins. Two documents are copies here if their first `prompt_tokens + continuation_tokens` tokens
are equal, as in Carlini et al. 2022, whose sequences are counted as tokens too. Of each document
16 bytes are held in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.training.shard_index import ShardTables, index_path

if TYPE_CHECKING:
    from stages.engine import Input, ShardOutput, ShardResult
    from stages.memorisation.config import MemorisationConfig

SCRATCH = "beginnings"
HELD_OUT = "held_out"
GROUP = "memorised/"
"""Begins the names of the groups: `memorised/1`, `memorised/2-3`, `memorised/held_out`."""
_BLOCK_BYTES = 8 << 20
_SCHEMA = pa.schema(
    [
        ("hash", pa.uint64()),
        ("doc_id", pa.string()),
        ("sequence", pa.int64()),
        ("start", pa.int32()),
    ]
)


@dataclass(frozen=True)
class TokenFile:
    """A file of token shards, and how long the beginnings are that are taken from it."""

    id: str
    input: Input
    path: str
    dtype: str
    sequence_length: int
    begin: int
    """Tokens before a document's own: 1 where each begins with a special token."""
    tokens: int
    end_id: int

    @property
    def width(self) -> int:
        """Tokens of a beginning."""
        return self.begin + self.tokens

    def beginnings(self) -> Iterator[tuple[pa.Table, NDArray[Any]]]:
        """Rows of the index and the tokens [rows, width] of documents that begin in the file and
        are long enough; by blocks of the file."""
        columns = ["sequence", "start", "length", "doc_id", "document_start"]
        index = self.input.read_table(index_path(self.path), columns)
        length = index["length"].to_numpy()
        index = index.filter(
            pa.array((index["document_start"].to_numpy() == 0) & (length >= self.width))
        )
        sequences = index["sequence"].to_numpy()
        item = np.dtype(self.dtype).newbyteorder("<")
        rows = max(1, _BLOCK_BYTES // (self.sequence_length * item.itemsize))
        with self.input.open(self.path) as file:
            first = 0
            while raw := file.read(rows * self.sequence_length * item.itemsize):
                tokens_BL = np.frombuffer(raw, item).reshape(-1, self.sequence_length)
                inside = (sequences >= first) & (sequences < first + len(tokens_BL))
                part = index.filter(pa.array(inside))
                windows = self._cut(tokens_BL, part, first)
                whole = (windows != self.end_id).all(axis=1)
                yield part.filter(pa.array(whole)), windows[whole]
                first += len(tokens_BL)

    def _cut(self, tokens_BL: NDArray[Any], part: pa.Table, first: int) -> NDArray[Any]:
        rows = part["sequence"].to_numpy() - first
        starts = part["start"].to_numpy().astype(np.int64)
        return tokens_BL[rows[:, None], starts[:, None] + np.arange(self.width)]

    def windows(self, sequences: Sequence[int], starts: Sequence[int]) -> NDArray[np.int64]:
        """Tokens [rows, width] that begin at these places."""
        item = np.dtype(self.dtype).newbyteorder("<")
        windows = np.empty((len(sequences), self.width), np.int64)
        with self.input.open(self.path) as file:
            for row, (sequence, start) in enumerate(zip(sequences, starts, strict=True)):
                file.seek((sequence * self.sequence_length + start) * item.itemsize)
                windows[row] = np.frombuffer(file.read(self.width * item.itemsize), item)
        return windows


def list_files(role: str, inputs: Sequence[Input], tokens: int) -> list[TokenFile]:
    """The token files of the inputs of a role."""
    files = []
    for place, one in enumerate(inputs):
        described = one.read_json("shards.json")
        for source in sorted(described["sources"]):
            for number, shard in enumerate(described["sources"][source]["shards"]):
                files.append(
                    TokenFile(
                        f"{role}-{place:03d}-{source}-{number:05d}",
                        one,
                        shard["file"],
                        described["dtype"],
                        described["sequence_length"],
                        int(described["begin_id"] is not None),
                        tokens,
                        described["end_id"],
                    )
                )
    return files


def check_vocabulary(inputs: Sequence[Input], vocabulary: int) -> None:
    """InputError unless the shards agree with each other and hold ids of the checkpoint."""
    size = ShardTables(inputs).common["vocabulary_size"]
    if size != vocabulary:
        raise InputError(
            f"token shards have a vocabulary of {size:,}, the checkpoint's tokenizer has "
            f"{vocabulary:,}",
            where="memorisation",
            hint="give shards packed with the tokenizer of the checkpoint",
        )


def scan_file(file: TokenFile, out: ShardOutput) -> dict[str, Any]:
    """Write the hash and the place of every beginning in a file to scratch."""
    tables = []
    for part, windows in file.beginnings():
        out.check_stop()
        plain = np.ascontiguousarray(windows[:, file.begin :].astype("<u4"))
        digests = b"".join(hashlib.blake2b(row, digest_size=8).digest() for row in plain)
        columns = {
            "hash": pa.array(np.frombuffer(digests, "<u8"), pa.uint64()),
            **{name: part[name] for name in ("doc_id", "sequence", "start")},
        }
        tables.append(pa.table(columns, schema=_SCHEMA))
    table = pa.concat_tables(tables) if tables else _SCHEMA.empty_table()
    out.write_scratch(SCRATCH, table)
    return {"documents": table.num_rows}


@dataclass
class Chosen:
    """Sequences of one group: places in files, and the document that each is taken from."""

    name: str
    sequences: int
    """Different ones that the group has in all."""
    places: list[tuple[int, str, int, int]] = field(default_factory=list)
    """(number of the file, doc_id, sequence, start), in the order of files."""


def choose_sequences(
    train: Sequence[ShardResult], held_out: Sequence[ShardResult], config: MemorisationConfig
) -> tuple[list[Chosen], int]:
    """Groups with drawn sequences, training ones by copies, then held-out ones; and how many
    held-out sequences begin a training document too, which are left out."""
    hashes, copies, first = _unique(train)
    groups = []
    for least, name in zip(config.copies, group_names(config.copies), strict=True):
        above = next((edge for edge in config.copies if edge > least), None)
        inside = (copies >= least) & (copies < (above or np.inf))
        rows = np.flatnonzero(inside)
        groups.append(_draw(name, rows, hashes, first, train, config))
    other, _, first = _unique(held_out)
    is_known = np.isin(other, hashes, assume_unique=True)
    rows = np.flatnonzero(~is_known)
    groups.append(_draw(GROUP + HELD_OUT, rows, other, first, held_out, config))
    return groups, int(is_known.sum())


def group_names(copies: Sequence[int]) -> list[str]:
    """`memorised/1`, `memorised/2-3`, `memorised/4+`."""
    ranges = [
        str(least) if after == least + 1 else f"{least}-{after - 1}"
        for least, after in pairwise(copies)
    ]
    return [GROUP + one for one in (*ranges, f"{copies[-1]}+")]


def _unique(
    results: Sequence[ShardResult],
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Different hashes, how often each is there, and the row where it is first."""
    columns = [one.read_scratch(SCRATCH, ["hash"])["hash"].to_numpy() for one in results]
    hashes = np.concatenate([np.zeros(0, np.uint64), *columns])
    unique, first, copies = np.unique(hashes, return_index=True, return_counts=True)
    return unique, copies, first


def _draw(
    name: str,
    rows: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    first: NDArray[np.int64],
    results: Sequence[ShardResult],
    config: MemorisationConfig,
) -> Chosen:
    """Those whose keyed hash is least: a larger cap keeps what a smaller one had."""
    chosen = Chosen(name, len(rows))
    keys = _mix(hashes[rows] ^ np.uint64(config.seed))
    wanted = np.sort(first[rows[np.argsort(keys, kind="stable")[: config.max_sequences]]])
    edges = np.cumsum([0, *(one.value["documents"] for one in results)])
    for number, result in enumerate(results):
        here = wanted[(wanted >= edges[number]) & (wanted < edges[number + 1])] - edges[number]
        if not len(here):
            continue
        table = result.read_scratch(SCRATCH, ["doc_id", "sequence", "start"]).take(pa.array(here))
        chosen.places += [
            (number, row["doc_id"], row["sequence"], row["start"]) for row in table.to_pylist()
        ]
    return chosen


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64 (Steele et al. 2014): a seed of small numbers moves every bit."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
