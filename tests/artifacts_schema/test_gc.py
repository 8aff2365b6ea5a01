"""A collection beside runs: what comes into use while it works stays, and nothing is left empty."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter

import pytest
from made import key_of, make

from artifacts_schema.errors import StoreError
from artifacts_schema.store import Store, layout
from artifacts_schema.store.backend import LocalBackend
from artifacts_schema.store.commit import Attempt, announce_interim
from artifacts_schema.store.gc import LAUNCH_SECONDS, collect, plan_gc
from artifacts_schema.store.lease import Lease, hold_lease, local_work, this_process
from artifacts_schema.store.runs import Run, RunStep, write_run
from artifacts_schema.store.verify import find_committed, verify


def planned(store, **more):
    """Everything that no name reaches, young or not."""
    return plan_gc(store, min_age_seconds=-60, **more)


def between(monkeypatch, store, path, action):
    """Run `action` just after the collection removed `path` for the first time."""
    remove, done = type(store.backend).remove, []

    def removing(self, removed):
        remove(self, removed)
        if removed == path and not done:
            done.append(1)
            action()

    monkeypatch.setattr(type(store.backend), "remove", removing)


def manifest_path(made):
    return layout.manifest(made.stage, made.key)


def test_what_a_run_names_after_it_was_listed_is_not_touched(store, monkeypatch):
    made = make(store, "a")
    garbage = planned(store)
    assert store.name("demo/step", made)
    taken = []
    between(monkeypatch, store, manifest_path(made), lambda: taken.append(made))
    removed = collect(store, garbage)
    assert (removed.artifacts, removed.bytes, taken) == ([], 0, [])
    assert verify(store, store.resolve("demo/step")[0]) == []


def test_what_a_run_names_while_its_manifest_is_away_is_put_back(store, monkeypatch):
    """The run named it, and has looked for the manifest before that went."""
    made = make(store, "a")
    garbage = planned(store)
    path = manifest_path(made)
    between(monkeypatch, store, path, lambda: store.set_ref("demo/step", "s", made.key))
    assert collect(store, garbage).artifacts == []
    assert verify(store, store.resolve("demo/step")[0]) == []


@pytest.mark.parametrize("error", [StoreError("the store was too busy"), KeyboardInterrupt()])
def test_a_collection_that_fails_between_its_looks_puts_all_manifests_back(
    store, monkeypatch, error
):
    made = [make(store, "a"), make(store, "b")]
    garbage = planned(store)

    def fail(*given, **more):
        raise error

    with monkeypatch.context() as patched:
        refs = lambda: patched.setattr(store, "refs", fail)  # noqa: E731
        between(patched, store, manifest_path(made[0]), refs)
        with pytest.raises(type(error)):
            collect(store, garbage)
    assert [verify(store, store.manifest("s", one.key)) for one in made] == [[], []]


def test_of_a_collection_that_fails_at_a_payload_the_other_artifacts_stay(store, monkeypatch):
    made = [make(store, "a"), make(store, "b")]
    garbage = planned(store)
    remove = type(store.backend).remove

    def failing(self, path):
        if path.startswith("data/"):
            raise StoreError("the store was too busy", where=path)
        remove(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(type(store.backend), "remove", failing)
        with pytest.raises(StoreError, match="too busy"):
            collect(store, garbage)
    (left,) = [one for one in made if store.manifest("s", one.key)]
    assert verify(store, left) == []


def test_while_a_name_cannot_be_read_every_artifact_stays(store):
    make(store, "a")
    store.backend.replace(layout.ref("demo/step"), b"{")
    garbage = planned(store)
    assert [error.where for error in garbage.unreadable] == [layout.ref("demo/step")]
    assert garbage.artifacts == []


def test_a_run_that_names_too_late_is_told(store):
    made = make(store, "a")
    collect(store, planned(store))
    assert not store.name("demo/step", made)


def test_a_parent_of_what_was_named_or_committed_meanwhile_stays(store):
    parent = make(store, "a")
    child = make(store, "b", inputs={"x": (store.reference(parent, "snapshot"),)})
    garbage = planned(store)
    store.set_ref("demo/step", "s", child.key)
    later = make(store, "c", inputs={"x": (store.reference(parent, "snapshot"),)})
    assert collect(store, garbage).artifacts == []
    assert all(verify(store, one) == [] for one in (parent, child, later))


def test_a_key_that_a_run_holds_is_left_alone(store):
    made = make(store, "a")
    garbage = planned(store)
    lease = Lease.take(store.backend, made.key)
    assert collect(store, garbage).artifacts == []
    assert verify(store, made) == []
    lease.release()
    assert collect(store, planned(store)).artifacts == [made]


def test_while_an_artifact_is_removed_no_run_takes_its_key(store, monkeypatch):
    made, took = make(store, "a"), []

    def try_to_take():
        lease = Lease.take(store.backend, made.key, settled=lambda: True)
        took.append(lease)
        from artifacts_schema.store.lease import is_held

        took.append(is_held(store.backend, made.key))

    between(monkeypatch, store, manifest_path(made), try_to_take)
    assert collect(store, planned(store)).artifacts == [made]
    assert took == [None, True]
    assert store.backend.files("work") == store.backend.files("data") == []


def succeed(store, key):
    """Take the lease of `key` from a holder that is suspended, as another machine does: the work
    folder went with the successor's commit, and numbers begin again."""
    store.backend.remove(layout.work(key))
    return Lease.take(store.backend, key)


