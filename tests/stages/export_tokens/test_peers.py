"""Each trainer's own reader finds in our files what was packed, token by token.

Megatron-LM's (megatron-core 0.16.1), datatrove's (0.10.1, which nanotron reads with) and MosaicML
Streaming's (0.13.0), by the Pythons that `tests/peers/setup.sh` makes and names.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from packed_by_hand import PADDING, Shards, concatenated, dealt, documents, expected

Make = Callable[..., Any]

pytestmark = pytest.mark.full
TYPES = [("uint16", 50, "uint16"), ("uint32", 100_000, "int32")]


def peer(variable: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        variable not in os.environ,
        reason=f"{variable} names no Python that has the reader (tests/peers/setup.sh)",
    )


def read(variable: str, name: str, place: Path, out: Path, *arguments: object) -> list[Any]:
    reader = Path(__file__).with_name("peer_reader.py")
    subprocess.run(
        [os.environ[variable], reader, name, place, out, *map(str, arguments)], check=True
    )
    return [json.loads(line) for line in out.read_text().splitlines()]


def packed_sources(vocabulary: int) -> dict[str, Any]:
    return {
        "web": dealt(concatenated(documents(200, 1, vocabulary)), 4, seed=1),
        "code/python": dealt(concatenated(documents(30, 2, vocabulary)), 2, seed=1),
    }


@peer("INGOT_PEERS_MEGATRON")
@pytest.mark.parametrize(("dtype", "vocabulary", "name"), TYPES)
def test_megatron_reads_what_was_packed(
    export: Make, read_input: Make, tmp_path: Path, dtype: str, vocabulary: int, name: str
) -> None:
    sources = packed_sources(vocabulary)
    dataset = read_input(export(Shards(dtype=dtype, sources=sources)), "dataset")
    table = dataset.read_json("dataset.json")
    for source, packed in sources.items():
        prefix = table["sources"][source]["prefix"]
        dataset.local_path(f"{prefix}.idx")
        place = dataset.local_path(f"{prefix}.bin").with_name(prefix)
        head, *rows = read(
            "INGOT_PEERS_MEGATRON", "megatron", place, tmp_path / "out", *table["data_path"]
        )
        assert rows == expected(packed)[0]
        assert head["dtype"] == name
        assert head["document_indices"] == list(range(len(rows) + 1))
        weights = [table["sources"][one]["tokens"] for one in ("code/python", "web")]
        assert head["blend"] == [["code%2Fpython", "web"], weights]


@peer("INGOT_PEERS")
@pytest.mark.parametrize(("dtype", "vocabulary", "_name"), TYPES)
def test_nanotrons_dataset_reads_what_was_packed(
    export: Make, read_input: Make, tmp_path: Path, dtype: str, vocabulary: int, _name: str
) -> None:
    """Rows of 32 tokens, with the position of each token in its document."""
    sources = packed_sources(vocabulary)
    manifest = export(Shards(dtype=dtype, sources=sources), format="nanotron")
    dataset = read_input(manifest, "dataset")
    for source, packed in sources.items():
        prefix = dataset.read_json("dataset.json")["sources"][source]["prefix"]
        dataset.local_path(f"{prefix}/tokens.ds.index")
        folder = dataset.local_path(f"{prefix}/tokens.ds").parent
        size = np.dtype(dtype).itemsize
        packages = Path(torch.__file__).parents[1]
        options = (31, size, packages)
        head, *rows = read("INGOT_PEERS", "nanotron", folder, tmp_path / "out", *options)
        whole = expected(packed)[0]
        ids = list(chain(*whole))
        assert head["rows"] == len(ids) // 32
        assert list(chain(*(row["input_ids"] for row in rows))) == ids[: 32 * head["rows"]]
        positions = list(chain(*(range(len(document)) for document in whole)))
        for number, row in enumerate(rows):
            # datatrove counts from the first token of a row, also within a document.
            first = positions[32 * number]
            wanted = positions[32 * number : 32 * (number + 1)]
            length = next((n for n, one in enumerate(wanted) if n and not one), 32)
            assert row["positions"] == [
                one - first if n < length else one for n, one in enumerate(wanted)
            ]


@peer("INGOT_PEERS_STREAMING")
@pytest.mark.parametrize(("dtype", "vocabulary", "_name"), TYPES)
def test_mosaicml_streaming_reads_what_was_packed(
    export: Make, read_input: Make, tmp_path: Path, dtype: str, vocabulary: int, _name: str
) -> None:
    sources = packed_sources(vocabulary)
    manifest = export(Shards(dtype=dtype, sources=sources), format="mosaicml", sample_length=24)
    dataset = read_input(manifest, "dataset")
    for source, packed in sources.items():
        prefix = dataset.read_json("dataset.json")["sources"][source]["prefix"]
        dataset.local_path(f"{prefix}/shard.00000.mds")
        folder = dataset.local_path(f"{prefix}/index.json").parent
        head, *rows = read("INGOT_PEERS_STREAMING", "mosaicml", folder, tmp_path / "out")
        ids = list(chain(*expected(packed)[0]))
        filled = [*ids, *[PADDING] * (-len(ids) % 24)]
        assert (head["rows"], list(chain(*rows))) == (len(filled) // 24, filled)
