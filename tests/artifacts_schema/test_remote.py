"""A bucket that many write to, over a network that breaks."""

from __future__ import annotations

import importlib.util
import os
import pickle
import socket
import sys
import threading
import traceback
from pathlib import Path

import pytest

from artifacts_schema.errors import CorruptArtifact, StoreError, UsageError
from artifacts_schema.store import Store, remote
from artifacts_schema.store.backend import Range
from artifacts_schema.store.remote import backend_at
from artifacts_schema.store.storage_errors import Unreachable, to_storage_error

spec = importlib.util.spec_from_file_location(
    "faulty_proxy", Path(__file__).parent.parent / "faulty_proxy.py"
)
faulty_proxy = importlib.util.module_from_spec(spec)
sys.modules["faulty_proxy"] = faulty_proxy
spec.loader.exec_module(faulty_proxy)
Fault = faulty_proxy.Fault


@pytest.fixture
def waits(monkeypatch):
    """The waits between tries, which take no time here."""
    found = []
    monkeypatch.setattr(remote, "sleep", found.append)
    return found


@pytest.fixture
def proxy(s3_url, s3_server, monkeypatch):
    """A faulty network before the server; requests are tried twice, ranges are small."""
    monkeypatch.setattr(remote, "TRIES", 2)
    with faulty_proxy.FaultyProxy(s3_server) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        yield proxy


@pytest.fixture
def backend(s3_url):
    return backend_at(s3_url)


