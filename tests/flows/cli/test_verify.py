"""`ingot verify` and making again what it found; a store in which something cannot be read."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from artifacts_schema.errors import InputError
from artifacts_schema.store import layout
from artifacts_schema.store.verify import find_committed
from flows.recipe.execute import execute
from flows.recipe.repair import repair, sort_parents_first

STEPS = 6


@pytest.fixture
def made(open_pipeline, inline):
    """The demo recipe, run to its end."""
    pipeline = open_pipeline()
    execute(pipeline, dispatch=inline)
    return pipeline.plan()


@pytest.fixture
def spoil(store):
    """`spoil(step)`: flip a bit in the first file of what a step made; the file."""

    def flip(step):
        name = next(iter(step.manifest.outputs))
        file = step.manifest.outputs[name].files[0]
        path = Path(store.backend.full(store.payload(step.manifest, name, file.path)))
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
        return path

    return flip


def files(store):
    """Every file of the store but its run records, with its bytes."""
    root = Path(store.url)
    found = (path for path in root.rglob("*") if path.is_file())
    names = {path.relative_to(root).as_posix(): path for path in found}
    return {name: path.read_bytes() for name, path in names.items() if "runs/" not in name}


def test_what_verify_found_a_run_makes_again(ingot, made, spoil, open_pipeline, inline, store):
    path = spoil(made.step("choose"))
    assert open_pipeline().plan().is_done
    assert ingot("verify").exit_code == 1
    step = open_pipeline().plan().step("choose")
    assert (step.action, step.cause) == (
        "run",
        "corrupt: documents/00000.parquet: the file's bytes changed",
    )
    assert path.exists()
    assert execute(open_pipeline(), dispatch=inline).is_done
    assert not path.exists()
    assert ingot("verify").exit_code == 0
    assert store.backend.files("damage") == []


def test_a_run_that_cannot_make_it_again_leaves_what_was_there(ingot, made, spoil, store):
    spoil(made.step("choose"))
    assert ingot("verify").exit_code == 1
    before = files(store)

    def failing(store, step):
        class Job:
            events = staticmethod(list)
            poll = staticmethod(lambda: 1)
            last_words = staticmethod(lambda: "error: no memory")

        return Job()

    from artifacts_schema.errors import IngotError

    step = made.step("choose")
    with pytest.raises(IngotError, match="no memory"):
        repair(store, "choose", step.key, dispatch=failing)
    assert files(store) == before
    assert find_committed(store, "choose", step.key).damage is not None


def test_a_file_that_was_put_back_is_whole_again(ingot, made, spoil, open_pipeline):
    path = spoil(made.step("choose"))
    assert ingot("verify").exit_code == 1
    assert not open_pipeline().plan().is_done
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    assert ingot("verify").exit_code == 0
    assert open_pipeline().plan().is_done


@pytest.mark.full
def test_repair_makes_parents_first_and_all_is_as_before(
    ingot, made, spoil, store, installed_stages
):
    """A snapshot from where its files lie, two steps in a row, and a manifest that was edited."""
    before = {(m.stage, m.key): m.outputs for m in store.manifests()}
    for name in ("read[crawl-A]", "choose"):
        spoil(made.step(name))
    snapshot = next(m for m in store.manifests("snapshot"))
    store.backend.remove(store.payload(snapshot, "snapshot", "snapshot.json"))
    path = layout.manifest("characters", made.step("pack").key)
    value = json.loads(store.backend.read(path))
    value["config"] = {"unknown": 1}
    store.backend.replace(path, json.dumps(value).encode())
    result = ingot("verify", "--repair")
    assert result.exit_code == 0, result.output
    assert "4 made again" in result.stdout
    assert {(m.stage, m.key): m.outputs for m in store.manifests()} == before
    assert ingot("verify").exit_code == 0


@pytest.mark.parametrize("stage", ["choose", "snapshot"])
def test_a_damaged_artifact_that_was_collected_since_cannot_be_repaired(store, stage):
    name = (stage, "0" * 64)
    assert sort_parents_first(store, [name]) == [name]
    with pytest.raises(InputError, match="gone"):
        repair(store, *name)


def test_repair_says_what_it_cannot_make_again_and_leaves_it(ingot, made, store, project):
    snapshot = next(m for m in store.manifests("snapshot") if m.config == {"name": "crawl-A"})
    store.backend.remove(store.payload(snapshot, "snapshot", "snapshot.json"))
    shutil.rmtree(project / "data/a")
    path = layout.manifest("characters", made.step("pack").key)
    store.backend.replace(path, b"")
    result = ingot("verify", "--repair")
    assert result.exit_code == 1
    assert "snapshot" in result.stdout
    assert "characters" in result.stdout
    assert "2 artifacts" in result.stderr
    assert store.manifest("snapshot", snapshot.key) == snapshot
    assert store.backend.read(path) == b""


def test_run_verify_reads_what_it_would_reuse(ingot, made, spoil, project, installed_stages):
    spoil(made.step("choose"))
    recipe = project / "demo.yaml"
    assert "nothing to do" in ingot("run", recipe, "--no-prefect").stderr
    result = ingot("run", recipe, "--no-prefect", "--verify")
    assert result.exit_code == 0, result.output
    assert "the file's bytes changed" in result.stderr
    assert "1 to run" in result.stderr
    assert ingot("verify").exit_code == 0


def test_a_store_that_cannot_be_written_is_verified_all_the_same(ingot, made, spoil, monkeypatch):
    from artifacts_schema.errors import StoreError

    def refuse(*_):
        raise StoreError("the file system is read-only")

    spoil(made.step("choose"))
    monkeypatch.setattr("artifacts_schema.store.backend.LocalBackend.replace", refuse)
    result = ingot("verify")
    assert result.exit_code == 1
    assert "the file's bytes changed" in result.stdout
    assert "not recorded" in result.stderr


@pytest.fixture
def unreadable(made, store):
    """The manifest of `choose` is empty."""
    path = layout.manifest("choose", made.step("choose").key)
    store.backend.replace(path, b"")
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("ls",),
        ("trace", "demo/pack"),
        ("why", "one.txt#0"),
        ("lineage", "demo/pack"),
        ("lineage", "demo/read[crawl-A]", "--down"),
        ("gc",),
        ("gc", "--delete", "--min-age", "0"),
        ("show", "demo/pack"),
    ],
)
def test_one_unreadable_manifest_stops_no_command(ingot, unreadable, command, store):
    before = {name for name in files(store) if name.startswith(("data/", "artifacts/"))}
    result = ingot(*command)
    assert result.exit_code == 0, result.output
    told = result.stderr + result.stdout
    assert unreadable in told or "(damaged)" in told or command[0] in ("show", "lineage")
    assert before <= set(files(store))


def test_one_unreadable_name_stops_no_listing_and_every_collection(ingot, made, store):
    """A collection cannot know what it names."""
    store.backend.replace(layout.ref("demo/other"), b"{")
    for command in (("ls",), ("trace", "demo/pack"), ("why", "one.txt#0")):
        result = ingot(*command)
        assert result.exit_code == 0, result.output
        assert layout.ref("demo/other") in result.stderr
    result = ingot("gc", "--delete", "--min-age", "0")
    assert result.exit_code == 0
    assert layout.ref("demo/other") in result.stderr
    assert len(store.keys()) == 8


@pytest.mark.parametrize("hours", ["nan", "inf", "-1"])
def test_an_age_that_is_no_number_of_hours_is_refused(ingot, made, hours, store):
    before = files(store)
    assert ingot("gc", "--delete", "--min-age", hours).exit_code == 2
    assert files(store) == before


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "RECIPE"),
        ("run", "RECIPE", "--no-prefect"),
        ("verify",),
        ("verify", "--repair"),
        ("gc", "--delete", "--min-age", "0"),
        ("gc", "--delete", "--artifact", "demo/pack"),
        ("snapshot", "add", "notes", "RECIPE"),
    ],
)
def test_where_payload_is_not_mounted_a_command_says_so_and_changes_nothing(
    ingot, made, command, project, store
):
    (Path(store.url) / "data").rename(project / "elsewhere")
    before = files(store)
    result = ingot(*(project / "demo.yaml" if part == "RECIPE" else part for part in command))
    assert result.exit_code == 1
    assert "mount the volume" in result.stderr
    assert result.stderr.count("\n") == 1
    assert files(store) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="root drops the right to read everything")
def test_a_user_who_may_not_read_a_folder_loses_nothing(made, store, project, ingot):
    """The trial's case, by hand: chmod 000 on one output's folder, then plan and run."""
    import subprocess
    import sys

    step = made.step("choose")
    folder = Path(store.backend.full(store.payload(step.manifest, "documents")))
    before = files(store)
    folder.chmod(0)
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv of util-linux")
    code = "from flows.cli.main import main; main()"
    path = os.pathsep.join([str(Path(__file__).parent.parent / "plugin"), str(project)])
    for command in ("verify", "gc"):
        more = ["--delete", "--min-age", "0"] if command == "gc" else []
        ran = subprocess.run(
            [*drop, sys.executable, "-c", code, command, *more, "--store", store.url],
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False,
        )  # fmt: skip
        assert ran.returncode == 1, ran.stderr
        assert "permission denied" in ran.stderr
    folder.chmod(0o755)
    assert files(store) == before
