"""The store: what counts as committed, what a name means, what is said when it is off."""

from __future__ import annotations

import builtins
import json
import os
import re
import shutil
import threading
import time

import pytest
from made import key_of, make

from artifacts_schema.errors import CorruptArtifact, NotDeterministic, StoreError, UsageError
from artifacts_schema.store import Store, layout
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.gc import collect, plan_gc, remove_artifact
from artifacts_schema.store.lease import Lease
from artifacts_schema.store.remote import backend_at
from artifacts_schema.store.store import ancestors, descendants
from artifacts_schema.store.verify import verify


def test_payload_without_a_manifest_is_no_artifact(store):
    attempt = Attempt(store.backend, "s", "a" * 64, {"snapshot": "snapshot"})
    with attempt.create("snapshot", "snapshot.json") as file:
        file.write(b"{}")
    assert store.manifest("s", "a" * 64) is None
    assert list(store.manifests()) == []
    left = layout.payload("s", "a" * 64, attempt.name)
    assert plan_gc(store, min_age_seconds=0).attempts == [left]


def test_of_two_writers_with_equal_bytes_the_first_stays(store):
    first, second = make(store, "a"), make(store, "a")
    assert second.attempt == first.attempt


def test_different_bytes_at_equal_libraries_are_an_error_for_a_bytes_stage(store):
    make(store, "a", b"1")
    with pytest.raises(NotDeterministic, match="snapshot"):
        make(store, "a", b"2")


def test_different_bytes_at_other_libraries_keep_the_first_and_name_the_difference(store, caplog):
    first = make(store, "a", b"1", libraries={"pyarrow": "1"})
    second = make(store, "a", b"2", libraries={"pyarrow": "2"})
    assert second.attempt == first.attempt
    assert "pyarrow 1 → 2" in caplog.text


def test_many_writers_at_once_leave_one_manifest(store):
    found, threads = [], []
    for _ in range(8):
        threads.append(threading.Thread(target=lambda: found.append(make(store, "b").attempt)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_manifest_that_was_edited_is_refused(store):
    made = make(store, "a")
    path = layout.manifest("s", made.key)
    raw = json.loads(store.backend.read(path))
    raw["outputs"]["snapshot"]["files"][0]["sha256"] = "0" * 64
    store.backend.replace(path, json.dumps(raw).encode())
    with pytest.raises(CorruptArtifact, match="checksum"):
        store.manifest("s", made.key)


def test_verify_names_the_file_and_what_happened_to_it(store):
    made = make(store, "a", b"hello")
    path = store.payload(made, "snapshot", "snapshot.json")
    assert verify(store, made) == []
    store.backend.replace(path, b"hellO")
    assert [p.path for p in verify(store, made)] == [path]
    assert verify(store, made, full=False) == []
    store.backend.replace(path, b"hell")
    (problem,) = verify(store, made, full=False)
    assert re.findall(r"\d+", problem.what) == ["5", "4"]
    store.backend.remove(path)
    assert [(p.path, "gone" in p.what) for p in verify(store, made)] == [(path, True)]


def test_refs_move_and_keys_are_found_by_prefix(store):
    a, b = make(store, "a"), make(store, "ab", b"2")
    store.set_ref("recipe/step[x]", "s", a.key)
    assert store.resolve("recipe/step[x]")[0].key == a.key
    store.set_ref("recipe/step[x]", "s", b.key)
    assert store.resolve("recipe/step[x]:snapshot") == (b, "snapshot")
    assert store.find(b.key[:8]).key == b.key
    assert store.find(a.outputs["snapshot"].digest[:12]).key == a.key
    with pytest.raises(UsageError, match="recipe/step"):
        store.resolve("recipe/stp[x]")
    with pytest.raises(UsageError, match="0" * 40):
        store.find("0" * 40)


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "a/../b", "", ".hidden", "a b"])
def test_a_ref_cannot_leave_its_folder(store, name):
    with pytest.raises(UsageError, match=re.escape(f"'{name}'")):
        store.set_ref(name, "s", "a" * 64)
    assert store.ref(name) is None


