"""What `ingot snapshot watch` takes, when, and what it says instead. Clocks are injected."""

from __future__ import annotations

import json
import os

import pytest

from artifacts_schema.errors import InputError, UsageError
from flows.recipe import arrivals
from flows.recipe.arrivals import Place, Watch, look
from stages.engine import Input


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def folder(tmp_path):
    """A place; `add(folder, name, text)` by `write`."""
    (tmp_path / "crawls").mkdir()
    return tmp_path / "crawls"


def write(folder, name, text="text\n"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def watch(store, folder):
    """`watch(**place)` → (Watch, its clock, the lines that it said)."""

    def make(settle=60.0, **place):
        clock, lines = Clock(), []
        where = Place(place.pop("location", str(folder)), **place)
        return Watch(store, where, settle=settle, say=lines.append, clock=clock), clock, lines

    return make


def taken_at(watched, clock, now):
    clock.now = now
    return [name for name, _ in watched.once()]


def names_in(store, manifest):
    listing = Input.from_manifest(store, manifest, "snapshot").read_json("snapshot.json")
    return [file["name"] for file in listing["files"]]


def test_a_folder_is_taken_once_its_files_have_not_changed_for_so_long(store, folder, watch):
    watched, clock, lines = watch(series="crawl")
    write(folder, "2024-30/a.txt")
    assert taken_at(watched, clock, 0) == []
    write(folder, "2024-30/b.txt")
    assert taken_at(watched, clock, 100) == []
    assert taken_at(watched, clock, 159) == []
    ((name, manifest),) = [*taken_with(watched, clock, 160)]
    assert (name, names_in(store, manifest)) == ("crawl-2024-30", ["a.txt", "b.txt"])
    assert store.ref("snapshots/crawl-2024-30").key == manifest.key
    assert taken_at(watched, clock, 500) == []
    assert lines == []


def taken_with(watched, clock, now):
    clock.now = now
    return watched.once()


def test_a_file_of_the_same_size_that_is_written_again_is_a_change(folder, watch):
    watched, clock, _ = watch()
    write(folder, "day/a.txt", "one\n")
    taken_at(watched, clock, 0)
    write(folder, "day/a.txt", "two\n")
    os.utime(folder / "day/a.txt", ns=(5, 5))
    assert taken_at(watched, clock, 100) == []
    assert taken_at(watched, clock, 160) == ["day"]


def test_a_marker_says_so_at_once_and_is_no_file_of_the_snapshot(store, folder, watch):
    watched, clock, _ = watch(marker="_SUCCESS")
    write(folder, "day/a.txt")
    assert taken_at(watched, clock, 0) == []
    assert taken_at(watched, clock, 10_000) == []
    write(folder, "day/_SUCCESS", "")
    ((_, manifest),) = taken_with(watched, clock, 10_001)
    assert names_in(store, manifest) == ["a.txt"]


def test_two_watchers_take_one_snapshot(store, folder, watch):
    write(folder, "day/_SUCCESS", "")
    write(folder, "day/a.txt")
    (one, clock, _), (two, _, _) = watch(marker="_SUCCESS"), watch(marker="_SUCCESS")
    assert taken_at(one, clock, 0) == ["day"]
    key = store.ref("snapshots/day").key
    assert two.once() == []
    assert store.ref("snapshots/day").key == key


def test_a_snapshot_whose_folder_shrinks_stays_and_it_is_said_once(store, folder, watch):
    watched, clock, lines = watch(settle=0.0)
    for name in "abc":
        write(folder, f"day/{name}.txt")
    taken_at(watched, clock, 0)
    taken_at(watched, clock, 1)
    key = store.ref("snapshots/day").key
    (folder / "day/a.txt").unlink()
    write(folder, "day/b.txt", "longer text\n")
    write(folder, "day/d.txt")
    for now in (2, 3, 4):
        assert taken_at(watched, clock, now) == []
    assert lines == [
        "day was taken and has changed since (1 files more, 1 fewer, 1 of another size): "
        "it stays as it was; give new files a folder of their own"
    ]
    assert store.ref("snapshots/day").key == key


def test_a_clock_that_stands_still_or_a_folder_without_bytes_takes_nothing(folder, watch):
    watched, clock, _ = watch()
    write(folder, "day/a.txt")
    write(folder, "empty/a.txt", "")
    for _ in range(3):
        assert taken_at(watched, clock, 0) == []
    assert taken_at(watched, clock, 60) == ["day"]
    assert watched.waits()


def test_a_name_out_of_order_is_taken_with_a_warning(folder, watch):
    watched, clock, lines = watch(series="crawl", marker="done")
    for name in ("2024-33", "2024-30"):
        write(folder, f"{name}/a.txt")
        write(folder, f"{name}/done")
        taken_at(watched, clock, 0)
    assert lines == [
        "crawl-2024-30 sorts before crawl-2024-33: steps of later snapshots will run again"
    ]


def test_names_that_cannot_be_and_those_before_the_first(folder, watch):
    watched, clock, lines = watch(marker="done", since="day-2")
    for name in ("day-1", "day-2", "day-10", "day 3", ".hidden"):
        write(folder, f"{name}/a.txt")
        write(folder, f"{name}/done")
    assert taken_at(watched, clock, 0) == ["day-2", "day-10"]
    assert lines == ["day 3: no name for a snapshot: letters, digits, . _ and -"]


def test_a_folder_that_changes_while_it_is_read_is_taken_later(folder, watch, monkeypatch):
    watched, clock, lines = watch(settle=0.0)
    write(folder, "day/a.txt")
    take = arrivals.take_snapshot

    def changes(store, source):
        monkeypatch.setattr(arrivals, "take_snapshot", take)
        raise InputError("the file changed while it was read", where="a.txt")

    monkeypatch.setattr(arrivals, "take_snapshot", changes)
    taken_at(watched, clock, 0)
    assert taken_at(watched, clock, 1) == []
    assert lines == ["day is not taken: a.txt: the file changed while it was read"]
    assert taken_at(watched, clock, 2) == []
    assert taken_at(watched, clock, 3) == ["day"]


def test_a_place_that_is_away_is_said_once_and_looked_at_again(folder, watch):
    watched, clock, lines = watch(marker="done")
    folder.rename(folder.with_name("away"))
    for now in range(3):
        assert taken_at(watched, clock, now) == []
    assert len(lines) == 1
    assert "cannot be listed" in lines[0]
    folder.with_name("away").rename(folder)
    write(folder, "day/a.txt")
    write(folder, "day/done")
    assert taken_at(watched, clock, 5) == ["day"]


def test_a_bucket_is_watched_by_sizes_and_etags(s3_url, watch):
    import fsspec

    watched, clock, _ = watch(location=f"{s3_url}/crawls", series="crawl")
    with fsspec.open(f"{s3_url}/crawls/2024-30/a.txt", "wb") as file:
        file.write(b"one\n")
    assert taken_at(watched, clock, 0) == []
    with fsspec.open(f"{s3_url}/crawls/2024-30/a.txt", "wb") as file:
        file.write(b"two\n")
    assert taken_at(watched, clock, 100) == []
    assert taken_at(watched, clock, 160) == ["crawl-2024-30"]


def test_crawls_of_a_list_are_taken_as_they_are_listed(file_server, watch, monkeypatch):
    import gzip

    listing = [{"id": name} for name in ("CC-MAIN-2024-38", "CC-MAIN-2024-33", "no crawl", 7)]
    file_server.serve("/collinfo.json", json.dumps(listing, indent=1).encode())
    for name in ("CC-MAIN-2024-33", "CC-MAIN-2024-38"):
        file_server.serve(f"/{name}/a.warc.gz", b"bytes")
        paths = gzip.compress(f"{name}/a.warc.gz\n".encode())
        file_server.serve(f"/crawl-data/{name}/warc.paths.gz", paths)
    entry = {"first": 1, "mirror": file_server.url}
    location = f"{file_server.url}/collinfo.json"
    watched, clock, lines = watch(location=location, since="CC-MAIN-2024-30", entry=entry)
    assert taken_at(watched, clock, 0) == ["CC-MAIN-2024-33", "CC-MAIN-2024-38"]
    assert taken_at(watched, clock, 1) == []
    assert lines == []


def test_a_crawl_with_an_entry_that_cannot_be_reached_is_tried_again(file_server, watch):
    import gzip

    file_server.serve("/collinfo.json", b'[{"id": "CC-MAIN-2024-33"}]')
    file_server.serve("/crawl-data/CC-MAIN-2024-33/warc.paths.gz", gzip.compress(b"x/a.warc.gz\n"))
    entry = {"first": 1, "mirror": file_server.url}
    watched, clock, lines = watch(location=f"{file_server.url}/collinfo.json", entry=entry)
    assert taken_at(watched, clock, 0) == []
    assert len(lines) == 1
    assert "CC-MAIN-2024-33 is not taken" in lines[0]
    file_server.serve("/x/a.warc.gz", b"bytes")
    assert taken_at(watched, clock, 1) == ["CC-MAIN-2024-33"]


def test_a_web_server_and_a_list_that_is_none(file_server):
    with pytest.raises(UsageError, match="does not list its files"):
        look(Place("https://example.org/crawls"))
    file_server.serve("/collinfo.json", b"not json")
    with pytest.raises(InputError, match="expected a JSON list of crawls"):
        look(Place(f"{file_server.url}/collinfo.json"))
