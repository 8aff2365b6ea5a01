"""What tests of packing share: a corpus of made words, a tokenizer for it, a packing of both."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from stages.pack.stage import Pack
from stages.tokenizer.training import train, transformers_config

WORDS = ["the", "a", "cat", "sat", "dog", "ran", "naïve", "你好", "Привет", "12", "345", "def"]
LENGTH = 64
FIRST = 16
"""The first id of an ordinary token: before it come eight with a role and eight reserved ones."""


def made(documents: int = 300, seed: int = 0) -> list[list[dict[str, Any]]]:
    """Two shards of documents of log-normal lengths, of two sources."""
    draw = random.Random(seed)
    rows = [
        {
            "doc_id": f"{seed * 10**9 + i:032x}",
            "source": draw.choice(["web", "code/python"]),
            "language": draw.choice(["en", None]),
            "text": " ".join(draw.choices(WORDS, k=int(draw.lognormvariate(3, 1)) + 1)),
        }
        for i in range(documents)
    ]
    return [rows[: documents // 2], rows[documents // 2 :]]


@pytest.fixture(scope="session")
def corpus() -> Callable[..., list[list[dict[str, Any]]]]:
    """`corpus(documents=300, seed=0)` → two shards of rows."""
    return made


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """A tokenizer of the corpus."""
    texts = (row["text"] for shard in made() for row in shard)
    return train(texts, vocabulary_size=390, pre_tokenizer="llama-bpe", min_frequency=2)


def files(tokenizer: Tokenizer, **named: Any) -> dict[str, Any]:
    """The three files of a tokenizer; `named` changes what tokenizer_config.json says."""
    size = tokenizer.get_vocab_size()
    config = {**transformers_config("llama-bpe"), **named}
    return {
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": {k: v for k, v in config.items() if v is not None},
        "training.json": {
            "vocabulary_size": size,
            "padded_vocabulary_size": -(-size // 64) * 64,
        },
    }


@pytest.fixture(scope="session")
def tokenizer_files() -> Callable[..., dict[str, Any]]:
    """`tokenizer_files(tokenizer, bos_token=None)` → what a tokenizer artifact holds."""
    return files


@pytest.fixture
def pack(run_stage, given, make_documents, tokenizer):
    """`pack(shards of rows, execution, force, **config)` → the stage's manifest.

    Rows may be several inputs' where `several` is true; `files` are those of another tokenizer.
    """

    own = files(tokenizer)

    def run(shards, execution=None, force=False, several=False, files=own, **config):
        made = [make_documents(one) for one in (shards if several else [shards])]
        inputs = {"documents": made, "tokenizer": [given("tokenizer", files)]}
        config = {"sequence_length": LENGTH, "held_out_share": 0.1, **config}
        return run_stage(Pack, config, inputs, execution, force=force)

    return run


def rows_of(found) -> dict[str, np.ndarray]:
    """By file the sequences of an output, [sequences, sequence_length]."""
    table = found.read_json("shards.json")
    return {
        shard["file"]: np.frombuffer(found.read_bytes(shard["file"]), dtype=table["dtype"]).reshape(
            shard["sequences"], table["sequence_length"]
        )
        for source in table["sources"].values()
        for shard in source["shards"]
    }


def pieces_of(found) -> dict[str, dict[int, list[int]]]:
    """doc_id → {first token of piece: ids}, read back through the index."""
    documents: dict[str, dict[int, list[int]]] = {}
    for file, rows in rows_of(found).items():
        index = found.read_table(file.replace(".tokens", ".index.parquet"))
        for piece in index.to_pylist():
            place = slice(piece["start"], piece["start"] + piece["length"])
            tokens = rows[piece["sequence"], place].tolist()
            start = piece["document_start"]
            assert start not in documents.setdefault(piece["doc_id"], {})
            documents[piece["doc_id"]][start] = tokens
    return documents


def joined_of(found) -> dict[str, list[int]]:
    """doc_id → all its ids; the pieces must follow each other without gap."""
    whole = {}
    for name, parts in pieces_of(found).items():
        tokens: list[int] = []
        for start in sorted(parts):
            assert start == len(tokens)
            tokens += parts[start]
        whole[name] = tokens
    return whole


@pytest.fixture
def read_rows(read_input):
    """`read_rows(manifest, split)` → by file its sequences."""
    return lambda manifest, split: rows_of(read_input(manifest, split))


@pytest.fixture
def read_excluded(read_input):
    """`read_excluded(manifest)` → the rows of `excluded`, by document and reason."""

    def read(manifest):
        found = read_input(manifest, "excluded")
        rows = [
            row for path in found.paths("*.parquet") for row in found.read_table(path).to_pylist()
        ]
        return sorted(rows, key=lambda row: (row["doc_id"], row["reason"]))

    return read


@pytest.fixture
def read_documents(read_input):
    """`read_documents(manifest, split)` → the ids of each document, put together again."""
    return lambda manifest, split: joined_of(read_input(manifest, split))


@pytest.fixture
def read_pieces(read_input):
    """`read_pieces(manifest, split)` → the pieces of each document, by their first token."""
    return lambda manifest, split: pieces_of(read_input(manifest, split))


@pytest.fixture
def read_shards(read_input):
    """`read_shards(manifest, split)` → shards.json."""
    return lambda manifest, split: json.loads(read_input(manifest, split).read_bytes("shards.json"))
