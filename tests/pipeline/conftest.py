"""The whole pipeline, cut small, run once for all tests of this folder; tests work on copies."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.plan import PlannedStep, plan_spec
from flows.recipe.recipe import snapshot_entry
from flows.recipe.snapshots import take_snapshot
from stages.engine.protocol import stage_named
from stages.engine.runner import run_stage
from stages.engine.spec import StageSpec
from tests.stages.classify.conftest import save_model
from tests.stages.harness.conftest import DATA, FILES

__all__ = ["save_model"]

HERE = Path(__file__).parent
TINY = HERE / "tiny.yaml"
FURTHER = HERE / "further.yaml"
WITH_HARNESS = HERE / "with_harness.yaml"
FURTHER_STEPS = (
    "later_passages",
    "classify",
    "semantic_dedup",
    "score",
    "merge_checkpoints",
    "extend_vocabulary",
    "reference",
    "preference",
    "reward",
    "pack_preferences",
    "packed_preference",
    "prompt_tuning",
    "teacher",
    "student",
    "long_context",
    "memorisation",
    "harness",
    "import_scores",
    "judge",
    "export_gguf",
    "export_int8",
)
"""Steps of these recipes; only tests that name one of them run them."""
HARNESS_RESULTS = {
    "results": {"quiz": {"alias": "quiz", "acc,none": 0.6, "acc_stderr,none": 0.244949}},
    "versions": {"quiz": 1.0},
    "n-shot": {"quiz": 0},
    "n-samples": {"quiz": {"original": 5, "effective": 5}},
    "config": {"model": "hf", "model_args": {"pretrained": "org/model"}},
    "lm_eval_version": "0.4.13",
}
"""What lm-eval writes at the end of a run."""
LONGEST_SECONDS = 1_200
"""For a test and the whole run that its fixtures make first; a busy machine takes minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder that have no limit of their own a longer one."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LONGEST_SECONDS))


@dataclass(frozen=True)
class Ran:
    """A store in which the tiny recipe has been run to its end: a folder, or a URL."""

    folder: Path | str
    recipe: Path = TINY

    def pipeline(self, *overrides: str, **more: object) -> Pipeline:
        """The recipe bound to the store."""
        return Pipeline.open(
            Request(str(self.recipe), str(self.folder), overrides=overrides, **more)
        )  # type: ignore[arg-type]

    @property
    def store(self) -> Store:
        """The store."""
        return Store.open(str(self.folder))

    def step(self, instance: str) -> PlannedStep:
        """A step that stands; `merge_indexes`, which the recipe does not have, is made here."""
        if instance == "merge_indexes":
            return self._merge_indexes()
        return self.pipeline().plan().step(instance)

    def _merge_indexes(self) -> PlannedStep:
        """Indexes of the two crawls, the second made beside the first, and these merged."""
        store, config = self.store, {"passages": {"lines": True, "substrings": 50, "index": True}}
        indexes: dict[str, list[InputRef]] = {"dedup_index": [], "passage_index": []}
        read: list[InputRef] = []
        for name in ("web", "code"):
            documents = [store.reference(self.made(name), "documents")]
            inputs = {"documents": documents, "earlier_documents": read, **indexes}
            spec = StageSpec.make(stage_named("dedup"), config, inputs, {"workers": 1})
            manifest = run_stage(store, spec).manifest
            indexes = {
                role: [*earlier, store.reference(manifest, role)]
                for role, earlier in indexes.items()
            }
            read = [*read, *documents]
        spec = StageSpec.make(stage_named("merge_indexes"), {}, indexes, {"workers": 1})
        return replace(plan_spec(spec, ""), manifest=run_stage(store, spec).manifest)

    def made(self, instance: str) -> Manifest:
        """What a step made."""
        manifest = self.step(instance).manifest
        assert manifest is not None
        return manifest


@pytest.fixture(scope="session")
def ran(tiny_store: Path) -> Ran:
    """The tiny recipe, run by child processes as `ingot run` does. Not to be changed by a test."""
    return Ran(tiny_store)


@pytest.fixture
def place() -> str:
    """Where copies lie: `local`, or `s3` where a test is parametrized so."""
    return "local"


@pytest.fixture(scope="session")
def ran_further(
    tiny_store: Path, save_model: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Ran:
    """A copy of that store in which the further steps have been run too. Not to be changed."""
    root = tmp_path_factory.mktemp("further")
    recipe = WITH_HARNESS if find_spec("lm_eval") else FURTHER
    further = Ran(copy_store(tiny_store, root / "store"), recipe)
    results = {"results_2026-01-02T03-04-05.json": json.dumps(HARNESS_RESULTS)}
    for name, folder in {
        "encoder": save_model(("News", "Arts", "Sport")),
        "results": write_files(root / "results", results),
        "tasks": write_files(root / "tasks", {**FILES, **DATA}),
    }.items():
        files = snapshot_entry(name, {"root": str(folder), "files": ["**"]}, str(folder))
        further.store.set_ref(f"snapshots/{name}", *take_snapshot(further.store, files).name)
    assert execute(further.pipeline(), jobs=1).is_done
    return further


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """The folder, in which these files are."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def copy(ran: Ran, place: str, tmp_path: Path, request: pytest.FixtureRequest) -> Ran:
    """A copy of that store, to be changed freely. A store is its files: a bucket takes them too.

    For a test of a further step, a copy of the store in which these have run.
    """
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if parameters.get("instance") in FURTHER_STEPS:
        ran = request.getfixturevalue("ran_further")
    if place == "local":
        return replace(ran, folder=copy_store(ran.folder, tmp_path / "store"))
    return upload(ran, request.getfixturevalue("s3_url") + "/store")


def copy_store(source: Path | str, target: Path) -> Path:
    """A copy of a store in a folder. Payload is never changed in place: copies share it."""
    payload = str(Path(source) / "data") + os.sep

    def copy_file(source: str, target: str) -> None:
        (os.link if source.startswith(payload) else shutil.copy2)(source, target)

    shutil.copytree(source, target, copy_function=copy_file)
    return target


def upload(ran: Ran, url: str) -> Ran:
    """A copy of the store at the URL of an empty one."""
    copied = replace(ran, folder=url)
    source, target = ran.store.backend, copied.store.backend
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: target.replace(name, source.read(name)), source.files("")))
    return copied


@pytest.fixture(scope="module")
def in_bucket(
    ran: Ran,
    make_bucket: Callable[[Path, pytest.MonkeyPatch], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ran]:
    """A copy in a bucket for all tests of a file that only read."""
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("readers") / "node-cache"
        yield upload(ran, make_bucket(cache, patch) + "/store")


@pytest.fixture
def without(copy: Ran) -> Callable[[str], tuple[PlannedStep, Manifest]]:
    """`without(instance)`: forget what a step made; the step to run, and what it had made.

    The step runs its shards in its own process, where faults can strike them.
    """
    from artifacts_schema.store.gc import remove_artifact

    def forget(instance: str) -> tuple[PlannedStep, Manifest]:
        if instance == "harness":
            pytest.importorskip("lm_eval", reason="needs lm-eval: pip install 'ingot[harness]'")
        step = copy.step(instance)
        assert step.manifest is not None
        remove_artifact(copy.store, step.manifest)
        assert step.spec is not None
        spec = replace(step.spec, execution={**step.spec.execution, "workers": 1})
        return replace(step, spec=spec), step.manifest

    return forget
