"""Snapshots whose files lie behind URLs: what is asked of servers, what is pinned, what is read."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.store import Store
from flows.recipe import remote_files
from flows.recipe.execute import execute
from flows.recipe.recipe import snapshot_entry
from flows.recipe.snapshots import count_provisional, find_files, format_provisional, take_snapshot
from stages.engine import Input, remote, sources
from stages.engine import fetch as fetch_module
from stages.engine.remote import SourceChanged
from stages.engine.sources import source_files

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
from file_server import Fault


@pytest.fixture
def site(file_server):
    """A server with three texts below /data."""
    for name, text in {
        "a/one.txt": b"alpha\nbeta\n\npi\n",
        "a/two.txt": b"gamma\n",
        "b/three.txt": b"delta epsilon\nmu\n",
    }.items():
        file_server.serve(f"/data/{name}", text)
    return file_server


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(
        remote_files, "PLANNING", replace(remote_files.PLANNING, sleep=lambda seconds: None)
    )


def entry(**values):
    return snapshot_entry("crawl", values, "test")


def listing(store, manifest):
    return json.loads(store.backend.read(store.payload(manifest, "snapshot", "snapshot.json")))


def test_a_url_is_pinned_by_size_and_etag(site, store):
    manifest = take_snapshot(store, entry(files=f"{site.url}/data/a/two.txt"))
    etag = site.files["/data/a/two.txt"].etag
    assert listing(store, manifest) == {
        "name": "crawl",
        "files": [{"name": "two.txt", "bytes": 6, "etag": etag}],
    }
    assert manifest.counts == {"files": 1, "bytes": 6, "provisional": 1}
    (file,) = source_files(Input.from_manifest(store, manifest, "snapshot"))
    assert (file.sha256, file.etag, file.open().read()) == (None, etag, b"gamma\n")


def test_names_are_the_last_part_of_the_path_or_begin_at_the_root(site):
    def names(**values):
        return [(file.name, file.location) for file in find_files(entry(**values))]

    one, three = f"{site.url}/data/a/one.txt", f"{site.url}/data/b/three.txt"
    assert names(files=[three, one]) == [("one.txt", one), ("three.txt", three)]
    assert names(files=[f"{one}?download=1"]) == [("one.txt", f"{one}?download=1")]
    root = f"{site.url}/data"
    expected = [("a/one.txt", one), ("b/three.txt", three)]
    assert names(files=["b/three.txt", "a/one.txt"], root=root) == expected
    assert names(files=[three, one], root=root + "/") == expected
    for outside in (f"{site.url}/other/x", "../x", "a/../../x"):
        with pytest.raises(UsageError, match="is outside the root"):
            names(files=[outside], root=root)
    with pytest.raises(UsageError, match=r"'x'.*root"):
        names(files=[f"{site.url}/a/x", f"{site.url}/b/x"])


def test_another_etag_is_another_snapshot_and_another_host_is_not(site, store, file_server):
    urls = [f"{site.url}/data/a/one.txt"]
    before = take_snapshot(store, entry(files=urls))
    moved = take_snapshot(store, entry(files=[urls[0].replace("127.0.0.1", "localhost")]))
    assert moved.key == before.key
    assert store.locations(moved.output("snapshot").digest)["one.txt"].startswith("http://localh")
    site.serve("/data/a/one.txt", b"alpha\nbeta\n\npj\n")
    assert take_snapshot(store, entry(files=urls)).key != before.key


def test_local_and_remote_files_may_stand_in_one_snapshot(site, store, project):
    files = [f"{site.url}/data/a/one.txt", str(project / "data/b")]
    manifest = take_snapshot(store, entry(files=files))
    assert manifest.counts == {"files": 2, "bytes": 32, "provisional": 1}
    assert count_provisional({"crawl": manifest}) == {"crawl": 1}
    assert format_provisional({"crawl": manifest}).endswith("not by a checksum: 1 of crawl")
    assert format_provisional({}) is None
    texts = [
        file.open().read()
        for file in source_files(Input.from_manifest(store, manifest, "snapshot"))
    ]
    assert texts == [b"alpha\nbeta\n\npi\n", b"delta epsilon\nmu\n"]


def test_few_files_are_asked_for_each_time_and_many_once_in_a_while(site, store, monkeypatch):
    urls = [site.serve(f"/n/{number}", str(number).encode()) for number in range(65)]
    take_snapshot(store, entry(files=urls[:64]))
    first = take_snapshot(store, entry(files=urls[:64]))
    assert site.count("HEAD") == 128
    told = []
    many = entry(files=urls)
    whole = take_snapshot(store, many, progress=lambda *numbers: told.append(numbers))
    assert site.count("HEAD") == 129  # 64 answers are fresh.
    assert told == []  # One question is no progress worth showing.
    assert whole.key != first.key
    take_snapshot(store, many)
    assert site.count("HEAD") == 129
    monkeypatch.setattr(sources, "FRESH_SECONDS", 0.0)
    take_snapshot(store, many, progress=lambda *numbers: told.append(numbers))
    assert site.count("HEAD") == 129 + 65
    assert told == [(number, 65, "files") for number in range(1, 66)]


def test_a_change_seen_while_reading_is_asked_for_by_the_next_plan(site, store):
    urls = [site.serve(f"/n/{number}", str(number).encode()) for number in range(65)]
    pinned = take_snapshot(store, entry(files=urls))
    site.serve("/n/0", b"other")
    assert take_snapshot(store, entry(files=urls)).key == pinned.key  # The answers are fresh.
    changed = source_files(Input.from_manifest(store, pinned, "snapshot"))[0]
    with pytest.raises(SourceChanged, match="plan again to take the changed file"):
        changed.open()
    assert take_snapshot(store, entry(files=urls)).key != pinned.key
    assert site.count("HEAD") == 66


def test_a_missing_file_is_told_by_its_url(site, store):
    urls = [f"{site.url}/data/a/one.txt", f"{site.url}/none?q=1"]
    with pytest.raises(InputError, match=r"/none\?…: "):
        take_snapshot(store, entry(files=urls))


def test_a_busy_server_is_asked_again_then_given_up(site, store):
    site.fault_method = "HEAD"
    site.faults["/data/a/one.txt"] = [Fault(status=503)] * 3
    source = entry(files=f"{site.url}/data/a/one.txt")
    assert take_snapshot(store, source).counts["files"] == 1
    site.faults["/data/a/one.txt"] = [Fault(status=503)] * 4
    with pytest.raises(InputError, match=r"503.*4 tries"):
        take_snapshot(store, source)


def test_a_bucket_is_listed(store, s3_url):
    import s3fs

    fs = s3fs.S3FileSystem()
    for name in ("a/one.txt", "a/two.txt", "a/.hidden", "b/three.txt"):
        fs.pipe_file(f"{s3_url}/data/{name}", name.encode())
    del fs

    def names(*files, **more):
        return [file.name for file in find_files(entry(files=list(files), **more))]

    assert names(f"{s3_url}/data/a/*.txt") == ["one.txt", "two.txt"]
    assert names(f"{s3_url}/data/a/one.txt") == ["one.txt"]
    assert names(f"{s3_url}/data") == ["a/one.txt", "a/two.txt", "b/three.txt"]
    assert names(f"{s3_url}") == ["data/a/one.txt", "data/a/two.txt", "data/b/three.txt"]
    assert names(f"{s3_url}/data/**/t*.txt") == ["a/two.txt", "b/three.txt"]
    assert names("a/*.txt", "b", root=f"{s3_url}/data") == ["a/one.txt", "a/two.txt", "b/three.txt"]
    with pytest.raises(InputError, match=r"'.*/c/\*'"):
        names(f"{s3_url}/c/*")
    with pytest.raises(InputError, match=r"'c'.*s3://"):
        names("c", root=s3_url)
    with pytest.raises(InputError, match=r"no such file|no file matches"):
        names("s3://no-such-bucket-here/x")
    manifest = take_snapshot(store, entry(files=f"{s3_url}/data/a/*.txt"))
    files = source_files(Input.from_manifest(store, manifest, "snapshot"))
    assert [file.open().read() for file in files] == [b"a/one.txt", b"a/two.txt"]
    assert manifest.counts["provisional"] == 2
    listed = listing(store, manifest)["files"][0]["etag"]
    assert listed == find_files(entry(files=f"{s3_url}/data/a/one.txt"))[0].identity.etag


def test_a_store_in_a_bucket_knows_where_files_lie(site, s3_url, project):
    store = Store.open(f"{s3_url}/store")
    files = [f"{site.url}/data/a/one.txt", str(project / "data/b")]
    manifest = take_snapshot(store, entry(files=files))
    texts = [
        file.open().read()
        for file in source_files(Input.from_manifest(store, manifest, "snapshot"))
    ]
    assert texts == [b"alpha\nbeta\n\npi\n", b"delta epsilon\nmu\n"]


@pytest.fixture
def reads(monkeypatch):
    """Positions at which objects are read, 1,024 bytes at once; `reads.at[position]` is called."""
    from s3fs import S3File

    class Reads(list):
        at: dict = {}

    reads, real = Reads(), S3File._fetch_range

    def fetch(file, start, end):
        reads.append(start)
        reads.at.pop(start, lambda: None)()
        return real(file, start, end)

    monkeypatch.setattr(remote, "RANGE", 1024)
    monkeypatch.setattr(S3File, "_fetch_range", fetch)
    monkeypatch.setattr(fetch_module.RetryPolicy, "pause", lambda *_: None)
    return reads


def test_an_object_that_changes_is_noticed_before_and_while_it_is_read(store, s3_url, reads):
    import s3fs

    url = f"{s3_url}/big.bin"
    fs = s3fs.S3FileSystem(skip_instance_cache=True)  # As another program would replace it.
    data = bytes(range(256)) * 40
    fs.pipe_file(url, data)
    manifest = take_snapshot(store, entry(files=f"{s3_url}/*"))
    (file,) = source_files(Input.from_manifest(store, manifest, "snapshot"))
    reads.at = {2048: lambda: fs.pipe_file(url, data[::-1])}
    with pytest.raises(SourceChanged):
        file.open()
    assert reads == [0, 1024, 2048]
    with pytest.raises(SourceChanged):
        file.open()
    assert len(reads) == 3
    fs.pipe_file(url, data)
    assert file.open().read() == data
    fs.rm_file(url)
    again = source_files(Input.from_manifest(store, manifest, "snapshot"))[0]
    assert (
        again.open().read() == data
    )  # The copy is what was pinned, whatever became of the source.


def test_an_interrupted_object_goes_on_where_it_was(store, s3_url, reads):
    import s3fs

    url = f"{s3_url}/big.bin"
    data = bytes(range(256)) * 40
    s3fs.S3FileSystem().pipe_file(url, data)
    (file,) = source_files(
        Input.from_manifest(store, take_snapshot(store, entry(files=url)), "snapshot")
    )

    def reset():
        raise OSError("connection reset")

    reads.at = {3072: reset}
    assert file.open().read() == data
    assert reads == [0, 1024, 2048, 3072, *range(3072, len(data), 1024)]


def test_a_service_without_conditional_reads_is_asked_again_at_the_end(monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    class Bucket(MemoryFileSystem):
        def info(self, path, **_):
            found = super().info(path)
            return {**found, "etag": hashlib.md5(self.cat_file(path)).hexdigest()}

    fs = Bucket(skip_instance_cache=True)
    fs.pipe_file("/x", b"a" * 4096)
    monkeypatch.setattr(remote, "RANGE", 1024)
    monkeypatch.setattr(remote, "_open_bucket", lambda url: (fs, "/x"))
    pinned = remote.object_identity("gs://b/x")
    assert b"".join(remote.object_blocks("gs://b/x", pinned, 1000)) == b"a" * 3096
    stream = remote.object_blocks("gs://b/x", pinned, 0)
    next(stream)
    fs.pipe_file("/x", b"b" * 4096)
    with pytest.raises(SourceChanged):
        list(stream)


RECIPE = """
name: archive
snapshots:
  crawl: {entry}
