"""The node's cache: what it serves is what the manifest names, and it stays within its bounds."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import threading
import time
from dataclasses import dataclass, field

import pytest

from artifacts_schema.errors import CorruptArtifact, StoreError, UsageError
from artifacts_schema.file_table import File
from artifacts_schema.store import cache
from artifacts_schema.store.backend import LocalBackend
from artifacts_schema.store.cache import cache_folder, cached_copy, size_limit
from artifacts_schema.store.verify import checked_path


@dataclass
class FakeBucket:
    """A remote backend of which only downloads are asked; counts them."""

    content: dict[str, bytes]
    fetched: list[str] = field(default_factory=list)
    full_disk: int = 0
    local = False

    def full(self, path):
        return f"s3://bucket/{path}"

    def blocks(self, path, size):
        self.fetched.append(path)
        if path not in self.content:
            raise FileNotFoundError(path)
        if self.full_disk:
            self.full_disk -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield from (self.content[path][i : i + 10] for i in range(0, size, 10))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The cache of this test, without a bound unless it sets one."""
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("INGOT_CACHE_SIZE", raising=False)
    return tmp_path / "cache"


def file_of(data):
    return File(path="x", bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def copies(folder):
    return {p.name for p in (folder / "files").glob("??/*") if not p.suffix}


def age(path, seconds):
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_a_file_is_fetched_once_whatever_asks_for_its_bytes():
    data = b"some bytes" * 3
    bucket = FakeBucket({"a": data, "b": data})
    one = cached_copy(bucket, "a", file_of(data), full=True)
    assert one.read_bytes() == data
    assert cached_copy(bucket, "b", file_of(data), full=True) == one
    assert bucket.fetched == ["a"]


def test_a_cut_copy_is_never_served():
    data = b"0123456789abcdef"
    bucket = FakeBucket({"a": data})
    copy = cached_copy(bucket, "a", file_of(data), full=False)
    copy.write_bytes(data[:-1])
    assert cached_copy(bucket, "a", file_of(data), full=False).read_bytes() == data
    assert len(bucket.fetched) == 2


def test_a_copy_with_a_changed_byte_is_never_served_to_a_full_check():
    data = b"0123456789abcdef"
    bucket = FakeBucket({"a": data})
    copy = cached_copy(bucket, "a", file_of(data), full=True)
    copy.write_bytes(b"X" + data[1:])
    assert cached_copy(bucket, "a", file_of(data), full=True).read_bytes() == data


def test_bytes_hurt_on_the_way_are_fetched_again():
    data = b"0123456789abcdef"
    bucket = FakeBucket({"a": b"X" + data[1:]})
    blocks = bucket.blocks

    def heal(path, size):
        yield from blocks(path, size)
        bucket.content["a"] = data

    bucket.blocks = heal
    assert cached_copy(bucket, "a", file_of(data), full=False).read_bytes() == data
    assert len(bucket.fetched) == 2


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"a": b"X123456789"}, "the file's bytes changed since it was committed by s "),
        ({"a": b"0123"}, "the file's bytes changed since it was committed by s "),
        ({}, "the file is gone since it was committed by s "),
    ],
)
def test_damage_in_the_store_is_named_and_nothing_is_kept(folder, content, what):
    bucket = FakeBucket(content)
    with pytest.raises(CorruptArtifact, match=what) as caught:
        checked_path(bucket, "a", file_of(b"0123456789"), full=False, owner=f"s {'f' * 64}")
    assert "s3://bucket/a" in str(caught.value)
    assert copies(folder) == set()
    assert list((folder / "files").glob("??/*.partial")) == []


@pytest.fixture
def ask(tmp_path):
    """`ask(content, copied=True)`: the checked path of a file of a folder that was `0123456789`."""

    def check(content, copied=True):
        place = tmp_path / "store" / "a"
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
        if content is not None:
            place.write_bytes(content)
        backend, file = LocalBackend(str(place.parent)), file_of(b"0123456789")
        return checked_path(backend, "a", file, full=True, owner=f"s {'f' * 64}", copied=copied)

    return check


