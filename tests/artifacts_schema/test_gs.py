"""`gs://` to its contract: what gcsfs sends, and what it makes of the answers. No server is met."""

from __future__ import annotations

import json
import re
import time
from urllib.parse import unquote

import pytest

from artifacts_schema.errors import StoreError
from artifacts_schema.store import Store
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.gc import plan_gc
from artifacts_schema.store.lease import Lease

gcsfs = pytest.importorskip("gcsfs", reason="needs gcsfs: pip install 'ingot[gs]'")


class Bucket:
    """The part of the JSON API that is asked: objects, generations as far as `create` needs them.

    https://cloud.google.com/storage/docs/json_api/v1/objects
    """

    def __init__(self):
        self.objects, self.parts, self.refuse = {}, {}, None

    async def request(self, fs, method, path, *names, headers=None, json=None, data=None, **query):
        from gcsfs.retry import validate_response

        status, content = self.refuse or self.answer(
            method, path, names, headers or {}, data, query
        )
        validate_response(status, content, path, names)
        where = {"Location": path.replace("/upload/", "/resume/")}
        return status, where if query.get("uploadType") == "resumable" else {}, None, content

    def answer(self, method, path, names, headers, data, query):
        if query.get("uploadType") == "resumable":
            return 200, b""
        if method == "POST" and "/resume/" in path:
            begun = self.parts.setdefault(path, bytearray())
            begun += bytes(data)
            if len(begun) == int(headers["Content-Range"].rpartition("/")[2]):
                name = unquote(path.partition("name=")[2])
                self.objects[name] = (bytes(self.parts.pop(path)), time.time())
            return 200, b"{}"
        if method == "POST" and "/upload/" in path:
            _, listed, body, _ = re.split(rb"--==0==(?:--)?\n?", bytes(data))
            name = json.loads(listed.split(b"\n\n", 1)[1])["name"]
            if query.get("ifGenerationMatch") == "0" and name in self.objects:
                return 412, b"{}"
            self.objects[name] = (body.split(b"\n\n", 1)[1][:-1], time.time())
            return 200, self.described(name)
        if path.endswith("rewriteTo/b/{}/o/{}"):
            self.objects[names[3]] = self.objects[names[1]]
            return 200, b'{"done": true}'
        if path == "b/{}/o":
            found = [n for n in sorted(self.objects) if n.startswith(query.get("prefix") or "")]
            items = [json.loads(self.described(name)) for name in found]
            return 200, json.dumps({"kind": "storage#objects", "items": items}).encode()
        name = names[1] if names else unquote(path.split("/o/")[1].split("?")[0])
        if name not in self.objects:
            return 404, b"{}"
        if method == "DELETE":
            del self.objects[name]
            return 204, b""
        if "alt=media" not in path:
            return 200, self.described(name)
        content = self.objects[name][0]
        if "Range" in headers:
            start, end = headers["Range"].removeprefix("bytes=").split("-")
            content = content[int(start) : int(end) + 1 if end else None]
        return 200, content

    def described(self, name):
        content, modified = self.objects[name]
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(modified)) + ".000Z"
        return json.dumps({"name": name, "size": str(len(content)), "updated": stamp}).encode()


@pytest.fixture
def bucket(monkeypatch):
    import fsspec.config
    from gcsfs.core import GCSFileSystem
    from gcsfs.extended_gcsfs import BucketType, ExtendedGcsFileSystem

    bucket = Bucket()

    async def request(fs, *arguments, **more):
        return await bucket.request(fs, *arguments, **more)

    async def flat(*_):
        return BucketType.NON_HIERARCHICAL

    monkeypatch.setattr(GCSFileSystem, "_request", request)
    monkeypatch.setattr(ExtendedGcsFileSystem, "_get_bucket_type", flat)
    monkeypatch.setitem(fsspec.config.conf, "gs", {"token": "anon", "skip_instance_cache": True})
    return bucket


@pytest.fixture
def store(bucket):
    return Store.open("gs://bucket/below/store")


def test_of_two_creates_the_second_is_turned_down(store, bucket):
    assert store.backend.put_if_absent("x", b"one")
    assert not store.backend.put_if_absent("x", b"two")
    assert bucket.objects["below/store/x"][0] == b"one"


def test_a_create_whose_answer_was_lost_knows_its_own_bytes(store, bucket):
    bucket.objects["below/store/x"] = (b"one", time.time())
    assert store.backend.put_if_absent("x", b"one")


def test_files_are_written_listed_copied_read_and_removed(store, bucket):
    backend = store.backend
    attempt = Attempt(backend, "s", "a" * 64, {"snapshot": "snapshot"})
    with attempt.create("snapshot", "snapshot.json") as file:
        file.write(b"0123456789")
    place = f"data/s/{'a' * 64}/{attempt.name}/snapshot/snapshot.json"
    assert backend.size(place) == 10
    assert b"".join(backend.blocks(place, 10)) == b"0123456789"
    backend.link([(place, "data/copy")])
    assert backend.read_many([place, "data/copy", "nothing"]).keys() == {place, "data/copy"}
    assert backend.read("data/copy", 7) == b"789"
    assert {name: entry.bytes for name, entry in backend.listing("data").items()} == {
        "copy": 10,
        place.removeprefix("data/"): 10,
    }
    backend.remove("data")
    assert backend.files("") == ["ingot-store.json"]


def test_a_write_that_fails_half_way_leaves_nothing(store):
    def write():
        with store.backend.create("data/x") as file:
            file.write(b"half")
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        write()
    assert store.backend.files("data") == []


def test_leases_and_ages_go_by_the_same_rules(store):
    lease = Lease.take(store.backend, "a" * 64)
    lease.check()
    lease.release()
    assert Lease.take(store.backend, "a" * 64).number == 2
    assert abs(store.backend.now() - time.time()) < 5
    assert plan_gc(store).artifacts == []


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ((403, b'{"error": {"message": "no storage.objects.get"}}'), "permission denied"),
        ((401, b'{"error": {"message": "Anonymous caller"}}'), "the credentials were refused"),
        ((503, b'{"error": {"message": "backend"}}'), "too busy"),
    ],
)
def test_refusals_are_one_line(store, bucket, answer, what):
    bucket.refuse = answer
    with pytest.raises(StoreError, match=what) as caught:
        store.backend.read("x")
    assert caught.value.where == "gs://bucket/below/store/x"
    assert caught.value.hint