def test_a_suspended_holder_leaves_the_lease_of_its_successor(store):
    with hold_lease(store.backend, "e" * 64):
        successor = succeed(store, "e" * 64)
    assert successor.is_mine()


def test_a_lease_that_cannot_be_removed_does_not_hide_why_the_work_failed(store, monkeypatch):
    def fail(self, path):
        raise StoreError("the store cannot be reached", where=path)

    monkeypatch.setattr(type(store.backend), "remove", fail)
    with pytest.raises(KeyError, match="why"), hold_lease(store.backend, "e" * 64):
        raise KeyError("why")


@pytest.mark.parametrize("what", ["artifact", "attempt", "work"])
def test_a_collection_that_was_succeeded_removes_nothing(store, monkeypatch, what):
    made = make(store, "a")
    if what == "attempt":
        store.backend.remove(manifest_path(made))
    if what == "work":
        store.set_ref("demo/step", "s", made.key)
        store.backend.replace(layout.work(made.key, "done", "map", "0.json"), b"{}")
    garbage = planned(store)
    assert (len(garbage.artifacts), len(garbage.attempts), len(garbage.work)) == {
        "artifact": (1, 0, 0), "attempt": (0, 1, 0), "work": (0, 0, 1)
    }[what]  # fmt: skip
    before = {name for name in store.backend.files("") if not name.startswith("work/")}
    take, successors = Lease.take, []

    def taken(backend, key, **more):
        lease = take(backend, key, **more)
        monkeypatch.setattr(Lease, "take", take)
        successors.append(succeed(store, key))
        store.backend.replace(layout.work(key, "done", "map", "1.json"), b"{}")
        return lease

    monkeypatch.setattr(Lease, "take", taken)
    removed = collect(store, garbage)
    assert (removed.artifacts, removed.attempts, removed.work) == ([], [], [])
    assert before <= set(store.backend.files(""))
    assert store.backend.size(layout.work(made.key, "done", "map", "1.json")) == 2
    assert successors[0].is_mine()


def test_a_key_made_again_after_it_was_listed_keeps_its_payload(store):
    """The payload that goes is that of the listed attempt, never all of the key's."""
    made = make(store, "a", b"1")
    garbage = planned(store)
    store.backend.remove(manifest_path(made))
    again = make(store, "a", b"1")
    assert again.attempt != made.attempt
    assert collect(store, garbage).artifacts == []
    assert verify(store, again) == []
    assert planned(store).attempts == [layout.payload("s", made.key, made.attempt)]


