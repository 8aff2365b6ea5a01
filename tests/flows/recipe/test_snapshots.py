"""What pins files from outside: names, checksums, and what is told when something is missing."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from artifacts_schema.errors import InputError, UsageError
from flows.recipe import snapshots
from flows.recipe.recipe import SnapshotFiles
from flows.recipe.snapshots import find_files, take_snapshot
from stages.engine import Input
from stages.engine.sources import snapshot_name, source_files


@pytest.fixture
def given(project):
    """`given(*patterns, root=None, name="crawl")`: files below the demo project."""

    def files(*patterns, root=None, name="crawl"):
        return SnapshotFiles(name, patterns, root, project, "demo.yaml:3: snapshots.crawl")

    return files


def names(source):
    return [file.name for file in find_files(source)]


def test_names_begin_where_the_pattern_does(given, project):
    assert names(given("data/a/*.txt")) == ["one.txt", "two.txt"]
    assert names(given("data/a/one.txt")) == ["one.txt"]
    assert names(given("data")) == ["a/one.txt", "a/two.txt", "b/three.txt"]
    assert names(given("data/**/t*.txt")) == ["a/two.txt", "b/three.txt"]
    assert names(given(str(project / "data/a/*.txt"))) == ["one.txt", "two.txt"]


def test_with_a_root_patterns_and_names_begin_there(given):
    assert names(given("a/*.txt", "b/*.txt", root="data")) == [
        "a/one.txt",
        "a/two.txt",
        "b/three.txt",
    ]


def test_hidden_files_are_left_out(given, project):
    (project / "data/a/.hidden").write_text("x")
    (project / "data/.git").mkdir()
    (project / "data/.git/config").write_text("x")
    assert names(given("data")) == ["a/one.txt", "a/two.txt", "b/three.txt"]


def test_two_files_of_one_name_need_a_root(given, project):
    (project / "data/b/one.txt").write_text("other")
    with pytest.raises(UsageError, match=r"'one\.txt'.*root"):
        find_files(given("data/a/*.txt", "data/b/*.txt"))
    assert names(given("data/a/one.txt", "data/a/*.txt")) == ["one.txt", "two.txt"]


def test_what_is_missing_is_told_with_the_pattern_and_the_place(given, project, store):
    with pytest.raises(InputError, match=r"snapshots\.crawl: .*'data/c/\*'"):
        find_files(given("data/a/*", "data/c/*"))
    with pytest.raises(InputError, match=r"'none\.warc'"):
        find_files(given("none.warc"))
    (project / "empty").mkdir()
    with pytest.raises(InputError, match="'empty'"):
        find_files(given("empty"))
    (project / "empty/zero.txt").touch()
    with pytest.raises(InputError, match=r"every file of empty is empty"):
        take_snapshot(store, given("empty"))
    with pytest.raises(UsageError, match="is outside the root"):
        find_files(given("../b/*.txt", root="data/a"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_told(given, project, store):
    (project / "data/a/one.txt").chmod(0)
    with pytest.raises(InputError, match=r"one\.txt: .*Permission denied"):
        take_snapshot(store, given("data/a"))


def test_a_stage_reads_what_was_pinned(given, store):
    manifest = take_snapshot(store, given("data/a"))
    pinned = Input.from_manifest(store, manifest, "snapshot")
    assert snapshot_name(pinned) == "crawl"
    first, second = source_files(pinned)
    assert (first.id, first.name, second.name) == ("00000", "one.txt", "two.txt")
    with first.open() as file:
        assert hashlib.sha256(file.read()).hexdigest() == first.sha256
    assert manifest.counts == {"files": 2, "bytes": len("alpha\nbeta\n\npi\n") + len("gamma\n")}


def test_the_same_files_elsewhere_are_the_same_snapshot_at_a_new_place(given, store, project):
    before = take_snapshot(store, given("data/a"))
    (project / "data/a").rename(project / "moved")
    after = take_snapshot(store, given("moved"))
    assert after.key == before.key
    places = store.locations(after.output("snapshot").digest)
    assert Path(places["one.txt"]) == project / "moved" / "one.txt"


def test_another_name_or_byte_is_another_snapshot(given, store, project):
    keys = {take_snapshot(store, given("data/a")).key}
    keys.add(take_snapshot(store, given("data/a", name="other")).key)
    (project / "data/a/two.txt").write_text("gamme\n")
    keys.add(take_snapshot(store, given("data/a")).key)
    assert len(keys) == 3


def test_a_file_is_hashed_once_until_its_size_or_time_changes(given, store, project, monkeypatch):
    hashed: list[int] = []
    take_snapshot(store, given("data/a"), progress=lambda done, total: hashed.append(total))
    assert hashed[-1] == len("alpha\nbeta\n\npi\n") + len("gamma\n")
    hashed.clear()
    take_snapshot(store, given("data/a"), progress=lambda done, total: hashed.append(total))
    assert hashed == []
    (project / "data/a/two.txt").write_text("gamma and more\n")
    take_snapshot(store, given("data/a"), progress=lambda done, total: hashed.append(total))
    assert hashed == [len("gamma and more\n")]


def test_a_broken_checksum_cache_is_read_anew(given, store):
    from artifacts_schema.store import layout

    before = take_snapshot(store, given("data/a"))
    store.backend.replace(layout.checksums(), b"{not json")
    assert take_snapshot(store, given("data/a")).key == before.key


@pytest.mark.parametrize("change", ["written", "replaced"])
def test_a_file_changed_at_equal_size_and_time_is_a_new_snapshot(given, store, project, change):
    path = project / "data/a/two.txt"
    before = take_snapshot(store, given("data/a"))
    status = os.stat(path)
    target = path if change == "written" else project / "other"
    target.write_text("GAMMA\n")
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(target, path)
    assert take_snapshot(store, given("data/a")).key != before.key


def test_a_file_that_vanishes_before_it_is_hashed_is_told(given, store):
    found = [*find_files(given("data/a")), snapshots.SnapshotFile("gone", "/nonexistent/gone")]
    with pytest.raises(InputError, match="/nonexistent/gone: "):
        snapshots.pin_files(snapshots.KnownFiles(store), found)


def test_first_takes_the_first_by_pattern_and_share_by_the_hash_of_the_name(given, project):
    assert names(replace(given("data/b/*", "data/a/*"), first=2)) == ["one.txt", "three.txt"]
    many = project / "many"
    many.mkdir()
    for number in range(2_000):
        (many / f"{number}.txt").write_text("x")
    part = names(replace(given("many"), share=0.1))
    # sha256 is uniform: 200 of 2,000 are expected, with a deviation of sqrt(2000 · 0.1 · 0.9) = 13.
    assert 200 - 4 * 13 < len(part) < 200 + 4 * 13
    assert set(part) < set(names(replace(given("many"), share=0.2)))
    assert part[:3] == names(replace(given("many"), share=0.1, first=2_000))[:3]
    # `printf 0.txt | sha256sum` begins with f79bdd: 0xf79bdd / 0x1000000 = 0.96722.
    assert "0.txt" in names(replace(given("many"), share=0.96723))
    assert "0.txt" not in names(replace(given("many"), share=0.96722))
    with pytest.raises(InputError, match=r"1e-09.* 3 "):
        find_files(replace(given("data"), share=1e-9))


def test_a_local_listing_is_what_it_always_was(given, store):
    manifest = take_snapshot(store, given("data/b"))
    listing = store.backend.read(store.payload(manifest, "snapshot", "snapshot.json"))
    digest = hashlib.sha256(b"delta epsilon\nmu\n").hexdigest()
    assert listing.decode() == (
        f'{{"files":[{{"bytes":17,"name":"three.txt","sha256":"{digest}"}}],"name":"crawl"}}\n'
    )


def test_a_damaged_listing_is_written_again(given, store):
    manifest = take_snapshot(store, given("data/a"))
    listing = Path(store.backend.full(store.payload(manifest, "snapshot", "snapshot.json")))
    listing.write_text("{}")
    again = take_snapshot(store, given("data/a"))
    assert again.key == manifest.key
    assert len(source_files(Input.from_manifest(store, again, "snapshot"))) == 2
