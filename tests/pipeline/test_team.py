"""Two users of one group work in one store: each goes on with what the other began, to the same
bytes, and everything in the store stays usable for both. Their umasks are 022 and 077."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from users import SECONDS

from artifacts_schema.store import Store, layout
from artifacts_schema.store.gc import remove_artifact
from artifacts_schema.store.sharing import check_modes, make_shared_store
from flows.recipe.pipeline import Pipeline, Request

TINY = str(Path(__file__).parent / "tiny.yaml")
STEP = ("-m", "user_program")


@pytest.fixture(scope="module")
def place(team):
    """The URL of a store that the team shares; one for all tests, which use different steps."""
    folder = Path(tempfile.mkdtemp(dir=team.folder))
    folder.chmod(0o777)
    team.bob.run("store", "init", str(folder / "store"), "--group", team.name)
    yield str(folder / "store")
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def alone(team):
    """The URL of a store of alice alone: what the steps make when nobody interferes."""
    url = str(team.alice.home / "store")
    team.alice.run("store", "init", url)
    return url


@pytest.fixture(scope="module")
def expected(team, alone):
    """`expected(step)`: what alice alone makes of it."""
    return lambda step: team.alice.python_run(*STEP, alone, step).split(maxsplit=1)[1]


def killed(user, url, step, point):
    """Run a step as a user until the point, where it dies."""
    process = user.start([user.python, *STEP, url, step, point])
    printed, _ = process.communicate(timeout=SECONDS)
    assert (process.returncode, printed) == (-signal.SIGKILL, f"at {point}\n")


def all_shared(url):
    """Whether every folder and file is the group's, while nobody writes."""
    return check_modes(Store.open(url)) == []


def key_of(url, step):
    return Pipeline.open(Request(TINY, url)).plan().step(step).key


def test_two_users_start_one_key_and_one_waits(team, place, expected):
    go_on = team.folder / f"go-{secrets.token_hex(4)}"
    bob = team.bob.start([team.bob.python, *STEP, place, "sample", "lease taken", str(go_on)])
    assert bob.stdout.readline() == "at lease taken\n"
    alice = team.alice.start([team.alice.python, *STEP, place, "sample"])
    log = Path(place) / layout.work(key_of(place, "sample"), "log.txt")
    while "another run (process" not in log.read_text():
        assert alice.poll() is None, alice.stdout.read()
        time.sleep(0.1)
    go_on.touch()
    made, reused = bob.communicate(timeout=SECONDS)[0], alice.communicate(timeout=SECONDS)[0]
    assert (bob.returncode, alice.returncode) == (0, 0), made + reused
    assert made == f"made {expected('sample')}"
    assert reused == f"reused {expected('sample')}"
    assert all_shared(place)


def test_each_goes_on_with_what_the_other_was_killed_at(team, place, expected):
    """A kill leaves a lease, a log, shards and an attempt: the next run is another user's."""
    team.alice.python_run(*STEP, place, "sample")
    for user, point in (
        (team.bob, "state taken over"), (team.alice, "shard recorded"),
        (team.bob, "payload written"),
    ):  # fmt: skip
        killed(user, place, "web", point)
        assert all_shared(place)
    work = Path(place) / layout.work(key_of(place, "web"))
    assert {path.stat().st_uid for path in work.rglob("*")} == {team.alice.id, team.bob.id}
    assert team.alice.python_run(*STEP, place, "web") == f"made {expected('web')}"
    assert all_shared(place)


def test_one_removes_the_garbage_of_the_other(team, place):
    """Of runs that were killed: their attempts, shards and logs."""
    team.alice.python_run(*STEP, place, "sample")
    key = key_of(place, "conversations")
    left = [Path(place, "data", "conversations", key), Path(place, "work", key)]
    for one, other in ((team.alice, team.bob), (team.bob, team.alice)):
        killed(one, place, "conversations", "payload written")
        assert all(path.exists() for path in left)
        other.run("gc", "--delete", "--work", "--store", place)
        assert not any(path.exists() for path in left)
    assert all_shared(place)