def test_only_the_listed_attempt_is_removed(store, monkeypatch):
    """Another attempt at the key may be of a run that goes on (an announced checkpoint)."""
    made = make(store, "a")
    other = Attempt(store.backend, "s", made.key, {"snapshot": "snapshot"})
    with other.create("snapshot", "snapshot.json") as file:
        file.write(b"{}")
    garbage = planned(store)
    garbage.attempts = []
    assert collect(store, garbage).artifacts == [made]
    assert store.backend.folders(layout.payload("s", made.key)) == [other.name]


def test_an_attempt_that_was_committed_or_announced_after_it_was_listed_stays(store):
    from artifacts_schema.manifest import Interim

    key = key_of("a")
    attempt = Attempt(store.backend, "s", key, {"snapshot": "snapshot"})
    with attempt.create("snapshot", "snapshot.json") as file:
        file.write(b"{}")
    garbage = planned(store)
    assert garbage.attempts == [layout.payload("s", key, attempt.name)]
    run = Lease.take(store.backend, "f" * 64)
    announce_interim(store.backend, "f" * 64, Interim(at=1, label="1", key=key))
    assert collect(store, garbage).attempts == []
    run.release()
    made = make(store, "b")
    garbage.attempts = [layout.payload("s", made.key, made.attempt)]
    assert collect(store, garbage).attempts == []
    assert verify(store, made) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_no_attempt_at_a_damaged_artifact_is_removed(store, when):
    """The attempt is outside a manifest's checksum: one wrong digit there loads well."""
    made = make(store, "a")
    store.set_ref("demo/step", "s", made.key)
    left = Attempt(store.backend, "s", made.key, {"snapshot": "snapshot"})
    with left.create("snapshot", "snapshot.json") as file:
        file.write(b"{}")
    garbage = planned(store)
    assert garbage.attempts == [layout.payload("s", made.key, left.name)]
    wrong = made.model_copy(update={"attempt": "0" * 12})
    store.backend.replace(manifest_path(made), wrong.to_json())
    assert find_committed(store, "s", made.key).damage == "snapshot/snapshot.json: the file is gone"
    if when == "before":
        garbage = planned(store)
        assert garbage.attempts == []
    else:
        garbage.attempts.append(layout.payload("s", made.key, made.attempt))
    assert collect(store, garbage).attempts == []
    assert verify(store, made) == []


def test_steps_of_a_run_that_goes_on_stay_though_another_run_took_their_names(store):
    made = make(store, "a")
    mine = this_process()
    step = RunStep(instance="x", stage="s", key=made.key, state="reused")
    run = Run(
        id="20260101T000000000-0000", recipe="demo", state="running", started="", updated="",
        steps=(step,), machine=mine.machine, process=mine.process, process_started=mine.started,
    )  # fmt: skip
    garbage = planned(store)
    write_run(store, run)
    assert planned(store).artifacts == collect(store, garbage).artifacts == []
    write_run(store, run.model_copy(update={"process_started": "0"}))  # That process is gone.
    assert planned(store).artifacts == [made]


def test_work_that_a_run_took_up_after_it_was_listed_stays(store):
    key = "e" * 64
    store.backend.replace(layout.work(key, "done", "map", "0.json"), b"{}")
    garbage = planned(store, idle_work=True)
    assert garbage.work == [key]
    lease = Lease.take(store.backend, key)
    assert collect(store, garbage).work == []
    assert store.backend.size(layout.work(key, "done", "map", "0.json")) == 2
    lease.release()
    assert collect(store, planned(store, idle_work=True)).work == [key]
    assert store.backend.files("work") == []


