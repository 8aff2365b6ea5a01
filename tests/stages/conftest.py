"""A snapshot of given files, for the stages that read files from outside."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from artifacts_schema.config import Config
from artifacts_schema.manifest import Manifest
from stages.engine import Context, Stage


class _FilesConfig(Config):
    name: str
    files: dict[str, str]


class _Files(Stage):
    """Writes a snapshot that carries its files, as `sample` does."""

    name, version, reproducible = "files_for_test", 1, "bytes"
    outputs = {"files": "snapshot"}
    Config = _FilesConfig

    def run(self, context: Context) -> None:
        import hashlib

        listed = []
        for name, encoded in sorted(context.config.files.items()):
            data = base64.b64decode(encoded)
            context.write_bytes("files", f"files/{name}", data)
            sha256 = hashlib.sha256(data).hexdigest()
            listed.append({"name": name, "bytes": len(data), "sha256": sha256})
        context.write_json("files", "snapshot.json", {"name": context.config.name, "files": listed})


@pytest.fixture
def snapshot(run_stage: Callable[..., Manifest]) -> Callable[..., list[tuple[Manifest, str]]]:
    """`snapshot({"a.jsonl": b"…"}, name="trial")` → what a snapshot role of `run_stage` takes."""

    def make(files: dict[str, bytes], name: str = "trial") -> list[tuple[Manifest, str]]:
        encoded: dict[str, Any] = {n: base64.b64encode(data).decode() for n, data in files.items()}
        return [(run_stage(_Files, {"name": name, "files": encoded}), "files")]

    return make
