"""Lists of paths from outside: what each line means, and what is not followed."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace

import pytest

from artifacts_schema.errors import InputError
from flows.recipe import remote_files
from flows.recipe.recipe import snapshot_entry
from flows.recipe.remote_files import read_path_list
from flows.recipe.snapshots import find_files, take_snapshot
from stages.engine import Input
from stages.engine.sources import source_files

WARCS = [
    f"crawl-data/CC-MAIN-2024-33/segments/1.{n}/warc/CC-MAIN-{n:05d}.warc.gz" for n in (1, 0, 2)
]


def entry(**values):
    return snapshot_entry("crawl", values, "test")


@pytest.fixture
def archive(file_server):
    """A site laid out as Common Crawl's: three archives and their list."""
    for path in WARCS:
        file_server.serve(f"/{path}", path.encode())
    listed = "".join(f"{path}\n" for path in WARCS).encode()
    file_server.serve("/crawl-data/CC-MAIN-2024-33/warc.paths.gz", gzip.compress(listed))
    file_server.serve("/plain.paths", listed.replace(b"\n", b"\r\n\r\n"))
    return file_server


@pytest.fixture
def local_list(tmp_path):
    """`local_list(*lines)`: the path of a list of them."""

    def write(*lines):
        path = tmp_path / "some.paths"
        path.write_bytes(b"\n".join(line.encode() for line in lines))
        return str(path)

    return write


def test_paths_begin_at_the_site_of_their_list(archive):
    url = archive.url
    expected = [(path, f"{url}/{path}") for path in WARCS]
    gzipped = entry(paths=f"{url}/crawl-data/CC-MAIN-2024-33/warc.paths.gz")
    assert read_path_list(gzipped) == expected
    assert read_path_list(entry(paths=f"{url}/plain.paths")) == expected
    again = archive.sent("/crawl-data/CC-MAIN-2024-33/warc.paths.gz")
    assert read_path_list(gzipped) == expected
    assert archive.sent("/crawl-data/CC-MAIN-2024-33/warc.paths.gz") == again  # From its copy.


def test_first_counts_in_the_order_of_the_list_and_share_by_the_hash(archive, store):
    source = entry(paths=f"{archive.url}/plain.paths", first=2)
    assert [file.name for file in find_files(source)] == sorted(WARCS[:2])
    manifest = take_snapshot(store, source)
    assert archive.count("HEAD") == 2 + 2  # The list, twice, and two archives: not the third.
    files = source_files(Input.from_manifest(store, manifest, "snapshot"))
    assert [file.open().read().decode() for file in files] == sorted(WARCS[:2])
    hashes = {path: int(hashlib.sha256(path.encode()).hexdigest(), 16) / 2**256 for path in WARCS}
    middle = sorted(hashes.values())[1]
    taken = find_files(replace(source, first=None, share=middle + 1e-9))
    assert {file.name for file in taken} == {p for p in WARCS if hashes[p] <= middle}


def test_a_root_or_whole_urls_say_where_else_the_files_lie(local_list, tmp_path):
    paths = local_list("a/x y.gz", "a/50%25?.gz", "https://other.example/b/z.gz?download=1")
    assert read_path_list(entry(paths=paths, root="https://data.example/all/")) == [
        ("a/x y.gz", "https://data.example/all/a/x%20y.gz"),
        ("a/50%25?.gz", "https://data.example/all/a/50%25%3F.gz"),
        ("other.example/b/z.gz", "https://other.example/b/z.gz?download=1"),
    ]
    paths = local_list("https://data.example/all/a/x.gz", "s3://bucket/y.gz")
    assert read_path_list(entry(paths=paths, root="https://data.example/all")) == [
        ("a/x.gz", "https://data.example/all/a/x.gz"),
        ("bucket/y.gz", "s3://bucket/y.gz"),
    ]
    paths = local_list("a/x y.gz")
    assert read_path_list(entry(paths=paths)) == [("a/x y.gz", str(tmp_path / "a/x y.gz"))]
    assert read_path_list(entry(paths=paths, root="s3://bucket/in")) == [
        ("a/x y.gz", "s3://bucket/in/a/x y.gz")
    ]