def test_the_spec_of_a_child_that_is_just_starting_stays(store):
    """`--work` once took all of `work/launch`; the next child found no spec."""
    launch = LocalBackend(str(local_work(store.backend, "launch")))
    launch.replace("abc-1-1.json", b"{}")
    launch.replace("abd-1-1.txt", b"error")
    old = time.time() - LAUNCH_SECONDS - 60
    os.utime(launch.local_path("abd-1-1.txt"), (old, old))
    garbage = plan_gc(store, min_age_seconds=0, idle_work=True)
    assert (garbage.launch, garbage.work) == (["abd-1-1.txt"], [])
    collect(store, garbage)
    assert launch.files("") == ["abc-1-1.json"]


def test_while_a_manifest_cannot_be_read_every_artifact_stays(store):
    named, lone = make(store, "a"), make(store, "b")
    store.set_ref("demo/step", "s", named.key)
    store.backend.replace(manifest_path(named), b"")
    garbage = planned(store)
    assert [error.where for error in garbage.unreadable] == [manifest_path(named)]
    assert (garbage.artifacts, garbage.attempts) == ([], [])
    collect(store, garbage)
    assert verify(store, lone) == []
    assert verify(store, named) == []


def test_a_manifest_that_becomes_unreadable_meanwhile_keeps_every_artifact(store):
    make(store, "a")
    garbage = planned(store)
    store.backend.replace(layout.manifest("s", "0" * 64), b"")
    assert collect(store, garbage).artifacts == []


def test_resume_state_of_a_damaged_artifact_that_is_being_made_again_stays(store):
    made = make(store, "a")
    store.backend.replace(layout.work(made.key, "done", "map", "0.json"), b"{}")
    assert planned(store).work == [made.key]
    store.backend.remove(store.payload(made, "snapshot", "snapshot.json"))
    assert find_committed(store, "s", made.key).damage == "snapshot/snapshot.json: the file is gone"
    assert planned(store).work == []


@pytest.mark.parametrize("age", [float("nan"), float("inf")])
def test_an_age_that_is_no_number_is_refused(store, age):
    with pytest.raises(ValueError, match="finite"):
        plan_gc(store, min_age_seconds=age)