@pytest.mark.parametrize("path", ["../x.json", "/etc/x", "a/../../x", "files/../../x"])
def test_a_payload_path_cannot_leave_its_output(store, path):
    attempt = Attempt(store.backend, "s", "a" * 64, {"snapshot": "snapshot"})
    with pytest.raises(ValueError, match="path"), attempt.create("snapshot", path) as file:
        file.write(b"")


def test_a_folder_with_other_files_is_not_taken_for_a_store(tmp_path):
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(StoreError) as caught:
        Store.open(str(tmp_path))
    assert caught.value.where == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_store_of_another_schema_is_refused(tmp_path):
    (tmp_path / layout.FORMAT).write_text('{"format": "ingot-store", "schema": 99}')
    with pytest.raises(StoreError, match="99"):
        Store.open(str(tmp_path))


def test_a_file_in_place_of_a_store_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        Store.open(str(tmp_path / "file"))


def lineage(store):
    a = make(store, "a", b"1")
    b = make(store, "b", b"2", inputs={"documents": (store.reference(a, "snapshot"),)})
    c = make(store, "c", b"3", inputs={"x": (store.reference(b, "snapshot"),)})
    lone = make(store, "d", b"4")
    return a, b, c, lone


def test_lineage_runs_both_ways(store):
    a, b, c, _ = lineage(store)
    up = [(edge.parent[1], edge.role) for edge in ancestors(store, c)]
    assert up == [(b.key, "x"), (a.key, "documents")]
    down = [edge.child[1] for edge in descendants(store, a)]
    assert down == [b.key, c.key]


def test_gc_keeps_what_a_ref_reaches_and_a_second_run_finds_nothing(store):
    a, b, c, lone = lineage(store)
    store.set_ref("r/b", "s", b.key)
    garbage = plan_gc(store, min_age_seconds=0)
    assert {m.key for m in garbage.artifacts} == {c.key, lone.key}
    assert garbage.bytes == 2
    collect(store, garbage)
    assert {m.key for m in store.manifests()} == {a.key, b.key}
    assert plan_gc(store, min_age_seconds=0).artifacts == []
    assert verify(store, a) == verify(store, b) == []


def test_gc_spares_young_artifacts_and_inputs_of_running_work(store):
    _, b, c, d = lineage(store)
    assert plan_gc(store, min_age_seconds=3600).artifacts == []
    lease = Lease.take(store.backend, "e" * 64)
    spec = {"inputs": {"x": [{"stage": "s", "key": b.key}]}}
    store.backend.replace(layout.work("e" * 64, "spec.json"), json.dumps(spec).encode())
    assert {m.key for m in plan_gc(store, min_age_seconds=0).artifacts} == {c.key, d.key}
    lease.release()
    assert len(plan_gc(store, min_age_seconds=0).artifacts) == 4


def test_a_clock_that_is_ahead_by_an_hour_collects_nothing_fresh(store, monkeypatch):
    """Ages are by the store's clock: in a bucket the server's; a folder's files bear this one's."""
    lone = make(store, "d")
    if store.backend.local:
        path = store.backend.local_path(layout.manifest("s", lone.key))
        os.utime(path, (time.time() + 3600, time.time() + 3600))
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + 3600)
    assert plan_gc(store, min_age_seconds=1800).artifacts == []
    monkeypatch.undo()
    assert plan_gc(store, min_age_seconds=0, now=time.time() + 7200).artifacts == [lone]


def test_payload_of_a_run_that_goes_on_is_no_garbage(store):
    lease = Lease.take(store.backend, "a" * 64)
    attempt = Attempt(store.backend, "s", "a" * 64, {"snapshot": "snapshot"})
    with attempt.create("snapshot", "snapshot.json") as file:
        file.write(b"{}")
    garbage = plan_gc(store, min_age_seconds=0, idle_work=True)
    assert (garbage.attempts, garbage.work) == ([], [])
    lease.release()
    garbage = plan_gc(store, min_age_seconds=0, idle_work=True)
    assert (len(garbage.attempts), garbage.work) == (1, ["a" * 64])


