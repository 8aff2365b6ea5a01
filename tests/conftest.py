"""What every test may use: a store, a way to run a stage in it, real data if it is there."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest  # noqa: E402

from artifacts_schema.config import Config  # noqa: E402
from artifacts_schema.manifest import Manifest  # noqa: E402
from artifacts_schema.store import Store  # noqa: E402
from stages.engine import Context, Input, Stage  # noqa: E402
from stages.engine.registry import register  # noqa: E402
from stages.engine.runner import run_stage as run_spec  # noqa: E402
from stages.engine.spec import StageSpec  # noqa: E402

Inputs = dict[str, list[tuple[Manifest, str]]]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store in a folder of this test."""
    return Store.open(str(tmp_path / "store"))


@pytest.fixture
def run_stage(store: Store) -> Callable[..., Manifest]:
    """`run_stage(StageClass, config, inputs, execution)` → the manifest it committed."""

    def run(
        stage: Any,
        config: dict[str, Any] | None = None,
        inputs: Inputs | None = None,
        execution: dict[str, Any] | None = None,
        **options: Any,
    ) -> Manifest:
        register(stage)
        references = {
            role: [store.reference(manifest, output) for manifest, output in given]
            for role, given in (inputs or {}).items()
        }
        spec = StageSpec.make(stage, config, references, {"workers": 1, **(execution or {})})
        return run_spec(store, spec, **options).manifest

    return run


@pytest.fixture
def read_input(store: Store) -> Callable[[Manifest, str], Input]:
    """`read_input(manifest, output)` → the output as a stage sees it."""
    return lambda manifest, output: Input.of(store, manifest, output)


@pytest.fixture
def read_table(store: Store) -> Callable[..., Any]:
    """`read_table(manifest, output, path=None)` → one table, or all of the output's joined."""

    def read(manifest: Manifest, output: str, path: str | None = None) -> Any:
        import pyarrow as pa

        found = Input.of(store, manifest, output)
        paths = [path] if path else found.paths("*.parquet")
        return pa.concat_tables([found.read_table(p) for p in paths])

    return read


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data beside the project; skips where it is absent."""
    folder = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the shared data folder beside the project")
    return folder


class _FilesConfig(Config):
    name: str
    files: dict[str, str]


class _Files(Stage):
    """Writes a snapshot that carries its files, as `sample` does."""

    name, version, reproducible = "files_for_test", 1, "bytes"
    outputs = {"files": "snapshot"}
    Config = _FilesConfig

    def run(self, context: Context) -> None:
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
