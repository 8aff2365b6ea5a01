"""Artifacts of any kind made of given rows, for a stage that joins many of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from artifacts_schema.config import Config
from artifacts_schema.kinds import KINDS, Column
from artifacts_schema.manifest import Manifest
from stages.engine import Context, Stage

Rows = Sequence[Mapping[str, Any]]


class GivenConfig(Config):
    tables: dict[str, list[dict[str, Any]]] = {}
    files: dict[str, Any] = {}


def write_given(self: Stage, context: Context) -> None:
    kind = KINDS[context.attempt.kinds["given"]]
    for path, rows in context.config.tables.items():
        table = kind.table_for(path)
        assert table is not None
        known = {column.name for column in table.columns}
        extra = [Column(n, "float64?", "") for n in (rows[0] if rows else {}) if n not in known]
        schema = table.arrow(extra if table.open else [])
        context.write_table("given", path, pa.Table.from_pylist(rows, schema=schema))
    for path, value in context.config.files.items():
        context.write_json("given", path, value)


@pytest.fixture
def given(run_stage: Callable[..., Manifest]) -> Callable[..., Manifest]:
    """`given(kind, {path: rows}, {path: JSON})` → a manifest with the output `given`."""

    def make(
        kind: str, tables: Mapping[str, Rows], files: Mapping[str, Any] | None = None
    ) -> Manifest:
        members = {
            "name": f"given_{kind}",
            "version": 1,
            "reproducible": "bytes",
            "outputs": {"given": kind},
            "Config": GivenConfig,
            "run": write_given,
        }
        stage = type(f"Given{kind.title()}", (Stage,), members)
        return run_stage(stage, {"tables": tables, "files": files or {}})

    return make


def row(doc_id: str, text: str = "some text", source: str = "web") -> dict[str, Any]:
    """A row of a documents table."""
    return {
        "doc_id": doc_id,
        "source": source,
        "snapshot": "given",
        "url": f"https://example.org/{doc_id}",
        "text": text,
        "metadata": "{}",
        "origin_file": "file",
        "origin_offset": 0,
        "origin_length": 1,
    }


@pytest.fixture
def document() -> Callable[..., dict[str, Any]]:
    """`document(doc_id, text, source)` → a row of a documents table."""
    return row
