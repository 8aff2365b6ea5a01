"""A file system that refuses, loses or reorders: no answer is not an absence."""

from __future__ import annotations

import errno
import os
import shutil

import pytest
from made import key_of, make

from artifacts_schema.errors import CorruptArtifact, NotDeterministic, StoreError
from artifacts_schema.store import Store, failpoints, layout
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.gc import plan_gc
from artifacts_schema.store.store import ancestors, descendants
from artifacts_schema.store.verify import (
    Problem,
    find_committed,
    record_damage,
    recorded_damage,
    verify,
)

REFUSALS = [errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENOTCONN, errno.EPERM]


@pytest.fixture
def folder(tmp_path):
    """A store in a folder."""
    return Store.open(str(tmp_path / "store"))


@pytest.fixture
def refuse(monkeypatch):
    """`refuse(part, number)`: listing a folder whose path holds `part` fails with that errno."""

    def set_up(part, number):
        scandir = os.scandir

        def refusing(path):
            if part in str(path):
                raise OSError(number, os.strerror(number), str(path))
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refusing)

    return set_up


def everything(folder):
    """Every file of a store and its bytes."""
    return {
        os.path.join(place, name): open(os.path.join(place, name), "rb").read()
        for place, _, names in os.walk(folder.url)
        for name in names
    }


@pytest.mark.parametrize("number", REFUSALS)
@pytest.mark.parametrize("part", ["/snapshot", "/data/s", "/artifacts"])
def test_a_folder_that_cannot_be_read_is_an_error_that_names_it(
    folder, refuse, number, part, monkeypatch
):
    make(folder, "a")
    before = everything(folder)
    refuse(part, number)
    with pytest.raises(StoreError) as caught:
        folder.keys() if part == "/artifacts" else find_committed(folder, "s", key_of("a"))
    assert part in caught.value.where
    assert caught.value.hint
    with pytest.raises(StoreError):
        plan_gc(folder, min_age_seconds=-60)
    monkeypatch.undo()
    assert everything(folder) == before


@pytest.mark.parametrize("number", REFUSALS)
def test_a_commit_replaces_nothing_that_it_cannot_read(folder, refuse, number, monkeypatch):
    made = make(folder, "a")
    before = everything(folder)
    refuse(made.attempt, number)
    with pytest.raises(StoreError):
        make(folder, "a")
    monkeypatch.undo()
    assert before.items() <= everything(folder).items()
    assert verify(folder, made) == []