def test_a_folder_that_cannot_be_read_stops_a_collection(tmp_path, monkeypatch):
    store = Store.open(str(tmp_path / "store"))
    make(store, "a")
    scandir = os.scandir

    def denied(path):
        if str(path).endswith("/data/s"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(StoreError) as caught:
        planned(store)
    assert caught.value.where.endswith("/data/s")


def test_specs_of_running_work_are_read_again(store):
    made = make(store, "a")
    garbage = planned(store)
    lease = Lease.take(store.backend, "e" * 64)
    spec = {"inputs": {"x": [{"stage": "s", "key": made.key}]}}
    store.backend.replace(layout.work("e" * 64, "spec.json"), json.dumps(spec).encode())
    assert collect(store, garbage).artifacts == []
    lease.release()


def test_an_input_of_what_a_run_commits_while_manifests_are_listed_stays(store, monkeypatch):
    """The run is over before the collection asks what runs, if it asks that after the manifests."""
    parent = make(store, "a")
    inputs = {"x": (store.reference(parent, "snapshot"),)}
    key = key_of("b", inputs)
    lease = Lease.take(store.backend, key)
    spec = {"inputs": {"x": [{"stage": "s", "key": parent.key}]}}
    store.backend.replace(layout.work(key, "spec.json"), json.dumps(spec).encode())
    keys, done = store.keys, []

    def keys_then_commit(*given):
        found = keys(*given)
        if not done:
            done.append(1)
            make(store, "b", inputs=inputs)
            store.backend.remove(layout.work(key))
        return found

    monkeypatch.setattr(store, "keys", keys_then_commit)
    assert planned(store).artifacts == []
    assert done
    assert verify(store, parent) == []
    lease.stop_beating()


def test_what_runs_is_asked_once_for_many_attempts(store, monkeypatch):
    """Two attempts at each key, and at a checkpoint that a killed run of one key announced."""
    from artifacts_schema.manifest import Interim
    from artifacts_schema.store import gc

    keys = [key_of(f"{number}") for number in range(3)]
    for key in (*keys, *keys):
        attempt = Attempt(store.backend, "s", key, {"snapshot": "snapshot"})
        with attempt.create("snapshot", "snapshot.json") as file:
            file.write(b"{}")
    announce_interim(store.backend, keys[0], Interim(at=1, label="1", key=keys[1]))
    garbage = planned(store)
    asked, running = [], gc._running
    monkeypatch.setattr(gc, "_running", lambda *given: asked.append(1) or running(*given))
    removed = collect(store, garbage)
    assert (len(removed.attempts), len(asked)) == (6, 1)
    assert store.backend.files("data") == []


def test_runs_that_name_beside_collections_never_end_with_an_empty_name(tmp_path):
    """Real threads, 25 rounds: one makes and names as a run does, one collects whatever it sees."""
    store = Store.open(str(tmp_path / "store"))
    outcomes = Counter()
    for number in range(25):
        make(store, f"{number}")
        start = threading.Barrier(2)

        def run(number=number, start=start):
            start.wait()
            found = find_committed(store, "s", key_of(f"{number}")).whole
            while found is None or not store.name("demo/step", found):
                with hold_lease(store.backend, key_of(f"{number}")):
                    found = make(store, f"{number}")
                outcomes["made again"] += 1

        def collection(start=start):
            start.wait()
            outcomes["removed"] += len(collect(store, planned(store)).artifacts)

        threads = [threading.Thread(target=run), threading.Thread(target=collection)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        manifest, _ = store.resolve("demo/step")
        assert manifest.key == key_of(f"{number}")
        assert verify(store, manifest) == []
    assert outcomes["removed"] > 0


@pytest.fixture
def linked(tmp_path):
    """`linked(user)`: a store with a work folder that is a link of that user to a home."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make another user's link")
    store = Store.open(str(tmp_path / "store"))
    precious = tmp_path / "home" / "thesis" / "chapter.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("x")
    (tmp_path / "store" / "work").mkdir()

    def link(user):
        place = tmp_path / "store" / "work" / ("b" * 64)
        place.symlink_to(tmp_path / "home")
        os.lchown(place, user, -1)
        return store, precious

    return link


def test_nothing_is_removed_through_a_link_that_another_user_made(linked):
    """`gc` runs with the rights of who calls it: a link to their home must not lead it there."""
    store, precious = linked(12345)
    assert collect(store, plan_gc(store, idle_work=True)).work == []
    assert [path.name for path in precious.parents[1].iterdir()] == ["thesis"]
    for path in ("thesis", "thesis/chapter.txt"):
        with pytest.raises(StoreError, match="symbolic link that another user made") as refused:
            store.backend.remove(f"work/{'b' * 64}/{path}")
        assert refused.value.where == f"{store.url}/work/{'b' * 64}"
    store.backend.remove_empty(f"work/{'b' * 64}/lease")
    assert precious.exists()
    store.backend.remove(f"work/{'b' * 64}")  # The link itself may go.
    assert precious.exists()
    assert not (precious.parents[2] / "store" / "work" / ("b" * 64)).is_symlink()


def test_a_link_of_ones_own_to_another_disk_is_followed(linked):
    store, precious = linked(0)
    store.backend.remove(f"work/{'b' * 64}/thesis")
    assert not precious.parent.exists()
    assert precious.parents[1].is_dir()


def test_the_owner_of_the_store_may_put_a_part_of_it_elsewhere(linked):
    store, precious = linked(12345)
    os.chown(store.url, 12345, -1)
    store.backend.remove(f"work/{'b' * 64}/thesis")
    assert not precious.parent.exists()
