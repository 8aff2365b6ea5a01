"""Remote files come whole and unchanged, whatever the line and the server do, or not at all."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from artifacts_schema.errors import InputError, StoreError
from artifacts_schema.store import cache
from stages.engine.fetch import open_copy, query_identity
from stages.engine.remote import (
    AccessDenied,
    Identity,
    NoSuchFile,
    RetryPolicy,
    SourceChanged,
)

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
from file_server import Fault

MIB = 1 << 20
DATA = bytes(range(256)) * (5 * MIB // 256) + b"the end"
PATH = "/crawl/a.warc.gz"


@pytest.fixture
def waits():
    """The seconds that `patience` was asked to wait, which it did not."""
    return []


@pytest.fixture
def patience(waits):
    return RetryPolicy(attempts=4, sleep=waits.append, jitter=lambda: 1.0)


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


def test_a_file_is_fetched_once_and_is_seekable(file_server, served, patience):
    with open_copy(*served, policy=patience) as file:
        assert file.read() == DATA
        file.seek(-7, os.SEEK_END)
        assert file.read() == b"the end"
    assert read(served, patience) == DATA
    assert file_server.sent(PATH) == len(DATA)


def test_what_the_server_says_is_the_identity(file_server, patience):
    date = "Tue, 15 Nov 1994 12:45:26 GMT"
    url = file_server.serve("/a", b"12345", etag='"abc"', modified=date)
    assert query_identity(url, patience) == Identity(5, '"abc"')
    url = file_server.serve("/a", b"12345", etag='W/"abc"', modified=date)
    assert query_identity(url, patience) == Identity(5, date)
    url = file_server.serve("/a", b"12345", etag='"abc"', head=False)
    assert query_identity(url, patience) == Identity(
        5, '"abc"'
    )  # From the first byte's Content-Range.


@pytest.mark.parametrize(
    ("how", "missing"),
    [
        ({"etag": None}, "ETag.*Last-Modified"),
        ({"etag": 'W/"weak"'}, "ETag.*Last-Modified"),
        ({"etag": "x" * 300}, "ETag.*Last-Modified"),
        ({"told_length": -1, "ranges": False}, "Content-Length"),
    ],
)
def test_a_server_that_gives_no_identity_is_refused(file_server, patience, how, missing):
    url = file_server.serve("/a", b"12345", **how)
    with pytest.raises(InputError, match=missing):
        query_identity(url, patience)


def test_a_cut_connection_goes_on_where_it_was(file_server, served, patience, waits):
    file_server.faults[PATH] = [Fault(cut=2 * MIB + 5), Fault(cut=MIB)]
    assert read(served, patience) == DATA
    assert file_server.sent(PATH) == len(DATA)
    assert [asked.range for asked in file_server.asked] == [
        None,
        f"bytes={2 * MIB + 5}-",
        f"bytes={3 * MIB + 5}-",
    ]
    assert waits == [1.0, 1.0]  # A megabyte came in between, so the wait does not double.


def test_waits_double_and_follow_the_server_that_names_one(file_server, served, patience, waits):
    file_server.faults[PATH] = [
        Fault(status=503),
        Fault(status=500),
        Fault(status=429, headers={"Retry-After": "17"}),
    ]
    assert read(served, patience) == DATA
    assert waits == [1.0, 2.0, 17.0]
    half = RetryPolicy(sleep=waits.append, jitter=lambda: 0.0)
    file_server.faults["/b"] = [Fault(status=503), Fault(status=503, headers={"Retry-After": "x"})]
    url = file_server.serve("/b", b"b")
    assert read((url, query_identity(url, half)), half) == b"b"
    assert waits[3:] == [0.5, 1.0]


def test_after_some_tries_there_is_one_clear_error(file_server, served, patience, waits):
    file_server.faults[PATH] = [Fault(cut=9)] + [Fault(status=503)] * 4
    with pytest.raises(InputError, match=r"a\.warc\.gz: .*503.*\b4\b"):
        read(served, patience)
    assert waits == [1.0, 2.0, 4.0]
    assert read(served, patience) == DATA  # What had arrived was kept.
    assert file_server.sent(PATH) == len(DATA)


def test_nobody_there_is_told_without_a_query(file_server, patience):
    file_server.close()
    url = f"{file_server.url}/a?name=value"
    with pytest.raises(InputError, match=r"/a\?…: .*\b4\b"):
        query_identity(url, patience)


def test_a_server_without_ranges_sends_all_again(file_server, served, patience):
    file_server.files[PATH].ranges = False
    file_server.faults[PATH] = [Fault(cut=3 * MIB)]
    assert read(served, patience) == DATA
    assert file_server.sent(PATH) == 3 * MIB + len(DATA)


def test_a_part_that_was_not_asked_for_is_not_taken(file_server, served, patience):
    file_server.files[PATH].told_start = 0
    file_server.faults[PATH] = [Fault(cut=3 * MIB)]
    with pytest.raises(InputError) as caught:
        read(served, patience)
    assert caught.value.where == served[0]


def test_a_last_modified_date_resumes_as_an_etag_does(file_server, patience):
    url = file_server.serve(PATH, DATA, etag=None, modified="Tue, 15 Nov 1994 12:45:26 GMT")
    file_server.faults[PATH] = [Fault(cut=3 * MIB)]
    assert read((url, query_identity(url, patience)), patience) == DATA
    assert file_server.sent(PATH) == len(DATA)


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": DATA[::-1]}, r"a\.warc"),
        ({"data": DATA + b"!", "etag": "same"}, "5,242,888.*5,242,887"),
        ({"data": DATA[:-1], "etag": "same"}, "5,242,886"),
        ({"data": DATA + b"!", "etag": "same", "told_length": -1}, "5,242,887"),
    ],
)
def test_a_changed_file_is_refused(file_server, served, patience, changed, message, begun):
    if begun:
        file_server.faults[PATH] = [Fault(cut=3 * MIB), *[Fault(status=503)] * 4]
        with pytest.raises(InputError, match="503"):
            read(served, patience)
    how = {"ranges": False} if "told_length" in changed else {}
    if changed.get("etag") == "same":
        changed = {**changed, "etag": served[1].etag}
    file_server.serve(PATH, **changed, **how)
    with pytest.raises(SourceChanged, match=message):
        read(served, patience)
    assert copies() == []


def test_a_body_shorter_than_told_is_not_taken(file_server, served, patience):
    file_server.serve(PATH, DATA[:-1], etag=served[1].etag, told_length=len(DATA))
    file_server.faults[PATH] = [Fault(cut=len(DATA) - 1) for _ in range(4)]
    with pytest.raises(InputError, match=r"\b4\b"):
        read(served, patience)


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (404, NoSuchFile, "a.warc.gz"),
        (410, NoSuchFile, "a.warc.gz"),
        (403, AccessDenied, "403"),
        (418, InputError, "418"),
    ],
)
def test_what_asking_again_will_not_mend_is_told_at_once(
    file_server, served, patience, waits, status, kind, message
):
    file_server.faults[PATH] = [Fault(status=status)]
    with pytest.raises(kind, match=message):
        read(served, patience)
    assert waits == []


def test_redirects_are_followed_to_safe_places_only(file_server, served, patience):
    def lead(to, old="/old"):
        file_server.faults[old] = [Fault(status=302, headers={"Location": to})]
        return f"{file_server.url}{old}", served[1]

    assert read(lead(PATH), patience) == DATA
    for to in (
        "ftp://h/a",
        "http://example.org/a",
        "//user:word@127.0.0.1/a",
        "file:///etc/passwd",
    ):
        with pytest.raises(InputError, match=re.escape(to.replace("user:word@", "…@"))) as caught:
            read(lead(to, "/unsafe"), patience)
        assert "word" not in str(caught.value)
    file_server.faults["/round"] = [Fault(status=302, headers={"Location": "/round"})] * 9
    with pytest.raises(InputError, match=r"\b5\b"):
        read((f"{file_server.url}/round", served[1]), patience)


def test_https_is_never_left_for_http():
    from stages.engine.web import _next

    start = "https://example.org/a"
    assert _next(start, start, "//cdn.example/b?sig=1") == "https://cdn.example/b?sig=1"
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1/b"):
        _next(start, start, "http://127.0.0.1/b")


def test_a_certificate_that_nobody_vouches_for_is_refused(file_server, patience, waits, tmp_path):
    url = file_server.speak_tls(tmp_path).replace("127.0.0.1", "localhost")
    with pytest.raises(InputError, match=r"self.signed"):
        query_identity(f"{url}{PATH}", patience)
    assert waits == []


def test_a_damaged_copy_is_fetched_again(file_server, served, patience):
    read(served, patience)
    (copy,) = copies()
    copy.write_bytes(b"x" + DATA[1:])
    with open_copy(*served, check=False, policy=patience) as file:
        assert file.read(1) == b"x"  # Who asked for no check gets none but of the size.
    assert read(served, patience) == DATA
    copy.write_bytes(DATA[:-1])
    with open_copy(*served, check=False, policy=patience) as file:
        assert file.read() == DATA
    assert file_server.sent(PATH) == 3 * len(DATA)


CHILD = """
import sys
from stages.engine.fetch import open_copy
from stages.engine.remote import Identity
open_copy(sys.argv[1], Identity(int(sys.argv[2]), sys.argv[3]))
"""


@pytest.mark.faults
def test_killed_in_the_midst_only_the_rest_is_fetched(file_server, served, patience):
    hold = threading.Event()
    file_server.faults[PATH] = [Fault(cut=3 * MIB, hold=hold)]
    url, pinned = served
    child = subprocess.Popen([sys.executable, "-c", CHILD, url, str(pinned.bytes), pinned.etag])
    try:
        part = None
        deadline = time.monotonic() + 60
        while part is None or part.stat().st_size < 3 * MIB:
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
            part = next(iter(copies()), None)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        hold.set()
    assert read(served, patience) == DATA
    assert file_server.asked[-1].range == f"bytes={3 * MIB}-"
    assert file_server.asked[-1].sent == len(DATA) - 3 * MIB


def _fetch(url, pinned, barrier, results):
    barrier.wait()
    with open_copy(url, pinned) as file:
        results.put(file.read() == DATA)


def test_processes_that_want_the_same_file_fetch_it_once(file_server, served):
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(3), context.Queue()
    workers = [context.Process(target=_fetch, args=(*served, barrier, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    assert [results.get(timeout=60) for _ in workers] == [True] * 3
    for worker in workers:
        worker.join()
    assert file_server.sent(PATH) == len(DATA)
    assert len(copies()) == 1


def test_the_least_recently_opened_copy_makes_room(file_server, patience, monkeypatch):
    monkeypatch.setenv("INGOT_CACHE_SIZE", "2500")
    monkeypatch.setattr(cache, "IN_USE_SECONDS", -1.0)
    files = {name: file_server.serve(f"/{name}", name.encode() * 1000) for name in "abc"}
    pinned = {name: (url, query_identity(url, patience)) for name, url in files.items()}
    for age, name in enumerate("ab"):
        read(pinned[name], patience)
        (new,) = [p for p in copies() if p.read_bytes()[:1] == name.encode()]
        os.utime(new, (age, age))
    read(pinned["a"], patience)  # Opened again, so `b` is the older one now.
    read(pinned["c"], patience)
    assert sorted(p.read_bytes()[:1] for p in copies()) == [b"a", b"c"]
    big = file_server.serve("/big", bytes(3000))
    with pytest.raises(StoreError, match=r"3,000.*2,500"):
        read((big, query_identity(big, patience)), patience)


def test_a_cache_that_cannot_be_written_is_told(file_server, served, patience, tmp_path):
    (tmp_path / "node-cache").mkdir()
    (tmp_path / "node-cache" / "sources").write_text("not a folder")
    with pytest.raises(StoreError, match="INGOT_CACHE"):
        read(served, patience)


def test_https_goes_through_the_proxy_of_the_environment_and_loopback_never(monkeypatch):
    from stages.engine.web import _pool, _proxy

    for name in ("https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://me:word@proxy.example:3128")
    proxy = _proxy("https://data.commoncrawl.org/a")
    assert _proxy("http://127.0.0.1:8000/a") is None
    pool = _pool(proxy)
    assert (pool.proxy.host, pool.proxy.port, pool.proxy.auth) == ("proxy.example", 3128, None)
    assert pool.proxy_headers == {"proxy-authorization": "Basic bWU6d29yZA=="}
    assert pool.connection_pool_kw.get("cert_reqs") in (None, "CERT_REQUIRED")
    monkeypatch.setenv("NO_PROXY", "commoncrawl.org")
    assert _proxy("https://data.commoncrawl.org/a") is None
