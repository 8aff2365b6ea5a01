"""Token shards made by hand, and what Megatron's files of them must hold."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

BEGIN, END, PADDING = 0, 1, 2
LENGTH = 16


@dataclass(frozen=True)
class Piece:
    """A run of one document's tokens and where it lies within its row."""

    doc_id: str
    document_start: int
    ids: tuple[int, ...]
    start: int


Row = list[Piece]
Documents = dict[str, list[int]]


def documents(count: int, seed: int, vocabulary: int = 50, longest: int = 90) -> Documents:
    """By seed: [begin] + ids + [end], of very different lengths; ids as `ingest` makes them."""
    draw = random.Random(seed)
    return {
        f"{draw.getrandbits(128):032x}": [
            BEGIN,
            *draw.choices(range(8, vocabulary), k=int(draw.uniform(0.7, longest**0.5) ** 2)),
            END,
        ]
        for _ in range(count)
    }


def concatenated(given: Documents, length: int = LENGTH) -> list[Row]:
    """One stream, cut at every `length` tokens."""
    rows: list[Row] = [[]]
    free = length
    for name, ids in given.items():
        begin = 0
        while begin < len(ids):
            if not free:
                rows.append([])
                free = length
            taken = ids[begin : begin + free]
            rows[-1].append(Piece(name, begin, tuple(taken), length - free))
            begin, free = begin + len(taken), free - len(taken)
    return rows


def apart(given: Documents, length: int = LENGTH) -> list[Row]:
    """Every document begins a row of its own."""
    return [row for name, ids in given.items() for row in concatenated({name: ids}, length)]


@dataclass
class Shards:
    """Rows by source and shard as files of a `token_shards` output."""

    length: int = LENGTH
    dtype: str = "uint16"
    facts: dict[str, Any] = field(default_factory=dict)
    """Of shards.json, instead of those by default."""
    sources: dict[str, list[list[Row]]] = field(default_factory=dict)
    stated: dict[str, int] = field(default_factory=dict)
    """Documents that shards.json counts, where it is not those that are there."""

    def files(self) -> dict[str, Any]:
        """What `given("token_shards", …)` takes."""
        made: dict[str, Any] = {"token_bytes.bin": b"", "train_counts.bin": b""}
        sources: dict[str, Any] = {}
        for name, shards in self.sources.items():
            folder = name.replace("/", "%2F")
            listed = []
            for number, rows in enumerate(shards):
                path = f"{folder}/{number:05d}"
                made[f"{path}.tokens"] = self._tokens(rows)
                made[f"{path}.index.parquet"] = index_rows(rows)
                tokens = sum(len(piece.ids) for row in rows for piece in row)
                shard = {"file": f"{path}.tokens", "sequences": len(rows), "tokens": tokens}
                listed.append(shard)
            every = {piece.doc_id for rows in shards for row in rows for piece in row}
            sources[name] = {
                "shards": listed,
                "sequences": sum(one["sequences"] for one in listed),
                "tokens": sum(one["tokens"] for one in listed),
                "documents": self.stated.get(name, len(every)),
                "bytes": 0,
                "languages": {},
                "repetitive": 0,
                "cut": 0,
            }
        made["shards.json"] = {
            "dtype": self.dtype,
            "sequence_length": self.length,
            "strategy": "concatenate",
            "vocabulary_size": 50 if self.dtype == "uint16" else 100_000,
            "padded_vocabulary_size": 64 if self.dtype == "uint16" else 100_032,
            "tokenizer": "ab" * 32,
            "begin_id": BEGIN,
            "end_id": END,
            "padding_id": PADDING,
            "sources": sources,
            **self.facts,
        }
        return made

    def _tokens(self, rows: list[Row]) -> bytes:
        laid = np.full((len(rows), self.length), PADDING, dtype=np.dtype(self.dtype))
        for number, row in enumerate(rows):
            for piece in row:
                laid[number, piece.start : piece.start + len(piece.ids)] = piece.ids
        return laid.astype(laid.dtype.newbyteorder("<")).tobytes()


def index_rows(rows: list[Row]) -> list[dict[str, Any]]:
    """The rows of an index table."""
    return [
        {
            "sequence": number,
            "start": piece.start,
            "length": len(piece.ids),
            "doc_id": piece.doc_id,
            "document_start": piece.document_start,
            "language": None,
            "content_hash": "0" * 16,
        }
        for number, row in enumerate(rows)
        for piece in row
    ]


def dealt(rows: list[Row], shards: int, seed: int) -> list[list[Row]]:
    """The rows in another order, over so many shards."""
    draw = random.Random(seed)
    mixed = draw.sample(rows, len(rows))
    hands: list[list[Row]] = [[] for _ in range(shards)]
    for row in mixed:
        draw.choice(hands).append(row)
    return hands


def expected(shards: list[list[Row]]) -> tuple[list[list[int]], int]:
    """By the rule that the stage states, the slow way: its documents in order; how many lack some.

    Documents whose pieces are all in one shard, from the first token to the end token, by shard
    and place; then the others by id.
    """
    places: dict[str, list[tuple[int, int, int, Piece]]] = {}
    for number, rows in enumerate(shards):
        for line, row in enumerate(rows):
            for piece in row:
                places.setdefault(piece.doc_id, []).append((number, line, piece.start, piece))
    whole, others, incomplete = [], [], 0
    for name, found in places.items():
        found.sort(key=lambda one: one[3].document_start)
        ids: list[int] = []
        sound = True
        for *_, piece in found:
            sound &= piece.document_start == len(ids)
            ids += piece.ids
        sound &= ids[-1] == END
        incomplete += not sound
        if sound and len({one[0] for one in found}) == 1:
            whole.append((found[0][:3], ids))
        else:
            others.append((name, ids))
    return [ids for _, ids in sorted(whole)] + [ids for _, ids in sorted(others)], incomplete


def read_megatron(prefix: Path) -> tuple[list[list[int]], str]:
    """Documents and the type of ids, as Megatron-LM's IndexedDataset finds them.

    Written from the description of the format alone: a header of 9 + 8 + 1 + 8 + 8 bytes, then
    int32 lengths, int64 first bytes, int64 first sequences of documents and the end of the last.
    """
    index = prefix.with_name(f"{prefix.name}.idx").read_bytes()
    tokens = prefix.with_name(f"{prefix.name}.bin").read_bytes()
    magic, version, code, sequences, edges = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version) == (b"MMIDIDX\x00\x00", 1)
    assert len(index) == 34 + 12 * sequences + 8 * edges
    lengths = struct.unpack_from(f"<{sequences}i", index, 34)
    pointers = struct.unpack_from(f"<{sequences}q", index, 34 + 4 * sequences)
    first = struct.unpack_from(f"<{edges}q", index, 34 + 12 * sequences)
    assert first == tuple(range(sequences + 1)), "every document is one sequence"
    name = {3: "int16", 4: "int32", 5: "int64", 8: "uint16"}[code]
    form, size = {"int32": ("i", 4), "uint16": ("H", 2)}[name]
    ends = [pointer + length * size for pointer, length in zip(pointers, lengths, strict=True)]
    assert list(pointers) == [0, *ends[:-1]]
    assert ends[-1] == len(tokens)
    found = zip(pointers, lengths, strict=True)
    return [list(struct.unpack_from(f"<{n}{form}", tokens, at)) for at, n in found], name
