"""One pass over the text of a shard: digest, shingles and band keys of every document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.dedup.exact import text_digest
from stages.dedup.minhash import MinHash, band_keys
from stages.text.normalise import normalise
from stages.text.shingles import shingle_hashes
from stages.text.words import words

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput, ShardResult


@dataclass(frozen=True)
class DocumentShard:
    """A shard of one of several documents inputs, with an id that is unique over all of them."""

    id: str
    shard: Shard


@dataclass(frozen=True, eq=False)
class Signatures:
    """What is known of all documents, in input order. The shingles themselves stay on disk."""

    doc_ids: pa.StringArray
    digests: NDArray[np.uint64]
    """[documents, 2]"""
    shingles: NDArray[np.int64]
    """Number of distinct shingles of each document."""
    keys: NDArray[np.uint64]
    """[documents, bands]"""
    rows: list[int]
    """Documents of each shard."""


def sign_shard(
    item: DocumentShard, out: ShardOutput, *, ngram: int, bands: int, rows: int, seed: int
) -> dict[str, Any]:
    """Leave `signatures` (a row a document) and `shingles` (uint64 little-endian, end to end)."""
    minhash = MinHash(bands * rows, seed)
    ids: list[pa.Array] = []
    digests: list[bytes] = []
    counts: list[int] = []
    signatures: list[NDArray[np.uint32]] = []
    with out.open_scratch("shingles") as shingle_file:
        for group in item.shard.row_groups(["doc_id", "text"]):
            ids.extend(group["doc_id"].chunks)
            for text in group["text"].to_pylist():
                normalised = normalise(text)
                shingles = shingle_hashes(words(normalised), ngram)
                shingle_file.write(shingles.astype("<u8", copy=False).tobytes())
                digests.append(text_digest(text, normalised))
                counts.append(len(shingles))
                signatures.append(minhash.signature(shingles))
    stacked = np.array(signatures, dtype=np.uint32).reshape(len(counts), bands * rows)
    keys = band_keys(stacked, bands, rows)
    table = _table(pa.chunked_array(ids, pa.string()), digests, counts, keys)
    out.write_scratch("signatures", table)
    return {"documents": len(counts), "shingles": sum(counts)}


def document_shards(documents: list[Input]) -> list[DocumentShard]:
    """The shards of all inputs, in order."""
    return [
        DocumentShard(f"{index:02d}-{shard.id}", shard)
        for index, given in enumerate(documents)
        for shard in given.shards()
    ]


def gather(results: list[ShardResult], bands: int) -> Signatures:
    """The signatures of all shards, end to end.

    Raises InputError if two documents bear one id: their pairs could not be told apart.
    """
    tables = [result.read_scratch("signatures") for result in results]
    ids = [chunk for table in tables for chunk in table.column("doc_id").chunks]
    halves = [_matrix(table.column("digest"), 2) for table in tables]
    keys = [_matrix(table.column("keys"), bands) for table in tables]
    counts = [table.column("shingles").to_numpy() for table in tables]
    doc_ids = pa.concat_arrays([pa.array([], pa.string()), *ids])
    _check_distinct(doc_ids)
    return Signatures(
        doc_ids=doc_ids,
        digests=np.concatenate([np.empty((0, 2), np.uint64), *halves]),
        shingles=np.concatenate([np.empty(0, np.int64), *counts]),
        keys=np.concatenate([np.empty((0, bands), np.uint64), *keys]),
        rows=[table.num_rows for table in tables],
    )


def _table(
    ids: pa.ChunkedArray, digests: list[bytes], counts: list[int], keys: NDArray[np.uint64]
) -> pa.Table:
    halves = np.frombuffer(b"".join(digests), dtype="<u8")
    return pa.table(
        {
            "doc_id": ids,
            "digest": pa.FixedSizeListArray.from_arrays(pa.array(halves), 2),
            "shingles": pa.array(counts, pa.int64()),
            "keys": pa.FixedSizeListArray.from_arrays(pa.array(keys.ravel()), keys.shape[1]),
        }
    )


def _check_distinct(doc_ids: pa.StringArray) -> None:
    if pc.count_distinct(doc_ids).as_py() == len(doc_ids):
        return
    counts = pc.value_counts(doc_ids)
    twice = pc.index(pc.greater(counts.field("counts"), 1), True).as_py()
    raise InputError(
        f"doc_id {counts.field('values')[twice]} occurs more than once in the documents",
        where="dedup",
        hint="the same snapshot, or overlapping ones under one name, came in twice",
    )


def _matrix(column: pa.ChunkedArray, width: int) -> NDArray[np.uint64]:
    """A column of fixed-size lists as [rows, width]."""
    flat = [chunk.flatten().to_numpy() for chunk in column.chunks]
    return np.concatenate([np.empty(0, np.uint64), *flat]).reshape(-1, width)