steps:
  read: {{stage: ingest, config: {{max_records: 40}}, inputs: {{snapshot: crawl}}}}
"""


@pytest.mark.full
def test_a_recipe_reads_the_same_documents_from_a_server(
    shared_data, site, store, open_pipeline, inline, tmp_path
):
    folder = shared_data / "warc"
    names = ["crawl-2024-A-00000.warc.gz", "crawl-2024-A-00001.warc.gz"]
    for name in names:
        site.serve(f"/crawl-data/A/{name}", (folder / name).read_bytes())
    site.serve("/crawl-data/warc.paths", "".join(f"crawl-data/A/{n}\n" for n in names).encode())
    recipe = tmp_path / "archive.yaml"

    def run(entry, *overrides):
        recipe.write_text(RECIPE.format(entry=entry))
        pipeline = open_pipeline(*overrides, recipe=recipe)
        plan = execute(pipeline, dispatch=inline)
        manifest = plan.step("read").manifest
        return pipeline, {name: output.digest for name, output in manifest.outputs.items()}

    local = "{root: %s, files: [crawl-data/A]}" % (tmp_path / "mirror")
    (tmp_path / "mirror/crawl-data").mkdir(parents=True)
    (tmp_path / "mirror/crawl-data/A").mkdir()
    for name in names:
        (tmp_path / "mirror/crawl-data/A" / name).symlink_to(folder / name)
    here, documents = run(local)
    there, fetched = run(local, f"snapshots.crawl.paths={site.url}/crawl-data/warc.paths")
    assert fetched == documents
    assert there.snapshots["crawl"].key != here.snapshots["crawl"].key
    assert count_provisional(there.snapshots) == {"crawl": 2}
    one, _ = run(
        local,
        f"snapshots.crawl.paths={site.url}/crawl-data/warc.paths",
        "snapshots.crawl.first=1",
    )
    assert one.snapshots["crawl"].counts["files"] == 1
    warcs = [asked for asked in site.asked if asked.path.endswith(".gz")]
    assert sum(asked.sent for asked in warcs) == sum((folder / n).stat().st_size for n in names)
