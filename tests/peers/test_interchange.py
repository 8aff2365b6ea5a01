"""What Ingot writes for other tools is what they read, by their own libraries.

INGOT_PEERS_OPENLINEAGE and INGOT_PEERS_MLCROISSANT name the Pythons that have them (`setup.sh`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from artifacts_schema.store import Store
from flows.cli.main import main
from stages.engine import Input

pytestmark = pytest.mark.full


@pytest.fixture
def store(tiny_store: Path) -> Store:
    return Store.open(str(tiny_store), create=False)


def ask(variable: str, script: str, file: Path) -> str:
    """What a script says of a file, under the Python that a variable names."""
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"needs {variable}: sh tests/peers/setup.sh FOLDER")
    program = Path(__file__).with_name(script)
    result = subprocess.run(
        [python, str(program), str(file)], capture_output=True, text=True, timeout=240
    )
    assert result.returncode == 0, result.stderr[-4_000:]
    return result.stdout


def run(store: Store, *words: str) -> None:
    result = CliRunner().invoke(main, [*words, "--store", store.url])
    assert result.exit_code == 0, result.output


def test_openlineage_builds_every_event_and_facet_and_writes_it_as_it_was(store, tmp_path):
    file = tmp_path / "events.ndjson"
    run(store, "lineage", "tiny/export", "--openlineage", str(file))
    text = file.read_text()
    events, facets = ask("INGOT_PEERS_OPENLINEAGE", "openlineage_events.py", file).split()
    assert int(events) == text.count("\n") > 40  # START and COMPLETE of 24 steps and the run.
    assert int(facets) == text.count('"_schemaURL"') > 500


@pytest.mark.parametrize("ref", ["tiny/filter", "tiny/conversations", "tiny/pack"])
def test_mlcroissant_accepts_the_metadata_and_loads_every_row(store, tmp_path, ref):
    manifest, _ = store.resolve(ref)
    names = [name for name, output in manifest.outputs.items()]
    for name in names:
        folder = store.backend.full(store.payload(manifest, name))
        if Path(folder).is_dir():
            shutil.copytree(folder, tmp_path / name)
    file = tmp_path / "croissant.json"
    run(store, "croissant", ref, "--output", str(file))
    answer = json.loads(ask("INGOT_PEERS_MLCROISSANT", "croissant_rows.py", file))
    assert answer["errors"] == []
    asked_for = ("citeAs", "datePublished", "license")
    assert len(answer["warnings"]) == 3
    assert all(any(name in line for name in asked_for) for line in answer["warnings"])
    assert answer["records"]
    for name, records in answer["records"].items():
        assert [values(name, record) for record in records] == rows(store, manifest, name)


def values(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """A record by the names of its columns; messages by their roles and contents."""
    plain = {key.removeprefix(f"{name}/"): value for key, value in record.items()}
    for key, value in plain.items():
        if key == "messages":
            plain[key] = [
                (one[f"{name}/{key}/role"], one[f"{name}/{key}/content"]) for one in value
            ]
    return plain


def rows(store: Store, manifest: Any, name: str) -> list[dict[str, Any]]:
    """The rows as Ingot reads them."""
    content = [
        row
        for shard in Input.from_manifest(store, manifest, name).shards()
        for row in shard.read().to_pylist()
    ]
    for row in content:
        if "messages" in row:
            row["messages"] = [(one["role"], one["content"]) for one in row["messages"]]
    return content