def in_threads(number, action):
    threads = [threading.Thread(target=action, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_of_many_racing_writers_one_creates(backend, name):
    won = []
    in_threads(8, lambda n: backend.put_if_absent(name, b"%d" % n) and won.append(n))
    assert len(won) == 1
    assert backend.read(name) == b"%d" % won[0]


def test_a_create_whose_answer_was_lost_knows_its_own_bytes(backend, proxy):
    proxy.faults.append(Fault("lose", method="PUT", path="lease"))
    assert backend.put_if_absent("lease", b"owner 1")
    assert not backend.put_if_absent("lease", b"owner 2")
    assert backend.read("lease") == b"owner 1"


def test_two_creates_that_met_are_tried_again(backend, proxy, waits):
    """S3 answers 409 ConditionalRequestConflict to one of two conditional puts that meet."""
    meet = Fault("refuse", method="PUT", status=409, code="ConditionalRequestConflict")
    proxy.faults.append(meet)
    assert backend.put_if_absent("x", b"1")
    assert len(waits) == 1


def test_a_server_that_ignores_conditions_is_no_store(s3_url, proxy):
    proxy.faults.append(Fault("strip", times=9, method="PUT", code="If-None-Match"))
    with pytest.raises(StoreError, match="If-None-Match"):
        Store.open(s3_url)
    assert backend_at(s3_url).files("") == []


def test_a_write_that_fails_half_way_leaves_nothing(backend, monkeypatch):
    monkeypatch.setattr(remote, "BLOCK", 5 << 20)  # The smallest part that S3 takes.

    def write():
        with backend.create("data/x") as file:
            file.write(bytes(11 << 20))
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        write()
    assert backend.files("data") == []
    bucket = backend.root.split("/")[0]
    assert backend.fs.list_multipart_uploads(bucket) == []


def test_a_write_in_parts_is_whole(backend, monkeypatch):
    monkeypatch.setattr(remote, "BLOCK", 5 << 20)
    data = os.urandom(11 << 20)
    with backend.create("data/x") as file:
        file.write(data)
    assert (file.bytes, backend.size("data/x")) == (len(data), len(data))
    assert backend.read("data/x") == data


def test_a_download_goes_on_where_the_connection_broke(backend, proxy, waits, monkeypatch):
    """Ten ranges; the fifth is cut until the library gives it up, twice; only it is asked again."""
    monkeypatch.setattr(remote, "BLOCK", 100_000)
    monkeypatch.setattr(remote, "BLOCKS_AT_ONCE", 1)
    monkeypatch.setattr(remote, "TRIES", 5)
    data = os.urandom(1_000_000)
    backend.replace("x", data)
    tries = backend.fs.retries
    cuts = []

    def cut_the_fifth(method, path, range_, take=proxy.take):
        found = take(method, path, range_)
        if range_.startswith("bytes=400000-") and len(cuts) < 2 * tries:
            cuts.append(1)
            return Fault("cut")
        return found

    proxy.take = cut_the_fifth
    assert b"".join(backend.blocks("x", len(data))) == data
    ranges = [range_ for method, _, range_ in proxy.requests if method == "GET"]
    assert len(ranges) == 10 + 2 * tries
    assert ranges.count("bytes=0-99999") == 1
    assert len(waits) == 2


def test_of_many_ranges_only_lost_ones_are_asked_for_again(backend, proxy, waits, monkeypatch):
    """The answer to one of four is cut until the library gives it up."""
    monkeypatch.setattr(remote, "TRIES", 5)
    data = {name: os.urandom(100_000) for name in "ab"}
    for name, content in data.items():
        backend.replace(name, content)
    tries, cuts = backend.fs.retries, []

    def cut_one(method, path, range_, take=proxy.take):
        plain = take(method, path, range_)
        if range_.startswith("bytes=500-") and path.endswith("/b") and len(cuts) < tries:
            cuts.append(1)
            return Fault("cut")
        return plain

    proxy.take = cut_one
    parts = [(name, start, end) for name in "ab" for start, end in ((500, 900), (9000, 9001))]
    asked = [Range(name, 100_000, start, end) for name, start, end in parts]
    assert backend.read_ranges(asked) == [data[name][start:end] for name, start, end in parts]
    ranges = [(path[-1], range_) for method, path, range_ in proxy.requests if method == "GET"]
    assert sorted(set(ranges)) == [(name, f"bytes={start}-{end - 1}") for name, start, end in parts]
    assert ranges.count(("b", "bytes=500-899")) == tries + 1
    assert len(ranges) == 4 + tries
    assert len(waits) == 1


def test_a_range_of_a_file_that_is_gone_or_was_cut_is_no_lost_connection(backend, waits):
    with pytest.raises(FileNotFoundError):
        backend.read_ranges([Range("x", 100, 0, 10)])
    backend.replace("x", bytes(50))
    with pytest.raises(CorruptArtifact, match="from 100 to 50 bytes"):
        backend.read_ranges([Range("x", 100, 40, 60)])
    assert backend.read_ranges([]) == []


def test_a_connection_that_breaks_every_time_is_one_clear_error(backend, proxy, waits):
    backend.replace("x", bytes(1000))
    proxy.faults.append(Fault("cut", times=1000))
    with pytest.raises(Unreachable) as caught:
        list(backend.blocks("x", 1000))
    assert caught.value.where == backend.full("x")
    assert len(waits) == 1  # One wait less than tries.
    with pytest.raises(Unreachable):
        backend.read("x")


@pytest.mark.parametrize("size", [150, 500])
def test_an_object_that_was_cut_is_damage_not_a_lost_connection(backend, waits, monkeypatch, size):
    """100 bytes stand where `size` are named: a short range, or one that begins behind the end."""
    monkeypatch.setattr(remote, "BLOCK", 120)
    backend.replace("x", bytes(100))
    with pytest.raises(CorruptArtifact, match=f"changed from {size} to 100 bytes"):
        list(backend.blocks("x", size))


def test_a_throttled_request_is_tried_again(backend, proxy):
    backend.replace("x", b"1")
    proxy.faults.append(Fault("refuse"))
    assert backend.read("x") == b"1"
    proxy.faults.append(Fault("refuse", method="PUT"))
    backend.replace("x", b"2")
    assert backend.read("x") == b"2"


REFUSALS = {
    "AccessDenied": (403, "permission denied"),
    "InvalidAccessKeyId": (403, "the credentials were refused"),
    "SignatureDoesNotMatch": (403, "the credentials were refused"),
    "ExpiredToken": (400, "the credentials have expired"),
    "RequestTimeTooSkewed": (403, "clock is too far"),
    "NoSuchBucket": (404, "the bucket does not exist"),
    "SlowDown": (503, "too busy"),
    "SomethingNew": (400, "the store refused: SomethingNew"),
}


def says(caught, what):
    """One line with what, where and a hint; nothing that should stay here."""
    error = caught.value
    assert what in error.what
    assert error.where.startswith("s3://")
    assert error.hint
    shown = "".join(traceback.format_exception(error))
    assert "testing-secret" not in shown
    assert "\n" not in str(error)


@pytest.mark.parametrize("code", REFUSALS)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_refusal_is_one_line_that_says_what_to_do(backend, proxy, code, method):
    status, what = REFUSALS[code]
    proxy.faults.append(Fault("refuse", 1000, method, status=status, code=code))
    with pytest.raises(StoreError) as caught:
        backend.read("x") if method == "GET" else backend.put_if_absent("x", b"1")
    says(caught, what)


@pytest.mark.parametrize("ask", ["listing", "folders", "size", "read_many", "remove"])
def test_a_forbidden_bucket_is_never_taken_for_an_empty_one(backend, proxy, ask):
    for method in ("GET", "HEAD", "DELETE"):
        proxy.faults.append(Fault("refuse", 1000, method, status=403, code="AccessDenied"))
    with pytest.raises(StoreError) as caught:
        getattr(backend, ask)(["x", "y"] if ask == "read_many" else "x")
    says(caught, "permission denied")


@pytest.mark.parametrize("create", [True, False])
def test_a_store_in_a_bucket_that_is_not_there_is_refused(s3_url, create):
    with pytest.raises(StoreError) as caught:
        Store.open(s3_url + "-absent", create=create)
    says(caught, "the bucket does not exist")


def test_without_credentials_the_error_names_the_variables(backend, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match="AWS_ACCESS_KEY_ID") as caught:
        backend.read("x")
    says(caught, "no credentials")


def test_an_endpoint_that_nobody_serves_is_an_error_not_a_wait(backend, monkeypatch):
    monkeypatch.setattr(remote, "TRIES", 2)
    with socket.socket() as unserved:
        unserved.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{unserved.getsockname()[1]}")
        with pytest.raises(Unreachable) as caught:
            backend.read("x")
    says(caught, "cannot be reached")


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("s3://AKIAKEY:hidden@bucket/x", "the URL holds credentials"),
        ("s3://hidden@bucket", "the URL holds credentials"),
        ("https://user:hidden@host/x", "no store can be at https://"),
        ("simplecache::s3://hidden", "no store can be at simplecache::s3://"),
        ("s3://", "the URL names no bucket"),
    ],
)
def test_a_url_that_cannot_be_a_store_is_refused_without_repeating_it(url, what):
    with pytest.raises(UsageError, match=what) as caught:
        Store.open(url)
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(("protocol", "module"), [("s3", "s3fs"), ("gs", "gcsfs")])
def test_a_library_that_is_missing_names_the_extra(protocol, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, protocol, raising=False)
    with pytest.raises(StoreError, match=rf'pip install "ingot\[{protocol}\]"'):
        backend_at(f"{protocol}://bucket").read("x")


