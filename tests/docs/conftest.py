"""What the tests of docs/ share: the pages, and the package that `own-stage.md` prints."""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs_pages import DOCS, blocks

from stages.engine import protocol
from stages.engine.protocol import Stage

DISTRIBUTION = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `own-stage.md`, and in `site/` the metadata that pip would write."""
    folder = tmp_path_factory.mktemp("plugin")
    for block in blocks(DOCS / "how-to" / "own-stage.md"):
        if block.file is not None:
            path = folder / block.file.partition("/")[2]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    name = f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info = folder / "site" / name
    info.mkdir(parents=True)
    (info / "METADATA").write_text(DISTRIBUTION.format(**project))
    lines = [f"{name} = {value}" for name, value in project["entry-points"][protocol.GROUP].items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{protocol.GROUP}]", *lines, ""]))
    return folder


@pytest.fixture
def own_stage(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Stage]]:
    """The stage of the page, known to this process for one test."""
    monkeypatch.syspath_prepend(str(plugin))
    stage: type[Stage] = importlib.import_module("ingot_blocklist.stage").Blocklist
    monkeypatch.setitem(protocol._registered, stage.name, stage)
    yield stage
    for name in [name for name in sys.modules if name.split(".")[0] == "ingot_blocklist"]:
        del sys.modules[name]