def test_a_file_of_a_folder_is_copied_where_asked_and_verified_once(ask, folder, monkeypatch):
    assert ask(b"0123456789", copied=False).parent.name == "store"
    copy = ask(b"0123456789")
    assert folder in copy.parents
    assert copy.read_bytes() == b"0123456789"
    monkeypatch.setattr(cache.hashlib, "file_digest", None)  # Called, it would be an error.
    assert ask(None) == copy


@pytest.mark.parametrize("content", [b"X123456789", b"0123", None])
def test_damage_in_a_folder_is_found_when_it_is_copied(ask, folder, content):
    with pytest.raises(CorruptArtifact, match="since it was committed by s "):
        ask(content)
    assert copies(folder) == set()


def test_of_many_who_ask_at_once_one_fetches():
    data = os.urandom(1000)
    bucket, found = FakeBucket({"a": data}), []
    threads = [
        threading.Thread(
            target=lambda: found.append(
                cached_copy(bucket, "a", file_of(data), full=True).read_bytes()
            )
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [data] * 8
    assert bucket.fetched == ["a"]


def test_the_least_recently_used_copy_goes_first(folder, monkeypatch):
    """Three copies of 100 bytes in room for 250: of two old ones, the one used later stays."""
    monkeypatch.setenv("INGOT_CACHE_SIZE", "250")
    contents = {name: name.encode() * 100 for name in "abc"}
    bucket = FakeBucket(contents)
    files = {name: file_of(data) for name, data in contents.items()}
    for name, seconds in (("a", 3600), ("b", 7200)):
        age(cached_copy(bucket, name, files[name], full=False), seconds)
    cached_copy(bucket, "c", files["c"], full=False)
    assert copies(folder) == {files["a"].sha256, files["c"].sha256}


def test_asking_for_a_copy_makes_it_the_youngest(folder, monkeypatch):
    monkeypatch.setenv("INGOT_CACHE_SIZE", "250")
    contents = {name: name.encode() * 100 for name in "abc"}
    bucket = FakeBucket(contents)
    files = {name: file_of(data) for name, data in contents.items()}
    for name, seconds in (("a", 3600), ("b", 7200)):
        age(cached_copy(bucket, name, files[name], full=False), seconds)
    cached_copy(bucket, "b", files["b"], full=False)
    cached_copy(bucket, "c", files["c"], full=False)
    assert copies(folder) == {files["b"].sha256, files["c"].sha256}


def test_a_copy_that_was_just_handed_out_is_not_removed(folder, monkeypatch):
    monkeypatch.setenv("INGOT_CACHE_SIZE", "150")
    bucket = FakeBucket({"a": b"a" * 100, "b": b"b" * 100})
    one = cached_copy(bucket, "a", file_of(b"a" * 100), full=False)
    cached_copy(bucket, "b", file_of(b"b" * 100), full=False)
    assert one.exists()


def test_a_file_larger_than_the_cache_says_what_to_set(monkeypatch):
    monkeypatch.setenv("INGOT_CACHE_SIZE", "99")
    bucket = FakeBucket({"a": b"a" * 100})
    with pytest.raises(StoreError, match=r"\b100\b.*\b99\b") as caught:
        cached_copy(bucket, "a", file_of(b"a" * 100), full=False)
    assert "INGOT_CACHE_SIZE" in caught.value.hint


def test_a_full_disk_costs_idle_copies_before_it_is_an_error(folder):
    bucket = FakeBucket({"old": b"o" * 50, "new": b"n" * 50})
    age(cached_copy(bucket, "old", file_of(b"o" * 50), full=False), 3600)
    bucket.full_disk = 1
    cached_copy(bucket, "new", file_of(b"n" * 50), full=False)
    assert copies(folder) == {file_of(b"n" * 50).sha256}


def test_a_disk_that_stays_full_is_one_clear_error():
    bucket = FakeBucket({"a": b"a" * 50}, full_disk=9)
    with pytest.raises(StoreError, match="50") as caught:
        cached_copy(bucket, "a", file_of(b"a" * 50), full=False)
    assert "INGOT_CACHE" in caught.value.hint
    assert len(bucket.fetched) == 2


def test_a_killed_fill_leaves_nothing_that_stays(folder):
    data = b"0123456789"
    left = folder / "files" / file_of(data).sha256[:2] / f"{file_of(data).sha256}.12ab.partial"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"0123")
    age(left, 100_000)
    assert cached_copy(FakeBucket({"a": data}), "a", file_of(data), full=False).read_bytes() == data
    assert not left.exists()


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("2kB", 2000), ("1.5 GB", 1_500_000_000), ("3T", 3 * 10**12)]
)
def test_the_bound_is_a_size(monkeypatch, tmp_path, text, size):
    monkeypatch.setenv("INGOT_CACHE_SIZE", text)
    assert size_limit(tmp_path, 0) == size


