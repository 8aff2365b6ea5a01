"""A documents artifact to measure, committed through the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from artifacts_schema.identity import document_id
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from stages.engine import Context, Stage


class MakeDocuments(Stage):
    """Writes given texts, `rows` to a shard."""

    name, version, reproducible = "make_documents", 1, "bytes"
    outputs = {"documents": "documents"}
    shards: Sequence[Sequence[str]] = ()

    def run(self, context: Context) -> None:
        schema = KINDS["documents"].tables["*.parquet"].arrow()
        for number, texts in enumerate(self.shards):
            rows = [
                {
                    "doc_id": document_id("made", f"{number}", row),
                    "source": "web",
                    "snapshot": "made",
                    "text": text,
                    "metadata": "{}",
                    "origin_file": f"{number}",
                    "origin_offset": row,
                    "origin_length": len(text),
                }
                for row, text in enumerate(texts)
            ]
            table = pa.Table.from_pylist(rows, schema=schema)
            context.write_table("documents", f"{number:05d}.parquet", table)


@pytest.fixture
def make_documents(run_stage: Callable[..., Manifest]) -> Callable[..., Manifest]:
    """`make_documents([[text, …], …])` → the manifest of documents with those shards."""

    def make(shards: Sequence[Sequence[str]]) -> Manifest:
        made: Any = type("MakeDocuments", (MakeDocuments,), {"shards": shards})
        return run_stage(made, {})

    return make