@pytest.mark.parametrize("number", REFUSALS)
@pytest.mark.parametrize(
    "call", ["size", "read", "listing", "folders", "files", "is_empty", "remove", "replace"]
)
def test_each_operation_reports_a_refusal_as_one(folder, monkeypatch, number, call):
    folder.backend.replace("x/y", b"1")
    refused = OSError(number, os.strerror(number), folder.backend.full("x/y"))

    def refuse(*given, **more):
        raise refused

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(os, "unlink", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    backend = folder.backend
    act = {
        "size": lambda: backend.size("x/y"),
        "read": lambda: backend.read("x/y"),
        "listing": lambda: backend.listing("x"),
        "folders": lambda: backend.folders(""),
        "files": lambda: backend.files("x"),
        "is_empty": lambda: backend.is_empty(),
        "remove": lambda: backend.remove("x/y"),
        "replace": lambda: backend.replace("x/y", b"2"),
    }[call]
    with pytest.raises(StoreError) as caught:
        act()
    assert caught.value.hint


def test_what_vanishes_while_it_is_listed_is_left_out(folder, monkeypatch):
    folder.backend.replace("x/a/1", b"1")
    folder.backend.replace("x/b/2", b"2")
    scandir = os.scandir

    def vanishing(path):
        if str(path).endswith("/x/a"):
            shutil.rmtree(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert folder.backend.files("x") == ["b/2"]


# An unmounted volume ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["missing", "empty", "lost+found", "dangling"])
def test_a_store_whose_payload_is_not_mounted_says_so_and_keeps_everything(folder, how):
    made = make(folder, "a")
    data = folder.backend.local_path("data")
    data.rename(data.with_name("elsewhere"))
    if how == "dangling":
        data.symlink_to(data.with_name("gone"))
    elif how != "missing":
        data.joinpath("lost+found" if how == "lost+found" else "").mkdir(parents=True)
    for act in (
        folder.check_mounted,
        lambda: find_committed(folder, "s", made.key),
        lambda: plan_gc(folder, min_age_seconds=-60),
    ):
        with pytest.raises(StoreError) as caught:
            act()
        assert caught.value.where == folder.backend.full("data")
    assert folder.manifest("s", made.key) == made


def test_a_store_without_payload_of_its_own_is_not_unmounted(folder):
    """Outputs may be empty; and what is gone beside other payload was deleted."""
    from artifacts_schema.identity import artifact_key
    from artifacts_schema.manifest import Code, Manifest
    from artifacts_schema.store.commit import commit

    folder.check_mounted()
    attempt = Attempt(folder.backend, "s", artifact_key("s", 1, {}, {}), {"snapshot": "snapshot"})
    commit(
        folder,
        Manifest(
            stage="s", version=1, key=attempt.key, reproducible="bytes", config={}, identity={},
            inputs={}, outputs=attempt.outputs(), attempt=attempt.name,
            code=Code(digest="", libraries={}),
        ),
    )  # fmt: skip
    assert find_committed(folder, "s", attempt.key).whole is not None
    one, two = make(folder, "a"), make(folder, "b")
    folder.backend.remove(layout.payload("s", one.key))
    assert find_committed(folder, "s", one.key).damage == "snapshot/snapshot.json: the file is gone"
    assert find_committed(folder, "s", two.key).damage is None


# Damaged artifacts ------------------------------------------------------------------------------


def damage(store, made, how):
    path = store.payload(made, "snapshot", "snapshot.json")
    if how == "gone":
        store.backend.remove(path)
    elif how == "recorded":
        store.backend.replace(path, b"{]")
        record_damage(store, made, verify(store, made))
    else:
        store.backend.replace(layout.manifest(made.stage, made.key), b"{")


@pytest.mark.parametrize("how", ["gone", "recorded", "manifest"])
def test_a_damaged_artifact_stays_until_its_replacement_is_committed(store, how, monkeypatch):
    class Killed(BaseException):
        pass

    made = make(store, "a")
    damage(store, made, how)
    before = store.backend.files("")
    for point in ("before manifest", "manifest linked"):

        def kill(reached, point=point):
            if reached == point:
                raise Killed

        monkeypatch.setattr(failpoints, "on_failpoint", kill)
        with pytest.raises(Killed):
            make(store, "a")
        monkeypatch.setattr(failpoints, "on_failpoint", None)
        if point == "before manifest":
            assert set(before) <= set(store.backend.files(""))
            assert find_committed(store, "s", made.key).damage is not None
    again = make(store, "a")
    assert find_committed(store, "s", made.key) == find_committed(store, "s", again.key)
    assert find_committed(store, "s", made.key).whole is not None
    assert verify(store, store.manifest("s", made.key)) == []


@pytest.mark.parametrize("how", ["gone", "recorded"])
def test_of_a_replaced_artifact_nothing_is_left(store, how):
    made = make(store, "a")
    damage(store, made, how)
    again = make(store, "a")
    assert again.attempt != made.attempt
    assert store.backend.folders(layout.payload("s", made.key)) == [again.attempt]
    assert store.backend.files("damage") == []


def test_an_artifact_that_cannot_be_made_again_is_still_there(store):
    made = make(store, "a")
    damage(store, made, "gone")
    attempt = Attempt(store.backend, "s", made.key, {"snapshot": "snapshot"})
    with attempt.create("snapshot", "snapshot.json") as file:
        file.write(b"{}")
    attempt.discard()
    assert store.manifest("s", made.key) == made


def test_a_damage_record_of_an_earlier_attempt_means_nothing(store):
    made = make(store, "a")
    record_damage(store, made, [Problem("data/s/x/y/snapshot/z", "the file's bytes changed")])
    assert find_committed(store, "s", made.key).damage == "snapshot/z: the file's bytes changed"
    other = made.model_copy(update={"attempt": "0" * 12})
    assert recorded_damage(store, other) == []
    record_damage(store, made, [])
    assert find_committed(store, "s", made.key).damage is None


def test_a_whole_artifact_is_never_replaced(store):
    make(store, "a", b"1")
    with pytest.raises(NotDeterministic):
        make(store, "a", b"2")
    assert verify(store, store.manifest("s", key_of("a"))) == []


def test_a_commit_whose_payload_is_gone_or_cut_commits_nothing(store, monkeypatch):
    sync = type(store.backend).listing

    def lose(self, where):
        if where.startswith("data/"):
            for name in sync(self, where):
                self.replace(f"{where}/{name}", b"")
        return sync(self, where)

    monkeypatch.setattr(type(store.backend), "listing", lose)
    with pytest.raises(StoreError, match="from 2 to 0"):
        make(store, "a")
    assert store.manifest("s", key_of("a")) is None


def test_a_commit_that_fails_behind_its_last_moment_keeps_its_payload(folder, monkeypatch):
    """The manifest is linked, then the folder cannot be flushed: the artifact stands."""
    attempts = []
    sync_up = type(folder.backend)._sync_up

    def failing(self, place):
        if place.name == "s" and place.parent.name == "artifacts":
            raise OSError(errno.EIO, "Input/output error")
        sync_up(self, place)

    create = Attempt.create
    monkeypatch.setattr(Attempt, "create", lambda self, *a: (attempts.append(self), create(self, *a))[1])  # fmt: skip # noqa: E501
    monkeypatch.setattr(type(folder.backend), "_sync_up", failing)
    with pytest.raises(StoreError):
        make(folder, "a")
    monkeypatch.undo()
    attempts[0].discard()
    assert verify(folder, folder.manifest("s", key_of("a"))) == []


# What survives a power cut ----------------------------------------------------------------------


def test_no_manifest_is_linked_before_its_payload_and_all_folders_on_the_way_are_flushed(
    folder, monkeypatch
):
    """A record of every fsync, by path, and of the link of the manifest."""
    calls = []
    real_fsync, real_link = os.fsync, os.link

    def flushing(descriptor):
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        calls.append(("fsync", os.path.relpath(path, folder.url)))
        real_fsync(descriptor)

    def linking(source, target, **more):
        calls.append(("link", os.path.relpath(target, folder.url)))
        real_link(source, target, **more)

    monkeypatch.setattr(os, "fsync", flushing)
    monkeypatch.setattr(os, "link", linking)
    made = make(folder, "a")
    manifest = ("link", layout.manifest("s", made.key))
    before, after = calls[: calls.index(manifest)], calls[calls.index(manifest) :]
    output = layout.payload("s", made.key, made.attempt, "snapshot")
    file = f"{output}/snapshot.json"
    needed = [file, output, *(output.rsplit("/", n)[0] for n in range(1, 5)), "."]
    assert needed[-2:] == ["data", "."]
    for place in needed:
        assert ("fsync", place) in before, place
    assert before.index(("fsync", file)) < before.index(("fsync", output))
    for place in ("artifacts/s", "artifacts", "."):
        assert ("fsync", place) in after, place


def test_finished_shards_that_are_linked_are_flushed_under_their_new_names(folder, monkeypatch):
    from artifacts_schema.file_table import File

    with folder.backend.create("work/k/shards/1.json") as file:
        file.write(b"{}")
    attempt = Attempt(folder.backend, "s", key_of("a"), {"snapshot": "snapshot"})
    shard = File(path="files/1.json", bytes=file.bytes, sha256=file.sha256)
    attempt.adopt([("snapshot", shard, "work/k/shards/1.json")])
    flushed, fsync = [], os.fsync

    def flushing(descriptor):
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", flushing)
    folder.backend.sync(layout.payload("s", attempt.key, attempt.name))
    assert (
        folder.backend.full(layout.payload("s", attempt.key, attempt.name, "snapshot") + "/files")
        in flushed
    )


# One unreadable manifest ------------------------------------------------------------------------


def test_one_unreadable_manifest_hides_no_other(store):
    one = make(store, "a")
    two = make(store, "b", inputs={"x": (store.reference(one, "snapshot"),)})
    three = make(store, "c", inputs={"x": (store.reference(two, "snapshot"),)})
    store.backend.replace(layout.manifest("s", two.key), b"")
    damaged = []
    assert {m.key for m in store.manifests(on_damage=damaged.append)} == {one.key, three.key}
    assert [error.where for error in damaged] == [layout.manifest("s", two.key)]
    assert [edge.parent[1] for edge in ancestors(store, three)] == [two.key]
    assert [edge.child[1] for edge in descendants(store, two)] == [three.key]
    with pytest.raises(CorruptArtifact):
        list(store.manifests())
