"""A source's documents in the files of each trainer.

- `megatron`: Megatron-LM's indexed dataset, version 1 (megatron/core/datasets/indexed_dataset.py).
  PREFIX.bin holds token ids end to end; PREFIX.idx a header, then for each sequence its number of
  tokens (int32) and its first byte (int64), then for each document its first sequence (int64) and
  the number of all sequences. Here a sequence is a document.
- `nanotron`: datatrove's `TokenizedFile` (datatrove/pipeline/tokens/tokenizer.py, 0.10.1).
  PREFIX/tokens.ds holds token ids end to end, tokens.ds.index the end of each document in tokens
  (uint64), tokens.ds.metadata three lines of text: tokenizer|bytes of a token, tokens, tokens for
  people.
- `mosaicml`: MosaicML Streaming's MDS, version 2 (streaming/base/format/mds/writer.py, 0.13.0).
  PREFIX/shard.NNNNN.mds holds the number of samples and their offsets in the file (uint32), the
  columns as JSON, then the samples; PREFIX/index.json lists the shards. A sample is so many tokens
  (int32, as LLM Foundry's own converter writes) of all documents laid end to end; the last one of
  a source is filled up with padding.

MosaicML's own writer is not used: its package cannot be installed beside the NumPy and
transformers that training needs, and writes a sample at a time.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from stages.engine import ShardOutput, ShardResult
from stages.export_tokens.config import Format
from stages.export_tokens.joining import BLOCK_ROWS, document_lengths, token_blocks
from stages.export_tokens.shards import Packed, Source, plain_bytes

SHARD_BYTES = 1 << 26
"""MDS: most bytes of a shard, MosaicML's default `size_limit`."""

_HEADER, _VERSION = b"MMIDIDX\x00\x00", 1
_MEGATRON_TYPES = {"uint16": ("uint16", 8), "uint32": ("int32", 4)}
"""Type of the ids in a shard → type in Megatron's files and its code there (`DType`), which has no
uint32: ids are less than 2^31."""
_PREFIXES = "", "k", "M", "G", "T", "P"


def write_source(
    source: Source, out: ShardOutput, *, format: Format, sample_length: int, tokenizer: str
) -> dict[str, Any]:
    """Write the files of one source; whole documents by file and place, then the joined ones.

    `tokenizer` is the digest of the tokenizer. Returns {"prefix", "dtype", "documents", "tokens",
    "bytes": of all files, "incomplete", "samples": those of `sample_length` tokens, or null}.
    """
    assert source.join is not None
    values = [result.value for result in (*source.scans, source.join)]
    counts = {name: sum(value[name] for value in values) for name in ("documents", "tokens")}
    prefix = quote(source.name, safe="")  # One name, whatever the source's is.
    writers: dict[Format, Callable[..., dict[str, Any]]] = {
        "megatron": _write_megatron,
        "nanotron": _write_nanotron,
        "mosaicml": _write_mosaicml,
    }
    written = writers[format](
        source, out, prefix, **counts, sample_length=sample_length, tokenizer=tokenizer
    )
    return {"prefix": prefix, **counts, "incomplete": source.join.value["incomplete"], **written}


def dataset_table(
    packed: Packed, written: Sequence[ShardResult], format: Format, sample_length: int
) -> dict[str, Any]:
    """The content of dataset.json.

    `data_path` is what follows Megatron's --data-path: for each source its tokens as weight, and
    its prefix, relative to the path of this folder. Megatron scales weights to a sum of one.
    """
    sources = {
        source.name: result.value for source, result in zip(packed.sources, written, strict=True)
    }
    weighed = [word for one in sources.values() for word in (str(one["tokens"]), one["prefix"])]
    return {
        "format": format,
        **{name: value for name, value in packed.facts.items() if name != "dtype"},
        "sample_length": sample_length if format == "mosaicml" else None,
        "sources": sources,
        "data_path": weighed if format == "megatron" else None,
    }


# Megatron-LM --------------------------------------------------------------------------------------


def _write_megatron(
    source: Source, out: ShardOutput, prefix: str, *, documents: int, **_: Any
) -> dict[str, Any]:
    name, code = _MEGATRON_TYPES[source.files[0].dtype]
    with out.open("dataset", f"{prefix}.bin") as tokens_file:
        for block in token_blocks(source):
            tokens_file.write(plain_bytes(block))
    with out.open("dataset", f"{prefix}.idx") as index_file:
        index_file.write(struct.pack("<9sQBQQ", _HEADER, _VERSION, code, documents, documents + 1))
        for part in _megatron_index(source, documents, np.dtype(name).itemsize):
            index_file.write(plain_bytes(part))
    return {"dtype": name, "bytes": tokens_file.bytes + index_file.bytes, "samples": None}


