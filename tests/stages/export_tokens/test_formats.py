"""The files of nanotron and MosaicML Streaming, to the byte and by their descriptions."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packed_by_hand import END, PADDING, Piece, Shards, concatenated, dealt, documents, expected

from artifacts_schema.errors import UsageError
from stages.export_tokens import formats

Make = Callable[..., Any]
ROWS = [[Piece("a" * 32, 0, (0, 9, END), 0), Piece("b" * 32, 0, (0, 8, 7, 6, END), 3)]]
BY_HAND = Shards(length=8, sources={"web": [ROWS]})


def read_mds(folder: Path) -> list[list[int]]:
    """The samples of a folder, written from MosaicML's description of the format alone."""
    index = json.loads((folder / "index.json").read_text())
    assert index["version"] == 2
    samples = []
    for number, shard in enumerate(index["shards"]):
        raw = (folder / shard["raw_data"]["basename"]).read_bytes()
        assert shard["raw_data"]["basename"] == f"shard.{number:05d}.mds"
        assert len(raw) == shard["raw_data"]["bytes"] <= shard["size_limit"]
        (count,) = struct.unpack_from("<I", raw)
        assert count == shard["samples"]
        offsets = struct.unpack_from(f"<{count + 1}I", raw, 4)
        columns = json.loads(raw[4 * (count + 2) : offsets[0]])
        assert columns == {name: shard[name] for name in columns}
        (name, kind, length) = columns["column_encodings"][0].split(":")
        assert (name, kind) == ("ndarray", "int32")
        assert columns["column_sizes"] == [4 * int(length)]
        samples += [
            np.frombuffer(raw[first:last], "<i4").tolist() for first, last in pairwise(offsets)
        ]
        assert offsets[-1] == len(raw)
    return samples


def test_nanotrons_files_are_datatroves_to_the_byte(export: Make, read_input: Make) -> None:
    manifest = export(BY_HAND, format="nanotron")
    found = read_input(manifest, "dataset")
    assert found.read_bytes("web/tokens.ds") == struct.pack("<8H", 0, 9, END, 0, 8, 7, 6, END)
    assert found.read_bytes("web/tokens.ds.index") == struct.pack("<2Q", 3, 8)
    assert found.read_bytes("web/tokens.ds.metadata") == b"abababababab|2\n8\n8.00 T"
    table = found.read_json("dataset.json")
    assert table["data_path"] is None
    assert table["sources"]["web"]["bytes"] == 16 + 16 + len(b"abababababab|2\n8\n8.00 T")


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_nanotron_reads_every_document(export: Make, read_input: Make, dtype: str) -> None:
    packed = dealt(concatenated(documents(60, 3, 50 if dtype == "uint16" else 100_000)), 4, seed=2)
    manifest = export(Shards(dtype=dtype, sources={"code/python": packed}), format="nanotron")
    found = read_input(manifest, "dataset")
    tokens = np.frombuffer(found.read_bytes("code%2Fpython/tokens.ds"), dtype).tolist()
    ends = np.frombuffer(found.read_bytes("code%2Fpython/tokens.ds.index"), "<u8").tolist()
    starts = [0, *ends[:-1]]
    read = [tokens[first:last] for first, last in zip(starts, ends, strict=True)]
    assert read == expected(packed)[0]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (7, "7.00 T"),
        (999, "999 T"),
        (1_234, "1.23 kT"),
        (61_234_567, "61.2 MT"),
        (10**12, "1.00 TT"),
    ],
)
def test_tokens_in_words(tokens: int, words: str) -> None:
    assert formats._in_words(tokens) == words


def test_mosaicmls_shard_is_its_writers_to_the_byte(export: Make, read_input: Make) -> None:
    """Three samples of 3 tokens; the last is filled up."""
    found = read_input(export(BY_HAND, format="mosaicml", sample_length=3), "dataset")
    columns = {
        "column_encodings": ["ndarray:int32:3"],
        "column_names": ["tokens"],
        "column_sizes": [12],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": 1 << 26,
        "version": 2,
    }
    text = json.dumps(columns, sort_keys=True).encode()
    first = 4 + 4 * 4 + len(text)
    head = struct.pack("<5I", 3, first, first + 12, first + 24, first + 36)
    samples = struct.pack("<9i", 0, 9, END, 0, 8, 7, 6, END, PADDING)
    assert found.read_bytes("web/shard.00000.mds") == head + text + samples
    raw = {"basename": "shard.00000.mds", "bytes": first + 36, "hashes": {}}
    shard = {**columns, "raw_data": raw, "samples": 3, "zip_data": None}
    assert found.read_json("web/index.json") == {"version": 2, "shards": [shard]}
    table = found.read_json("dataset.json")
    assert (table["sample_length"], table["sources"]["web"]["samples"]) == (3, 3)


@pytest.mark.parametrize("most", [1 << 26, 600])
def test_samples_are_all_documents_end_to_end(
    export: Make, read_input: Make, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(formats, "SHARD_BYTES", most)
    packed = dealt(concatenated(documents(60, 3)), 4, seed=2)
    manifest = export(Shards(sources={"web": packed}), format="mosaicml")
    found = read_input(manifest, "dataset")
    index = found.read_json("web/index.json")
    for shard in index["shards"]:
        found.local_path(f"web/{shard['raw_data']['basename']}")
    assert (len(index["shards"]) > 1) == (most == 600)
    samples = read_mds(found.local_path("web/index.json").parent)
    ids = list(chain(*expected(packed)[0]))
    filled = [*ids, *[PADDING] * (-len(ids) % 16)]
    assert list(chain(*samples)) == filled
    assert {len(sample) for sample in samples} == {16}


def test_a_length_of_samples_where_the_trainer_cuts_them(export: Make) -> None:
    with pytest.raises(UsageError, match="sample_length is for format mosaicml"):
        export(BY_HAND, format="nanotron", sample_length=8)


@pytest.mark.parametrize("format", ["nanotron", "mosaicml"])
def test_neither_workers_nor_a_kill_change_a_byte(
    export: Make, killed_at: Make, format: str
) -> None:
    sources = {name: dealt(concatenated(documents(40, n)), 5, n) for n, name in enumerate("abc")}
    with killed_at("shard recorded", 14):
        export(Shards(sources=sources), format=format)
    resumed = export(Shards(sources=sources), format=format)
    again = export(Shards(sources=sources), format=format, execution={"workers": 2}, force=True)
    assert again.outputs == resumed.outputs
    assert again.attempt == resumed.attempt
