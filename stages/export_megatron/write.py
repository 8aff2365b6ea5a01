"""A source's documents as Megatron's indexed dataset, version 1.

The format is Megatron-LM's (megatron/core/datasets/indexed_dataset.py): PREFIX.bin holds token ids
end to end; PREFIX.idx a header, then for each sequence its number of tokens (int32) and its first
byte (int64), then for each document its first sequence (int64) and the number of all sequences.
Here a sequence is a document.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from stages.export_megatron.token_files import LENGTH, PIECE, Source, blocks, plain_bytes

if TYPE_CHECKING:
    from stages.engine import ShardOutput

HEADER, VERSION = b"MMIDIDX\x00\x00", 1

WRITTEN = {"uint16": ("uint16", 8), "uint32": ("int32", 4)}
"""Type of the ids in a shard → type in Megatron's files and its code there (`DType`), which has no
uint32: ids are less than 2^31."""

BLOCK_TOKENS = 1 << 21
BLOCK_ROWS = 1 << 19
OPEN_FILES = 64


def write_source(source: Source, out: ShardOutput) -> dict[str, Any]:
    """Write one pair of files; whole documents by file and place, then the joined ones.

    Returns {"prefix", "dtype", "documents", "tokens", "bytes": of both files, "incomplete"}.
    """
    assert source.join is not None
    found = [result.value for result in (*source.scans, source.join)]
    prefix = quote(source.name, safe="")  # One name, whatever the source's is.
    name, code = WRITTEN[source.files[0].dtype]
    with out.open("dataset", f"{prefix}.bin") as tokens_file:
        for block in token_blocks(source):
            tokens_file.write(plain_bytes(block))
    documents = sum(value["documents"] for value in found)
    with out.open("dataset", f"{prefix}.idx") as index_file:
        index_file.write(struct.pack("<9sQBQQ", HEADER, VERSION, code, documents, documents + 1))
        for part in index_parts(source, documents, np.dtype(name).itemsize):
            index_file.write(plain_bytes(part))
    return {
        "prefix": prefix,
        "dtype": name,
        "documents": documents,
        "tokens": sum(value["tokens"] for value in found),
        "bytes": tokens_file.bytes + index_file.bytes,
        "incomplete": source.join.value["incomplete"],
    }


def token_blocks(source: Source) -> Iterator[NDArray[Any]]:
    """The ids of all documents, at most about BLOCK_TOKENS at a time."""
    opened = _Opened(source)
    for result in (*source.scans, source.join):
        assert result is not None
        for pieces in blocks(result.scratch_path("pieces"), PIECE, BLOCK_ROWS):
            ends = np.cumsum(pieces["length"], dtype=np.int64)
            edges = np.arange(BLOCK_TOKENS, ends[-1], BLOCK_TOKENS)
            for part in np.split(pieces, np.unique(np.searchsorted(ends, edges, side="right"))):
                if len(part):
                    yield np.concatenate([opened.ids(*piece) for piece in part.tolist()])


def index_parts(source: Source, documents: int, token_bytes: int) -> Iterator[NDArray[Any]]:
    """What follows the header of the index: lengths, first bytes, documents."""
    results = [result for result in (*source.scans, source.join) if result is not None]
    paths = [result.scratch_path("lengths") for result in results]
    for path in paths:
        yield from blocks(path, LENGTH, BLOCK_ROWS)
    begin = 0
    for path in paths:
        for lengths in blocks(path, LENGTH, BLOCK_ROWS):
            ends = begin + np.cumsum(lengths, dtype="<i8") * token_bytes
            yield np.append(begin, ends[:-1]).astype("<i8")
            begin = int(ends[-1])
    for first in range(0, documents + 1, BLOCK_ROWS):
        yield np.arange(first, min(first + BLOCK_ROWS, documents + 1), dtype="<i8")


class _Opened:
    """The token files of a source, those used last kept open."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._maps: OrderedDict[int, NDArray[Any]] = OrderedDict()

    def ids(self, file: int, length: int, place: int) -> NDArray[Any]:
        """The ids of a piece."""
        if file not in self._maps:
            self._maps[file] = self._source.files[file].ids()
            if len(self._maps) > OPEN_FILES:
                self._maps.popitem(last=False)
        self._maps.move_to_end(file)
        return self._maps[file][place : place + length]
