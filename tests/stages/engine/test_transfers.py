"""What fetches tell, from wherever they run, and how a stop reaches one that waits."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from artifacts_schema.errors import InputError, Stopped
from artifacts_schema.store import cache, layout
from flows.recipe.recipe import snapshot_entry
from flows.recipe.snapshots import take_snapshot
from stages.engine import transfers
from stages.engine.events import EventTail, EventWriter, HeldFile
from stages.engine.transfers import (
    Board,
    Relay,
    Transfer,
    pause,
    report_fetch,
    report_to,
    stoppable,
    watch_fetches,
)

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent.parent))
from fetching import Fetching
from file_server import Fault


@pytest.fixture(autouse=True)
def every_call_is_told(monkeypatch):
    monkeypatch.setattr(transfers, "TELL_SECONDS", 0.0)


@pytest.fixture
def progress(tmp_path, monkeypatch):
    """An event writer that thins nothing; `progress.lines()` are the progress lines it wrote."""
    monkeypatch.setattr("stages.engine.events.PROGRESS_SECONDS", 0.0)
    writer, tail = EventWriter(tmp_path / "e.jsonl"), EventTail(HeldFile().read)
    writer.lines = lambda: [
        f"{event['label']}: {event['done']} of {event['total']} {event['unit']}"
        for event in tail.read(str(tmp_path / "e.jsonl"))
    ]
    yield writer
    writer.close()


def never():
    return False


def test_a_board_shows_all_fetches_as_one_and_then_the_work_again(progress):
    board = Board(progress)
    progress.progress(1, 3, "shards", "read")
    board.note(Transfer("crawl/a.gz", 10, 100))
    board.note(Transfer("crawl/b.gz", 20, 300))
    board.note(Transfer("crawl/a.gz", 100, 100, ended=True))
    board.note(Transfer("crawl/b.gz", 300, 300, ended=True))
    board.note(Transfer("crawl/b.gz", 300, 300, ended=True))
    assert progress.lines() == [
        "read: 1 of 3 shards",
        "fetching a.gz: 10 of 100 bytes",
        "fetching 2 files: 30 of 400 bytes",
        "read: 1 of 3 shards",
    ]


def test_a_long_name_is_cut_in_front(progress):
    name = "CC-MAIN-20240802234508-20240803024508-00000.warc.gz"
    Board(progress).note(Transfer(f"segments/{name}", 1, 2))
    (line,) = progress.lines()
    assert line == f"fetching …{name[-27:]}: 1 of 2 bytes"


def test_a_fetch_that_fails_is_ended_as_well():
    seen = []

    def fetch():
        with report_fetch("a", 9) as come:
            come(4)
            raise InputError("cut")

    with watch_fetches(seen.append, never), pytest.raises(InputError):
        fetch()
    assert seen == [Transfer("a", 4, 9), Transfer("a", 9, 9, ended=True)]


def test_one_that_is_over_at_once_is_not_told(monkeypatch):
    monkeypatch.setattr(transfers, "TELL_SECONDS", 60.0)
    seen = []
    with watch_fetches(seen.append, never), report_fetch("a", 9) as come:
        come(9)
    assert seen == []


def test_nobody_need_watch():
    with report_fetch("a", 9) as come:
        come(9)
    pause(0.0)
    assert list(stoppable(lambda: iter([b"a", b"b"]))) == [b"a", b"b"]


def _work(sender, number):
    report_to(sender)
    with report_fetch(f"folder/{number}" + "x" * 5000, 10) as come:
        come(number)


def test_workers_tell_the_process_that_made_them():
    context, relay, seen = multiprocessing.get_context("fork"), Relay(), []
    workers = [context.Process(target=_work, args=(relay.sender, n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with watch_fetches(seen.append, never):
        relay.forward()
        relay.forward()
    relay.close()
    assert sorted((each.done, each.ended) for each in seen) == [
        (0, False), (1, False), (2, False), (10, True), (10, True), (10, True),
    ]  # fmt: skip
    assert {len(each.name) for each in seen} == {255}


def test_a_worker_that_waits_for_a_copy_of_another_process_tells_that_it_lives(monkeypatch):
    for place, name in (
        (cache, "on_wait"),
        (transfers._watch, "tell"),
        (transfers._watch, "waits"),
    ):
        monkeypatch.setattr(place, name, getattr(place, name))
    monkeypatch.setattr(transfers, "WAITS_SECONDS", 0.0)
    relay = Relay()
    report_to(relay.sender)
    cache.on_wait()
    assert relay.forward() == {os.getpid()}
    relay.close()


def test_a_worker_that_is_not_listened_to_goes_on(monkeypatch):
    relay = Relay()
    monkeypatch.setattr(transfers._watch, "tell", None)
    report_to(relay.sender)
    with report_fetch("a" * 255, 10_000) as come:
        for number in range(10_000):  # Some 3 MB into a pipe of 64 kB.
            come(number)
    monkeypatch.setattr(transfers._watch, "tell", None)
    seen = []
    with watch_fetches(seen.append, never):
        relay.forward()
    relay.close()
    assert [each.done for each in seen] == list(range(len(seen)))
    assert len(json.dumps([list(vars(seen[0]).values())])) * len(seen) < 70_000


def test_what_the_reader_raises_is_raised_here():
    def blocks():
        yield b"a"
        raise InputError("gone: a.warc")

    stream = stoppable(blocks)
    assert next(stream) == b"a"
    with pytest.raises(InputError, match=r"a\.warc"):
        next(stream)


def test_a_stop_is_seen_while_nothing_comes():
    silent, waits, stop = threading.Event(), threading.Event(), threading.Event()

    def blocks():
        yield b"a"
        waits.set()
        silent.wait(60)

    try:
        with watch_fetches(lambda transfer: None, stop.is_set):
            stream = stoppable(blocks)
            assert next(stream) == b"a"
            assert waits.wait(30)
            stop.set()
            with pytest.raises(Stopped):
                list(stream)
    finally:
        silent.set()


def test_a_reader_that_nobody_reads_any_more_ends():
    ended = threading.Event()

    def blocks():
        try:
            while True:
                yield b"x"
        finally:
            ended.set()

    stream = stoppable(blocks)
    next(stream)
    stream.close()
    assert ended.wait(30)


def test_a_pause_does_not_outlast_a_stop():
    asked = iter([False, False, True])
    with watch_fetches(lambda transfer: None, lambda: next(asked)), pytest.raises(Stopped):
        pause(3600.0)


def test_who_watched_before_watches_again():
    outer, inner = [], []
    with watch_fetches(outer.append, never):
        with watch_fetches(inner.append, never), report_fetch("a", 1) as come:
            come(1)
        with report_fetch("b", 1) as come:
            come(1)
    assert ({each.name for each in inner}, {each.name for each in outer}) == ({"a"}, {"b"})


@pytest.fixture
def pinned(file_server, store):
    """Three files of 3 MB behind a server, as a snapshot; the paths they have there."""
    paths = [f"/{name}.bin" for name in "abc"]
    urls = [file_server.serve(path, path.encode() * 600_000) for path in paths]
    source = snapshot_entry("three", {"files": urls}, "test")
    return paths, [(take_snapshot(store, source), "snapshot")]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_tells_its_fetches_wherever_they_run(run_stage, store, pinned, monkeypatch, workers):
    paths, given = pinned
    monkeypatch.setattr("stages.engine.events.PROGRESS_SECONDS", 0.0)
    made = run_stage(Fetching, inputs={"snapshot": given}, execution={"workers": workers})
    assert made.counts["bytes"] == sum(len(path) * 600_000 for path in paths)
    kept = layout.payload(made.stage, made.key, made.attempt) + "/telemetry/events.jsonl"
    events = [json.loads(line) for line in store.backend.read(kept).splitlines()]
    told = [event for event in events if event["type"] == "progress"]
    fetches = [event for event in told if event["unit"] == "bytes"]
    assert fetches
    assert all(event["label"].startswith("fetching ") for event in fetches)
    assert (told[-1]["done"], told[-1]["total"], told[-1]["label"]) == (3, 3, "read")


@pytest.mark.full
@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_is_stopped_in_a_fetch_goes_on_there(
    run_stage, store, pinned, file_server, workers
):
    paths, given = pinned
    hold, size = threading.Event(), len(paths[0]) * 600_000
    for path in paths:
        file_server.faults[path] = [Fault(cut=2_000_000, hold=hold)]
    run = partial(run_stage, Fetching, inputs={"snapshot": given}, execution={"workers": workers})
    parts = Path(os.environ["INGOT_CACHE"]) / "sources"

    def arrived():
        return [path.stat().st_size for path in parts.glob("*/*.part")]

    try:
        with pytest.raises(Stopped):
            run(stop=lambda: arrived().count(2_000_000) == workers)
    finally:
        hold.set()
    assert run().counts["bytes"] == 3 * size
    gets = [asked for asked in file_server.asked if asked.method == "GET"]
    assert sum(asked.sent for asked in gets) == 3 * size
