"""A small corpus, a recipe over it, a browser, and the stages of `plugin/` as installed ones."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PLUGIN = Path(__file__).parent / "plugin"
sys.path.insert(0, str(PLUGIN))

import ingot_test_stages as fakes  # noqa: E402

from artifacts_schema.errors import IngotError  # noqa: E402
from artifacts_schema.store import Store  # noqa: E402
from flows.recipe.pipeline import Pipeline, Request  # noqa: E402
from flows.recipe.plan import PlannedStep  # noqa: E402
from stages.engine import protocol  # noqa: E402
from stages.engine.runner import run_stage  # noqa: E402

RECIPE = """\
name: demo
description: Two folders of text.
snapshots:
  crawl-A: {files: ["data/a/*.txt"]}
  crawl-B: {files: ["data/b/*.txt"]}
steps:
  read: {stage: lines, for_each: snapshots, inputs: {snapshot: each}}
  measure: {stage: measure, for_each: snapshots, inputs: {documents: read}}
  choose:
    stage: choose
    config: {least: {characters: 4}}
    inputs: {documents: read, signals: measure}
  pack: {stage: characters, inputs: {documents: choose}}
"""


@pytest.fixture(autouse=True)
def known_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stages of `plugin/`, known to this process for one test, and no toys of earlier tests."""
    toys = (fakes.Lines, fakes.Measure, fakes.Choose, fakes.Tokens, fakes.Naps)
    monkeypatch.setattr(protocol, "_registered", {stage.name: stage for stage in toys})


@pytest.fixture
def installed_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same stages by entry point, so that child processes find them too."""
    info = tmp_path / "site" / "ingot_test_stages-0.1.dist-info"
    info.mkdir(parents=True)
    info.joinpath("METADATA").write_text(
        "Metadata-Version: 2.1\nName: ingot-test-stages\nVersion: 0.1\n"
    )
    names = {
        "lines": "Lines",
        "measure": "Measure",
        "choose": "Choose",
        "characters": "Tokens",
        "wait": "Wait",
        "naps": "Naps",
    }
    lines = [f"{name} = ingot_test_stages:{cls}" for name, cls in names.items()]
    info.joinpath("entry_points.txt").write_text("[ingot.stages]\n" + "\n".join(lines) + "\n")
    monkeypatch.setenv("PYTHONPATH", f"{info.parent}:{PLUGIN}")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with two small crawls and `demo.yaml`."""
    folder = tmp_path / "project"
    for name, text in {
        "a/one.txt": "alpha\nbeta\n\npi\n",
        "a/two.txt": "gamma\n",
        "b/three.txt": "delta epsilon\nmu\n",
    }.items():
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "demo.yaml").write_text(RECIPE)
    return folder


@dataclass
class InlineJob:
    """A job that has run, in this process, by the time it is returned."""

    code: int
    words: str = ""
    told: list[dict[str, Any]] = field(default_factory=lambda: [{"type": "progress"}])
    stopped: bool = False

    def events(self) -> Sequence[dict[str, Any]]:
        told, self.told = self.told, []
        return told

    def poll(self) -> int | None:
        return self.code

    def stop(self) -> None:
        self.stopped = True

    def last_words(self) -> str:
        return self.words


def run_inline(store: Store, step: PlannedStep) -> InlineJob:
    """Dispatch that runs the step here and now."""
    assert step.spec is not None
    try:
        run_stage(store, step.spec, expected_key=step.key, force=step.force)
    except IngotError as error:
        return InlineJob(error.exit_code, f"error: {error}")
    except Exception as error:
        return InlineJob(1, f"error: {step.stage} failed: {type(error).__name__}: {error}")
    return InlineJob(0)


@pytest.fixture
def inline() -> Callable[[Store, PlannedStep], InlineJob]:
    """`run_inline`, for tests that cannot import this file."""
    return run_inline


@pytest.fixture
def open_pipeline(project: Path, store: Store) -> Callable[..., Pipeline]:
    """`open_pipeline(*overrides, **request)`: `demo.yaml` (or `recipe=`) in the test's store."""

    def bind(*overrides: str, **more: Any) -> Pipeline:
        recipe = str(more.pop("recipe", project / "demo.yaml"))
        return Pipeline.open(Request(recipe, store.url, overrides=overrides, **more))

    return bind


@pytest.fixture(scope="module")  # Its event loop must not outlive the module.
def browser() -> Iterator[Any]:
    """A headless Chromium; skips where there is none."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("needs Chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield opened
        opened.close()
