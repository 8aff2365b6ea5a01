"""What `tokens.py` measures Ingot's stages against: the libraries alone, on one thread.

    python tests/benchmarks/tokens_peers.py encode    DOCUMENTS TOKENIZER OUT
    python tests/benchmarks/tokens_peers.py gigatoken DOCUMENTS TOKENIZER OUT
    python tests/benchmarks/tokens_peers.py train     DOCUMENTS TRAINER OUT

DOCUMENTS is a folder of document tables. Prints JSON: CPU seconds (all threads of the process) of
each part, `documents`, `bytes` and `tokens`. The parts of encoding are `read` (the text column, to
what the library takes), `encode` (its call for a batch, and nothing else), `ids` (of its answer to
an array) and `write` (ids and lengths as Parquet that is not compressed: the cheapest form). Those
of training are `read` and `train`. TRAINER is a JSON file {vocab_size, min_frequency,
pre_tokenizer (as tokenizer.json has it), special_tokens}.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BATCH = 1_000
Told = Counter[str]


def timed(told: Told, part: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What `call` returns; its CPU seconds are added to `part`."""
    begin = time.process_time()
    made = call(*given, **named)
    told[part] += time.process_time() - begin  # type: ignore[assignment]
    return made


def batches(folder: Path, told: Told) -> Iterator[pa.Array]:
    """Texts, BATCH at a time."""
    for path in sorted(folder.rglob("*.parquet")):
        with pq.ParquetFile(path) as file:
            found = file.iter_batches(BATCH, columns=["text"], use_threads=False)
            while (batch := timed(told, "read", next, found, None)) is not None:
                texts = batch.column("text")
                told["documents"] += len(texts)
                told["bytes"] += pc.sum(pc.binary_length(texts)).as_py()
                yield texts


def write(out: pq.ParquetWriter, ids: np.ndarray, lengths: np.ndarray) -> None:
    """A row a document: its ids as bytes."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]) * ids.itemsize
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(ids)]
    column = pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)
    out.write_table(pa.table({"ids": column}))


def encode(folder: Path, tokenizer: Path, out: Path) -> Told:
    """`tokenizers`, by encode_batch_fast."""
    from tokenizers import Tokenizer

    library, told = Tokenizer.from_file(str(tokenizer)), Told()
    library.encode_special_tokens = True

    def ids_of(found: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        lists = [one.ids for one in found]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        return np.array([i for ids in lists for i in ids], np.uint16), lengths

    schema = pa.schema([("ids", pa.large_binary())])
    with pq.ParquetWriter(out, schema, compression="none", use_dictionary=False) as writer:
        for texts in batches(folder, told):
            given = timed(told, "read", texts.to_pylist)
            found = timed(
                told, "encode", library.encode_batch_fast, given, add_special_tokens=False
            )
            ids, lengths = timed(told, "ids", ids_of, found)
            timed(told, "write", write, writer, ids, lengths)
            told["tokens"] += len(ids)
    return told


def gigatoken(folder: Path, tokenizer: Path, out: Path) -> Told:
    """gigatoken, by encode_batch: Arrow's text in, one array of ids out."""
    import gigatoken as library

    loaded, told = library.Tokenizer.from_json(tokenizer.read_text()), Told()

    def ids_of(found: Any) -> tuple[np.ndarray, np.ndarray]:
        offsets = np.asarray(found.layout.offsets.data)
        ids = np.asarray(found.layout.content.data)[offsets[0] : offsets[-1]]
        return ids.astype(np.uint16), np.diff(offsets)

    schema = pa.schema([("ids", pa.large_binary())])
    with pq.ParquetWriter(out, schema, compression="none", use_dictionary=False) as writer:
        for texts in batches(folder, told):
            given = timed(told, "read", as_strings, texts)
            found = timed(told, "encode", loaded.encode_batch, given, parallel=False)
            ids, lengths = timed(told, "ids", ids_of, found)
            timed(told, "write", write, writer, ids, lengths)
            told["tokens"] += len(ids)
    return told


def as_strings(texts: pa.Array) -> Any:
    """Arrow's strings as Awkward's; nothing is copied but the offsets."""
    import awkward
    from awkward.contents import ListOffsetArray, NumpyArray
    from awkward.index import Index64

    _, offsets, data = texts.buffers()
    held = np.frombuffer(offsets, "<i4")[texts.offset : texts.offset + len(texts) + 1]
    characters = NumpyArray(np.frombuffer(data, np.uint8), parameters={"__array__": "char"})
    held = Index64(held.astype(np.int64))
    return awkward.Array(ListOffsetArray(held, characters, parameters={"__array__": "string"}))


def train(folder: Path, trainer: Path, out: Path) -> Told:
    """`tokenizers`, by train_from_iterator."""
    from tokenizers import Tokenizer, decoders, models, trainers
    from tokenizers.pre_tokenizers import ByteLevel

    settings, told = json.loads(trainer.read_text()), Told()
    library = Tokenizer(models.BPE())
    content = json.loads(library.to_str())
    content["pre_tokenizer"] = settings.pop("pre_tokenizer")
    library = Tokenizer.from_str(json.dumps(content))
    library.decoder = decoders.ByteLevel()
    bpe = trainers.BpeTrainer(
        **settings, initial_alphabet=ByteLevel.alphabet(), show_progress=False
    )
    given = [text for texts in batches(folder, told) for text in texts.to_pylist()]
    timed(told, "train", library.train_from_iterator, given, bpe, length=len(given))
    library.save(str(out))
    told["tokens"] = library.get_vocab_size()
    return told


if __name__ == "__main__":
    name, *paths = sys.argv[1:]
    parts = {"encode": encode, "gigatoken": gigatoken, "train": train}
    print(json.dumps(parts[name](*map(Path, paths))))
