"""Documents made of given texts, committed as an artifact of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from artifacts_schema.config import Config
from artifacts_schema.identity import document_id
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from stages.engine import Context, Stage

SCHEMA = KINDS["documents"].tables["*.parquet"].arrow()


class GivenConfig(Config):
    snapshot: str = "given"
    shards: tuple[tuple[str, ...], ...] = ()


class Given(Stage):
    name, version, reproducible = "given_documents", 1, "bytes"
    outputs = {"documents": "documents"}
    Config = GivenConfig

    def run(self, context: Context) -> None:
        number = 0
        for index, texts in enumerate(context.config.shards):
            rows = []
            for text in texts:
                rows.append(document(text, number, context.config.snapshot))
                number += 1
            table = pa.Table.from_pylist(rows, schema=SCHEMA)
            context.write_table("documents", f"{index:05d}.parquet", table)


def document(text: str, number: int, snapshot: str) -> dict[str, Any]:
    """A row of a documents table."""
    return {
        "doc_id": document_id(snapshot, "file", number),
        "source": "web",
        "snapshot": snapshot,
        "text": text,
        "metadata": "{}",
        "origin_file": "file",
        "origin_offset": number,
        "origin_length": 1,
    }


@pytest.fixture
def given_documents(run_stage: Callable[..., Manifest]) -> Callable[..., Manifest]:
    """`given_documents([[text, …], …], snapshot="given")`: one shard for each inner list."""

    def make(shards: Sequence[Sequence[str]], snapshot: str = "given") -> Manifest:
        return run_stage(Given, {"snapshot": snapshot, "shards": shards})

    return make