@pytest.mark.full
def test_names_move_and_lists_grow_across_users(team, place):
    keys = []
    for number, user in enumerate((team.alice, team.bob)):
        file = user.home / "notes.txt"
        file.write_text(f"note {number}\n")
        os.chown(file, user.id, -1)
        user.run("snapshot", "add", "notes", str(file), "--store", place)
        keys.append(Store.open(place).ref("snapshots/notes").key)
    assert keys[0] != keys[1]

    for step in ("sample", "web"):
        team.alice.python_run(*STEP, place, step)
    ids = document_ids(Store.open(place), key_of(place, "web"))
    for count, (user, one) in enumerate(zip((team.alice, team.bob), ids, strict=False), 1):
        user.run("forget", one, "--store", place)
        listed, _ = Store.open(place).resolve("exclusions")
        assert listed.counts["documents"] == count
    assert all_shared(place)


def document_ids(store, key):
    """Ids of documents that `ingest` made."""
    manifest = store.manifest("ingest", key)
    path = manifest.outputs["documents"].files[0].path
    file = store.backend.local_path(store.payload(manifest, "documents", path))
    return pq.read_table(file, columns=["doc_id"]).column(0).to_pylist()


@pytest.mark.full
def test_damage_that_one_finds_is_repaired_by_the_other(team, place):
    team.alice.python_run(*STEP, place, "sample")
    store = Store.open(place)
    ((_, key),) = store.keys("sample")
    manifest = store.manifest("sample", key)
    file = manifest.outputs["truth"].files[0].path
    damaged = store.backend.local_path(store.payload(manifest, "truth", file))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    assert "bytes changed" in team.alice.run("verify", key[:12], "--store", place, ok=False)
    assert "1 made again" in team.bob.run("verify", "--repair", key[:12], "--store", place)
    team.alice.run("verify", key[:12], "--store", place)
    assert not damaged.exists()  # Of the damaged attempt.
    made = store.manifest("sample", key)
    assert made.outputs == manifest.outputs
    payload = store.backend.local_path(layout.payload("sample", key, made.attempt))
    assert payload.stat().st_uid == team.bob.id
    assert all_shared(place)
    team.alice.run("gc", "--delete", "--artifact", key[:12], "--store", place)
    assert not payload.exists()
    assert all_shared(place)


def give_sample(tiny_store, place, group):
    """A copy of the store in which only `sample` is made, given to the group.

    It documents Python's library, and the users may have another build of that.
    """
    shutil.copytree(tiny_store, place, ignore=shutil.ignore_patterns("refs", "runs", "work"))
    store = Store.open(place)
    for manifest in list(store.manifests()):
        if manifest.stage != "sample":
            remove_artifact(store, manifest)
    assert make_shared_store(place, group)[1] == []


def digests(url):
    """Of every output of the recipe, by step."""
    steps = Pipeline.open(Request(TINY, str(url))).plan().steps
    return {
        step.instance: {name: output.digest for name, output in step.manifest.outputs.items()}
        for step in steps
    }


@pytest.mark.full
@pytest.mark.timeout(3_600)  # Kernels are compiled for each user; and tiny_store may be made first.
def test_the_whole_recipe_by_two_users_gives_the_bytes_of_one(team, team_folder, tiny_store):
    """Every writer of every stage: each file and folder is the group's after each part, killed and
    resumed training included."""
    place = str(team_folder / "store")
    give_sample(tiny_store, place, team.name)
    run = ("run", TINY, "--no-prefect", "--jobs", "2", "--store", place)
    for step in ("pack", "chat_filter"):
        team.alice.run(*run, "--through", step)
        assert all_shared(place)
    users = [team.bob, team.alice] * 3
    points = ("state taken over", "checkpoint written", "checkpoint files written",
              "interim listed", "checkpoint written", "payload written")  # fmt: skip
    for user, point in zip(users, points, strict=True):
        killed(user, place, "pretrain", point)
        left = check_modes(Store.open(place))
        assert all(one.path.endswith(".safetensors") for one in left), left
    team.bob.run(*run)
    assert all_shared(place)
    assert digests(place) == digests(tiny_store)
    owners = {path.stat().st_uid for path in Path(place).rglob("*")}
    assert owners == {0, team.alice.id, team.bob.id}
    for user in (team.alice, team.bob):
        assert json.loads(user.run("plan", TINY, "--store", place, "--json"))
        user.run("gc", "--delete", "--work", "--min-age", "0", "--store", place)
    assert all_shared(place)