def test_a_backend_travels_to_another_process_and_survives_a_fork(backend):
    backend.replace("x", b"1")
    assert pickle.loads(pickle.dumps(backend)).read("x") == b"1"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            backend.replace("y", backend.read("x") + b"2")
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert backend.read("y") == b"12"


def test_names_with_glob_characters_mean_themselves(backend):
    for name in ("refs/a[b].json", "refs/ab.json", "refs/a*", "refs/a?/x"):
        backend.replace(name, name.encode())
    assert set(backend.read_many(["refs/a[b].json", "refs/a?"])) == {"refs/a[b].json"}
    backend.remove("refs/a[b].json")
    backend.remove("refs/a*")
    backend.remove("refs/a?")
    assert backend.files("refs") == ["ab.json"]


def test_a_folder_is_not_the_folder_whose_name_begins_alike(backend):
    backend.replace("work/ab/x", b"1")
    backend.replace("work/abc/y", b"12")
    assert {name: entry.bytes for name, entry in backend.listing("work/ab").items()} == {"x": 1}
    backend.remove("work/ab")
    assert backend.files("") == ["work/abc/y"]


def test_the_end_of_a_growing_file_is_read_from_where_one_was(backend):
    backend.replace("events", b"abcdef")
    assert backend.read("events", 4) == b"ef"
    assert backend.read("events", 6) == b""
    with pytest.raises(FileNotFoundError):
        backend.read("nothing", 6)


