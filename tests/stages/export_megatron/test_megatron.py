"""Megatron-LM's own reader finds every document in our files, token by token.

Runs megatron-core 0.16.1, whose Python INGOT_PEERS_MEGATRON names (`tests/peers/setup.sh`).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packed_by_hand import Shards, concatenated, dealt, documents, expected

Make = Callable[..., Any]

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        "INGOT_PEERS_MEGATRON" not in os.environ,
        reason="INGOT_PEERS_MEGATRON names no Python that has megatron-core (tests/peers/setup.sh)",
    ),
]


@pytest.mark.parametrize(
    ("dtype", "vocabulary", "name"), [("uint16", 50, "uint16"), ("uint32", 100_000, "int32")]
)
def test_megatron_reads_what_was_packed(
    export: Make, read_input: Make, tmp_path: Path, dtype: str, vocabulary: int, name: str
) -> None:
    web = dealt(concatenated(documents(200, 1, vocabulary)), 4, seed=1)
    code = dealt(concatenated(documents(30, 2, vocabulary)), 2, seed=1)
    manifest = export(Shards(dtype=dtype, sources={"web": web, "code/python": code}))
    found = read_input(manifest, "dataset")
    table = found.read_json("dataset.json")
    for source, packed in (("web", web), ("code/python", code)):
        given = table["sources"][source]
        found.local_path(f"{given['prefix']}.idx")
        prefix = found.local_path(f"{given['prefix']}.bin").with_name(given["prefix"])
        reader = Path(__file__).with_name("megatron_reader.py")
        asked = [os.environ["INGOT_PEERS_MEGATRON"], reader, prefix, tmp_path / "out"]
        subprocess.run([*asked, *table["data_path"]], check=True)
        for way in ("mapped", "read"):
            head, *read = map(json.loads, (tmp_path / f"out.{way}").read_text().splitlines())
            assert read == expected(packed)[0]
            assert head["dtype"] == name
            assert head["document_indices"] == list(range(len(read) + 1))
            weights = [table["sources"][one]["tokens"] for one in ("code/python", "web")]
            assert head["blend"] == [["code%2Fpython", "web"], weights]