def test_a_list_in_a_bucket_begins_at_the_bucket(store, s3_url):
    import s3fs

    fs = s3fs.S3FileSystem()
    fs.pipe_file(f"{s3_url}/deep/some.paths", b"deep/a\nb\n")
    fs.pipe_file(f"{s3_url}/deep/a", b"A")
    fs.pipe_file(f"{s3_url}/b", b"B")
    manifest = take_snapshot(store, entry(paths=f"{s3_url}/deep/some.paths"))
    files = source_files(Input.from_manifest(store, manifest, "snapshot"))
    assert [(file.name, file.open().read()) for file in files] == [("b", b"B"), ("deep/a", b"A")]


def test_a_list_of_local_files_pins_them_by_checksum(local_list, tmp_path, store):
    (tmp_path / "a").write_text("A")
    manifest = take_snapshot(store, entry(paths=local_list("a")))
    (file,) = source_files(Input.from_manifest(store, manifest, "snapshot"))
    assert file.sha256 == hashlib.sha256(b"A").hexdigest()
    assert "provisional" not in manifest.counts
    with pytest.raises(InputError, match=r"none: .*No such file"):
        take_snapshot(store, entry(paths=local_list("a", "none")))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("../x", "leads out of https://data.example"),
        ("a/../../x", "leads out of"),
        ("/etc/passwd", "leads out of"),
        ("a//b", "leads out of"),
        ("https://data.example/../x", "leads out of"),
        ("..\\x", "not a path"),
        ("a\x1b[31mred", r"not a path: 'a\\x1b\[31mred'"),
        ("a\tb", "not a path"),
        ("ftp://h/x", "ftp:// cannot be read"),
        ("file:///etc/passwd", "file:// cannot be read"),
        ("http://10.0.0.1/x", "plain http is read from this machine only"),
        ("http://127.0.0.1:8080/x", "leads to this machine"),
        ("https://me:word@h/x", "holds a user or password"),
        ("https://h/x?X-Amz-Signature=abc", "looks signed"),
        ("x" * 3000, "more than 2,048 characters"),
    ],
)
def test_a_hostile_line_is_refused_with_its_number(local_list, line, message):
    source = entry(paths=local_list("good", "", line), root="https://data.example")
    with pytest.raises(InputError, match=message) as caught:
        read_path_list(source)
    assert "some.paths line 3: " in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert "word@" not in str(caught.value)


def test_a_list_that_is_none_is_told(local_list, tmp_path, monkeypatch):
    def told(data, **more):
        (tmp_path / "bad").write_bytes(data)
        with pytest.raises(InputError) as caught:
            read_path_list(entry(paths=str(tmp_path / "bad"), **more))
        return str(caught.value).partition("bad: ")[2]

    packed = gzip.compress(b"a\n" * 1000)
    assert told(b"").startswith("the list holds no paths")
    assert told(b"\n\n").startswith("the list holds no paths")
    assert told(packed[:-9]).startswith("damaged: ")
    assert told(packed[:20] + b"\0" + packed[21:]).startswith("damaged: ")
    assert told(b"\xff\xfe").startswith("not UTF-8 at byte 0")
    monkeypatch.setattr(remote_files, "MAX_LIST_BYTES", 1_000_000)
    assert told(gzip.compress(bytes(2_000_000))).startswith("more than 1,000,000 bytes")
    monkeypatch.setattr(remote_files, "MAX_LINES", 999)
    assert told(packed).startswith("more than 1,000,000 bytes or 999 lines")
    with pytest.raises(InputError, match="none: "):
        read_path_list(entry(paths=str(tmp_path / "none")))
    with pytest.raises(InputError, match="folder"):
        read_path_list(entry(paths=str(tmp_path)))
