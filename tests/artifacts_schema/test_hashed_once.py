"""A file that one process of a machine hashed is hashed by its neighbours only if it changed."""

from __future__ import annotations

import hashlib
import os
import signal
import time

import pytest
from forks import ended, fork

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.file_table import File
from artifacts_schema.store import cache
from artifacts_schema.store.backend import LocalBackend
from artifacts_schema.store.cache import cached_copy, is_hashed
from artifacts_schema.store.verify import checked_path

DATA = b"0123456789abcdef"
FILE = File(path="x", bytes=len(DATA), sha256=hashlib.sha256(DATA).hexdigest())


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "LOCK_POLL_SECONDS", 0.01)
    return tmp_path / "cache"


@pytest.fixture
def place(tmp_path):
    """The file, written long ago."""
    path = tmp_path / "store" / "x"
    path.parent.mkdir()
    path.write_bytes(DATA)
    os.utime(path, (1000, 1000))
    return path


@pytest.fixture
def ask(place, tmp_path):
    """`ask()`: whether the file is as it was; `ask.hashed` counts how often it was hashed, by any
    process."""
    notes = tmp_path / "notes"
    notes.write_bytes(b"")

    def sha256():
        with open(notes, "ab", buffering=0) as note:
            note.write(b".")
        time.sleep(0.05)
        return hashlib.sha256(place.read_bytes()).hexdigest()

    def check():
        return is_hashed(place, FILE, sha256)

    check.hashed = lambda: notes.stat().st_size
    return check


def test_of_many_processes_one_hashes(ask):
    def check():
        assert ask()

    children = [fork(check) for _ in range(6)]
    assert [ended(child) for child in children] == [0] * 6
    assert ask.hashed() == 1


def test_after_a_process_that_was_killed_at_it_another_hashes(ask, place):
    def hang():
        is_hashed(place, FILE, lambda: time.sleep(60))

    child = fork(hang)
    lock = lambda: list(place.parent.parent.glob("cache/files/*/*.hashed.lock"))  # noqa: E731
    while not lock():
        time.sleep(0.01)
    time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    assert ended(child) == -signal.SIGKILL
    assert ask()
    assert ask.hashed() == 1


@pytest.mark.parametrize("what", ["bytes", "bytes, the old time", "replaced", "cut record"])
def test_what_was_written_since_is_hashed_again(ask, place, folder, what):
    assert ask()
    if what == "cut record":
        for record in folder.glob("files/*/*.hashed"):
            record.write_bytes(record.read_bytes()[:-4])
        assert ask()
    elif what == "replaced":
        other = place.with_name("other")
        other.write_bytes(b"X" + DATA[1:])
        os.utime(other, (1000, 1000))
        os.replace(other, place)
        assert not ask()
    else:
        with open(place, "r+b") as file:
            file.write(b"X")
        if "time" in what:
            os.utime(place, (1000, 1000))
        assert not ask()
    assert ask.hashed() == 2


def test_a_started_machine_and_a_day_later_hash_again(ask, monkeypatch, folder):
    assert ask()
    monkeypatch.setattr(cache, "boot_id", lambda: "another")
    assert ask()
    assert ask.hashed() == 2
    assert ask()
    assert ask.hashed() == 2
    (record,) = folder.glob("files/*/*.hashed")
    os.utime(record, (time.time() - cache.RECORD_SECONDS - 1,) * 2)
    assert ask()
    assert ask.hashed() == 3


def test_a_file_that_was_just_written_is_hashed_again(ask, place):
    """It may be written once more in the same tick of the clock."""
    os.utime(place)
    assert ask()
    assert ask()
    assert ask.hashed() == 2


def test_without_a_cache_folder_each_hashes(ask, monkeypatch, tmp_path):
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "notes" / "cache"))
    assert ask()
    assert ask()
    assert ask.hashed() == 2


def counted_hashes(monkeypatch):
    """How many bytes of files are read to be hashed."""
    read, blocks = [], LocalBackend.blocks

    def count(self, path, size):
        for block in blocks(self, path, size):
            read.append(len(block))
            yield block

    monkeypatch.setattr(LocalBackend, "blocks", count)
    return read


def test_files_of_a_folder_that_ranks_share_are_hashed_once(place, monkeypatch):
    read = counted_hashes(monkeypatch)
    backend = LocalBackend(str(place.parent))

    def check(shared):
        return checked_path(backend, "x", FILE, full=True, owner=f"s {'f' * 64}", shared=shared)

    assert [check(True) for _ in range(8)] == [place] * 8
    assert sum(read) == len(DATA)
    check(False)
    assert sum(read) == 2 * len(DATA), "a process by itself hashes what it reads"
    place.write_bytes(b"X" + DATA[1:])
    with pytest.raises(CorruptArtifact, match="bytes changed"):
        check(True)
    place.write_bytes(DATA[1:])
    with pytest.raises(CorruptArtifact, match="from 16 to 15 bytes"):
        check(True)


def test_a_copy_is_not_hashed_again_by_those_who_find_it(place, monkeypatch):
    backend = LocalBackend(str(place.parent))
    hashed = []
    monkeypatch.setattr(cache, "_sha256", lambda path: hashed.append(path) or FILE.sha256)
    copy = cached_copy(backend, "x", FILE, full=True)
    for _ in range(8):
        assert cached_copy(backend, "x", FILE, full=True) == copy
    assert hashed == []
    copy.write_bytes(DATA)
    cached_copy(backend, "x", FILE, full=True)
    assert hashed == [copy]