def test_a_run_that_commits_while_garbage_is_sought_loses_nothing(store, monkeypatch):
    """Its payload was listed without a manifest; the manifest came before its lease went."""
    key, made = key_of("a"), []
    lease = Lease.take(store.backend, key)
    attempt = Attempt(store.backend, "s", key, {"snapshot": "snapshot"})
    with attempt.create("snapshot", "snapshot.json") as file:
        file.write(b"{}")
    listing = type(store.backend).listing

    def commit_after(self, folder):
        found = listing(self, folder)
        if folder == "data" and not made:
            made.append(make(store, "a"))
            lease.release()
        return found

    monkeypatch.setattr(type(store.backend), "listing", commit_after)
    garbage = plan_gc(store, min_age_seconds=3600)
    collect(store, garbage)
    assert verify(store, made[0]) == []


def test_a_killed_collection_leaves_nothing_readable(store):
    made = make(store, "a")
    store.backend.remove(layout.manifest("s", made.key))
    left = layout.payload("s", made.key, made.attempt)
    assert plan_gc(store, min_age_seconds=0).attempts == [left]
    remove_artifact(store, made)
    assert store.backend.files("data") == []


def test_a_folder_is_removed_with_what_others_write_into_it_meanwhile(tmp_path, monkeypatch):
    backend = backend_at(str(tmp_path / "store"))
    backend.replace("work/key/log.txt", b"")
    rmdir, writes = os.rmdir, iter([True, True, False])

    def busy(path, **more):
        if next(writes, False):
            (tmp_path / "store/work/key/late.txt").write_text("last words")
        rmdir(path, **more)

    monkeypatch.setattr(os, "rmdir", busy)
    backend.remove("work/key")
    assert not (tmp_path / "store/work/key").exists()


@pytest.mark.parametrize(
    ("act", "lost"),
    [
        *[("put_if_absent", call) for call in ("mkdir", "open", "link", "fsync")],
        *[("replace", call) for call in ("mkdir", "open", "replace", "fsync")],
        *[("create", call) for call in ("mkdir", "open")],
        *[("link", call) for call in ("mkdir", "link")],
    ],
)
def test_a_file_is_written_while_another_removes_its_folder(tmp_path, monkeypatch, act, lost):
    """Another process removes the folder just before one kind of call, the first two times."""
    backend = backend_at(str(tmp_path / "store"))
    backend.replace("other/0.json", b"1")
    path, folder = "work/key/lease/1.json", backend.local_path("work/key/lease")
    left = [1, 2]
    module = builtins if lost == "open" else os
    call = getattr(module, lost)

    def removing(first, *given, **more):
        if left and (lost == "mkdir" or folder.exists()):
            left.pop()
            if lost == "mkdir":  # It was there, and is not any more when that is looked at.
                raise FileExistsError(first)
            shutil.rmtree(folder)
        return call(first, *given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(module, lost, removing)
        if act == "create":
            with backend.create(path) as file:
                file.write(b"1")
        elif act == "link":
            backend.link([("other/0.json", path)])
        else:
            assert getattr(backend, act)(path, b"1") in (True, None)
    assert not left
    assert backend.read(path) == b"1"
    assert backend.files("work") == ["key/lease/1.json"]


@pytest.mark.parametrize("act", ["put_if_absent", "replace"])
def test_a_folder_that_never_stays_is_an_error_in_the_end(tmp_path, monkeypatch, act):
    backend = backend_at(str(tmp_path / "store"))
    monkeypatch.setattr(os, "mkdir", lambda *given, **more: None)
    with pytest.raises((FileNotFoundError, FileExistsError)):
        getattr(backend, act)("work/key/1.json", b"1")