def _megatron_index(source: Source, documents: int, token_bytes: int) -> Iterator[NDArray[Any]]:
    """What follows the header of the index: lengths, first bytes, documents."""
    yield from document_lengths(source)
    begin = 0
    for lengths in document_lengths(source):
        ends = begin + np.cumsum(lengths, dtype="<i8") * token_bytes
        yield np.append(begin, ends[:-1]).astype("<i8")
        begin = int(ends[-1])
    for first in range(0, documents + 1, BLOCK_ROWS):
        yield np.arange(first, min(first + BLOCK_ROWS, documents + 1), dtype="<i8")


# datatrove and nanotron ---------------------------------------------------------------------------


def _write_nanotron(
    source: Source, out: ShardOutput, prefix: str, *, tokens: int, tokenizer: str, **_: Any
) -> dict[str, Any]:
    dtype = source.files[0].dtype
    with out.open("dataset", f"{prefix}/tokens.ds") as tokens_file:
        for block in token_blocks(source):
            tokens_file.write(plain_bytes(block))
    with out.open("dataset", f"{prefix}/tokens.ds.index") as index_file:
        end = 0
        for lengths in document_lengths(source):
            ends = end + np.cumsum(lengths, dtype="<u8")
            index_file.write(plain_bytes(ends.astype("<u8")))
            end = int(ends[-1])
    size = np.dtype(dtype).itemsize
    lines = f"{tokenizer[:12]}|{size}\n{tokens}\n{_in_words(tokens)}"
    with out.open("dataset", f"{prefix}/tokens.ds.metadata") as metadata_file:
        metadata_file.write(lines.encode())
    total = tokens_file.bytes + index_file.bytes + metadata_file.bytes
    return {"dtype": dtype, "bytes": total, "samples": None}


def _in_words(tokens: int) -> str:
    """A number of tokens in three digits, as `humanize.metric(tokens, unit="T")` writes it."""
    power = min((len(str(tokens)) - 1) // 3, len(_PREFIXES) - 1)
    scaled = tokens / 1000**power
    digits = max(0, 2 - (len(str(int(scaled))) - 1))
    return f"{scaled:.{digits}f} {_PREFIXES[power]}T"


# MosaicML Streaming -------------------------------------------------------------------------------


def _write_mosaicml(
    source: Source, out: ShardOutput, prefix: str, *, sample_length: int, **_: Any
) -> dict[str, Any]:
    columns = {
        "column_encodings": [f"ndarray:int32:{sample_length}"],
        "column_names": ["tokens"],
        "column_sizes": [4 * sample_length],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": SHARD_BYTES,
        "version": 2,
    }
    shards = list[dict[str, Any]]()
    total = 0
    for samples in _sample_blocks(source, sample_length, _samples_per_shard(columns)):
        name = f"shard.{len(shards):05d}.mds"
        with out.open("dataset", f"{prefix}/{name}") as file:
            head = mds_head(columns, len(samples))
            file.write(head)
            file.write(plain_bytes(samples))
        raw = {"basename": name, "bytes": file.bytes, "hashes": {}}
        shards.append({**columns, "raw_data": raw, "samples": len(samples), "zip_data": None})
        total += file.bytes
    with out.open("dataset", f"{prefix}/index.json") as index_file:
        index = {"shards": shards, "version": 2}
        index_file.write(json.dumps(index, sort_keys=True).encode())
    samples_written = sum(shard["samples"] for shard in shards)
    return {"dtype": "int32", "bytes": total + index_file.bytes, "samples": samples_written}


def mds_head(columns: dict[str, Any], samples: int) -> bytes:
    """What a shard begins with: number of samples, offsets in the file, columns as JSON."""
    text = json.dumps(columns, sort_keys=True).encode()
    size = columns["column_sizes"][0]
    first = 4 + 4 * (samples + 1) + len(text)
    offsets = first + size * np.arange(samples + 1, dtype=np.uint64)
    return struct.pack("<I", samples) + offsets.astype("<u4").tobytes() + text


def _samples_per_shard(columns: dict[str, Any]) -> int:
    """As many as fit into SHARD_BYTES, each with its offset; one at least."""
    size: int = columns["column_sizes"][0]
    return max(1, (SHARD_BYTES - len(mds_head(columns, 0))) // (size + 4))


def _sample_blocks(source: Source, length: int, most: int) -> Iterator[NDArray[Any]]:
    """Samples [at most `most`, length] of all documents end to end; the last one is filled up."""
    waiting, held = list[NDArray[Any]](), 0
    for block in token_blocks(source):
        waiting.append(block)
        held += len(block)
        while held >= most * length:
            tokens = np.concatenate(waiting)
            yield _as_samples(tokens[: most * length], length)
            waiting, held = [tokens[most * length :]], held - most * length
    if held:
        filler = np.full(-held % length, source.files[0].padding_id)
        yield _as_samples(np.concatenate([*waiting, filler]), length)


def _as_samples(tokens: NDArray[Any], length: int) -> NDArray[Any]:
    return tokens.astype("<i4").reshape(-1, length)
