"""A fetch that is stopped, waits, fills the disk or brings hurt bytes: what is told and kept."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import sys
import threading
from pathlib import Path

import pytest

from artifacts_schema.errors import InputError, Stopped, StoreError
from artifacts_schema.store import cache
from stages.engine import fetch, transfers
from stages.engine.fetch import open_copy
from stages.engine.remote import Identity, RetryPolicy, SourceChanged
from stages.engine.transfers import watch_fetches

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
from file_server import Fault

MIB = 1 << 20
DATA = bytes(range(256)) * (5 * MIB // 256) + b"the end"
PATH = "/crawl/a.warc.gz"


@pytest.fixture
def patience():
    return RetryPolicy(attempts=4, sleep=lambda seconds: None)


@pytest.fixture
def served(file_server):
    """URL and identity of DATA on the server."""
    url = file_server.serve(PATH, DATA)
    return url, Identity(len(DATA), file_server.files[PATH].etag)


def read(served, patience):
    with open_copy(*served, policy=patience) as file:
        return file.read()


def copies():
    """Files of the cache."""
    return sorted(p for p in (cache.cache_folder() / "sources").rglob("*") if p.is_file())


def arrived():
    """Bytes of the part that lies in the cache."""
    return sum(path.stat().st_size for path in copies())


def test_a_stop_ends_a_fetch_while_the_line_is_silent_and_keeps_the_part(
    file_server, served, patience
):
    hold = threading.Event()
    file_server.faults[PATH] = [Fault(cut=3 * MIB, hold=hold)]
    try:
        with (
            watch_fetches(lambda transfer: None, lambda: arrived() == 3 * MIB),
            pytest.raises(Stopped),
        ):
            read(served, patience)
    finally:
        hold.set()
    assert read(served, patience) == DATA
    assert file_server.asked[-1].range == f"bytes={3 * MIB}-"


def test_a_stop_ends_the_wait_after_a_fault(file_server, served):
    file_server.faults[PATH] = [Fault(status=503, headers={"Retry-After": "200"})]
    with (
        watch_fetches(lambda transfer: None, lambda: file_server.count("GET") > 0),
        pytest.raises(Stopped),
    ):
        read(served, RetryPolicy())


def test_who_waits_for_another_process_tells_its_progress_and_can_be_stopped(
    file_server, served, patience, monkeypatch
):
    monkeypatch.setattr(transfers, "TELL_SECONDS", 0.0)
    file_server.faults[PATH] = [Fault(cut=3 * MIB), *[Fault(status=503)] * 4]
    with pytest.raises(InputError):
        read(served, patience)
    (part,) = copies()
    seen = []
    with open(part, "rb") as other, watch_fetches(seen.append, lambda: bool(seen)):
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Stopped):
            read(served, patience)
    assert [(each.done, each.ended) for each in seen] == [(3 * MIB, False), (len(DATA), True)]
    assert read(served, patience) == DATA


def test_a_fetch_tells_what_has_come(file_server, served, patience, monkeypatch):
    monkeypatch.setattr(transfers, "TELL_SECONDS", 0.0)
    seen = []
    with (
        watch_fetches(seen.append, lambda: False),
        open_copy(*served, name="a/b.gz", policy=patience),
    ):
        pass
    assert {(each.name, each.total) for each in seen} == {("a/b.gz", len(DATA))}
    assert [each.done for each in seen] == sorted(each.done for each in seen)
    assert [each.ended for each in seen] == [False] * (len(seen) - 1) + [True]
    with watch_fetches(seen.append, lambda: False), open_copy(*served, policy=patience):
        assert seen[-1].name == "a/b.gz"  # A copy that is there is not told.


class Full(io.FileIO):
    """A file on a disk that has room for 2 MiB."""

    def write(self, data):
        if self.tell() + len(data) > 2 * MIB:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def test_a_full_disk_is_one_clear_error_and_what_arrived_is_kept(
    file_server, served, patience, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr(fetch, "open", lambda path, mode, **_: Full(path, "a+"), raising=False)
        with pytest.raises(StoreError, match="No space left"):
            read(served, patience)
    kept = arrived()
    assert 0 < kept <= 2 * MIB
    assert read(served, patience) == DATA
    assert file_server.asked[-1].range == f"bytes={kept}-"


SHA256 = hashlib.sha256(DATA).hexdigest()


def test_a_checksum_is_the_identity_where_it_is_known(file_server, patience):
    file_server.faults[PATH] = [Fault(cut=3 * MIB)]
    url = file_server.serve(PATH, DATA, etag='"changes-each-time"')
    pinned = Identity(len(DATA), "", SHA256)
    assert read((url, pinned), patience) == DATA
    assert [asked.range for asked in file_server.asked] == [None, f"bytes={3 * MIB}-"]
    elsewhere = file_server.serve("/other/place", DATA)
    assert read((elsewhere, pinned), patience) == DATA
    assert file_server.sent("/other/place") == 0  # The same bytes lie here already.


def test_bytes_that_were_hurt_on_the_way_come_again(file_server, patience):
    url = file_server.serve(PATH, DATA)
    pinned = Identity(len(DATA), "", SHA256)
    file_server.faults[PATH] = [Fault(cut=3 * MIB), *[Fault(status=503)] * 4]
    with pytest.raises(InputError):
        read((url, pinned), patience)
    (part,) = copies()
    part.write_bytes(b"!" * (3 * MIB))
    assert read((url, pinned), patience) == DATA
    file_server.serve(PATH, DATA[::-1])
    other = Identity(len(DATA), "", "0" * 64)
    with pytest.raises(SourceChanged, match=PATH.rpartition("/")[2]):
        read((url, other), patience)


def test_an_etag_that_a_proxy_weakened_is_the_same(file_server, served, patience):
    file_server.serve(PATH, DATA, etag=f"W/{served[1].etag}")
    assert read(served, patience) == DATA