def test_a_bound_that_is_no_size_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("INGOT_CACHE_SIZE", "much")
    with pytest.raises(UsageError, match="much"):
        size_limit(tmp_path, 0)


def test_a_cache_that_cannot_be_made_names_the_variable(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(StoreError, match="INGOT_CACHE"):
        cache_folder()


# Waiting for another process ----------------------------------------------------------------------


def test_who_waits_for_another_process_says_so(folder, monkeypatch):
    """Else a worker that waits long is taken for stuck."""
    data = b"some bytes"
    file, bucket, told = file_of(data), FakeBucket({"a": data}), []
    place = folder / "files" / file.sha256[:2]
    place.mkdir(parents=True)
    monkeypatch.setattr(cache, "LOCK_POLL_SECONDS", 0.0)
    with open(place / f"{file.sha256}.lock", "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def tell():
            told.append(list(bucket.fetched))
            if len(told) == 3:
                fcntl.flock(other, fcntl.LOCK_UN)

        monkeypatch.setattr(cache, "on_wait", tell)
        assert cached_copy(bucket, "a", file, full=True).read_bytes() == data
    assert told == [[], [], []]


def test_nobody_waits_for_the_copy_of_another_file(folder, monkeypatch):
    """Not even of one that lies in the same folder."""
    files = [file_of(b"%d" % number) for number in range(1000)]
    same = [file for file in files if file.sha256[:2] == files[0].sha256[:2]]
    number = files.index(same[1])
    bucket = FakeBucket({"a": b"%d" % number})

    def tell():
        raise AssertionError("it waits")

    monkeypatch.setattr(cache, "on_wait", tell)
    place = folder / "files" / same[0].sha256[:2]
    place.mkdir(parents=True)
    with cache._lock_copy(place / same[0].sha256):
        assert cached_copy(bucket, "a", same[1], full=True).is_file()


def test_locks_that_nobody_used_for_a_day_are_removed(folder):
    bucket = FakeBucket({"a": b"old", "b": b"new"})
    old = cached_copy(bucket, "a", file_of(b"old"), full=True)
    lock = old.with_name(f"{old.name}.lock")
    age(lock, cache.ABANDONED_SECONDS + 60)
    cached_copy(bucket, "b", file_of(b"new"), full=True)
    assert old.is_file()
    assert not lock.exists()


def test_the_folder_of_the_cache_is_made_for_its_user_alone(tmp_path, monkeypatch):
    """Copies of a store that a group shares must not be read by others."""
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "new"))
    assert cache_folder().stat().st_mode & 0o777 == 0o700
    (tmp_path / "old").mkdir()
    (tmp_path / "old").chmod(0o750)
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "old"))
    assert cache_folder().stat().st_mode & 0o777 == 0o750  # As somebody chose.