def test_waits_grow_and_differ_and_have_an_end():
    first = {round(remote.backoff(1), 6) for _ in range(20)}
    assert len(first) > 1
    assert all(0.5 <= wait <= 1.0 for wait in first)
    assert all(2.0 <= remote.backoff(3) <= 4.0 for _ in range(20))
    assert remote.backoff(100) <= remote.LONGEST_WAIT_SECONDS


class HttpError(Exception):
    """What gcsfs raises: a code, and no S3 answer."""

    def __init__(self, code):
        super().__init__(f"message, {code}")
        self.code = code


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (HttpError(401), "the credentials were refused"),
        (HttpError(429), "too busy"),
        (OSError("Forbidden: b/o\nuser has no storage.objects.get"), "permission denied"),
        (FileExistsError("a generation stands"), None),
    ],
)
def test_refusals_of_gs_are_told_alike(error, what):
    found = to_storage_error(error, "gs://bucket/x")
    assert (found and what in found.what) if what else found is None


MEETINGS = ("OperationAborted", "ConditionalRequestConflict")


@pytest.mark.parametrize("code", MEETINGS)
@pytest.mark.parametrize(
    ("method", "part", "act"),
    [
        ("PUT", "x", lambda backend: backend.replace("x", b"2")),
        ("PUT", "copied", lambda backend: backend.link([("x", "copied")])),
        ("DELETE", "x", lambda backend: backend.remove("x")),
        ("PUT", "partNumber", lambda backend: written_in_parts(backend)),
        ("POST", "uploads", lambda backend: written_in_parts(backend)),
        ("POST", "uploadId", lambda backend: written_in_parts(backend)),
        ("PUT", "small", lambda backend: written(backend, "small", b"3")),
    ],
)
def test_a_write_that_met_another_is_tried_again(
    backend, proxy, waits, monkeypatch, code, method, part, act
):
    """S3 answers 409 to any write that meets another one; botocore does not try again then."""
    monkeypatch.setattr(remote, "BLOCK", 5 << 20)
    backend.replace("x", b"1")
    proxy.faults.append(Fault("refuse", method=method, path=part, status=409, code=code))
    act(backend)
    assert proxy.faults[0].times == 0
    assert len(waits) == 1
    assert {"x", "copied", "large", "small"} >= set(backend.files(""))


def written(backend, path, data):
    with backend.create(path) as file:
        file.write(data)
    assert backend.read(path) == data


def written_in_parts(backend):
    written(backend, "large", os.urandom(6 << 20))


def test_writes_that_meet_through_all_tries_are_one_clear_error(backend, proxy, waits):
    proxy.faults.append(Fault("refuse", times=9, method="PUT", status=409, code="OperationAborted"))
    with pytest.raises(StoreError) as caught:
        backend.replace("x", b"1")
    says(caught, "two writers met")
    assert len(waits) == remote.TRIES - 1
