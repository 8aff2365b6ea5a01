"""Documents and benchmarks artifacts, committed through the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from artifacts_schema.identity import document_id
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from stages.engine import Context, Stage

Make = Callable[..., Manifest]


class MakeDocuments(Stage):
    """Writes given texts, a list of them to a shard."""

    name, version, reproducible = "make_documents", 1, "bytes"
    outputs = {"documents": "documents"}
    shards: Sequence[Sequence[str]] = ()

    def run(self, context: Context) -> None:
        schema = KINDS["documents"].tables["*.parquet"].arrow()
        for number, texts in enumerate(self.shards):
            rows = [
                {
                    "doc_id": document_id("made", f"{self.name}{number}", row),
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


class MakeBenchmarks(Stage):
    """Writes given items: (item_id, prompt, choices, answer)."""

    name, version, reproducible = "make_benchmarks", 1, "bytes"
    outputs = {"benchmarks": "benchmarks"}
    items: Sequence[tuple[str, str, list[str], int | None]] = ()

    def run(self, context: Context) -> None:
        rows = [
            {
                "benchmark": "exam",
                "item_id": item_id,
                "form": "multiple_choice" if choices else "text",
                "prompt": prompt,
                "choices": choices,
                "answer": answer,
                "metadata": "{}",
            }
            for item_id, prompt, choices, answer in self.items
        ]
        schema = KINDS["benchmarks"].tables["*.parquet"].arrow()
        table = pa.Table.from_pylist(rows, schema=schema)
        context.write_table("benchmarks", "00000.parquet", table)


@pytest.fixture
def make_documents(run_stage: Make) -> Make:
    """`make_documents([[text, …], …], name=…)` → documents with those shards."""

    def make(shards: Sequence[Sequence[str]], name: str = "make_documents") -> Manifest:
        made: Any = type("Made", (MakeDocuments,), {"shards": shards, "name": name})
        return run_stage(made, {})

    return make


@pytest.fixture
def make_benchmarks(run_stage: Make) -> Make:
    """`make_benchmarks([(item_id, prompt, choices, answer), …])` → a benchmarks artifact."""

    def make(items: Sequence[tuple[str, str, list[str], int | None]]) -> Manifest:
        made: Any = type("Made", (MakeBenchmarks,), {"items": items})
        return run_stage(made, {})

    return make
