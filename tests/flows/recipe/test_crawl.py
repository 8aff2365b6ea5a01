"""Common Crawl by id: where the list of each crawl lies, and what a wrong entry is told."""

from __future__ import annotations

import gzip

import pytest

from artifacts_schema.errors import InputError, UsageError
from flows.recipe.recipe import load_recipe, snapshot_entry
from flows.recipe.snapshot_entry import is_crawl_id
from flows.recipe.snapshots import find_files, take_snapshot
from stages.engine import Input
from stages.engine.sources import source_files

STEPS = "steps:\n  read: {stage: lines, inputs: {snapshot: crawl}}\n"
SITE = "https://data.commoncrawl.org"


def entry(**values):
    return snapshot_entry("crawl", values, "test")


@pytest.fixture
def load(tmp_path):
    """`load(entry, *overrides, base=entry)` → the entry of a recipe that may extend another one."""

    def read(text, *overrides, base=None):
        path = tmp_path / "recipe.yaml"
        extends = ""
        if base is not None:
            (tmp_path / "base.yaml").write_text(f"snapshots:\n  crawl: {base}\n{STEPS}")
            extends = "extends: base.yaml\n"
        path.write_text(f"{extends}snapshots:\n  crawl: {text}\n{STEPS}")
        return load_recipe(path, overrides).snapshots["crawl"]

    return read


@pytest.fixture
def mirror(file_server):
    """`mirror(folder, kind, names)`: a site with files and the list of them; its URL."""

    def make(folder, kind, names):
        for name in names:
            file_server.serve(f"/{folder}/{name}", name.encode())
        listed = "".join(f"{folder}/{name}\n" for name in names).encode()
        file_server.serve(f"/{folder}/{kind}.paths.gz", gzip.compress(listed))
        return file_server.url

    return make


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"crawl": "CC-MAIN-2024-33"}, "crawl-data/CC-MAIN-2024-33/warc.paths.gz"),
        ({"crawl": "CC-MAIN-2013-20", "records": "wet"}, "crawl-data/CC-MAIN-2013-20/wet.paths.gz"),
        ({"crawl": "CC-MAIN-2024-51", "records": "wat"}, "crawl-data/CC-MAIN-2024-51/wat.paths.gz"),
        ({"crawl": "CC-NEWS-2024-08"}, "crawl-data/CC-NEWS/2024/08/warc.paths.gz"),
        ({"crawl": "CC-MAIN-2008-2009"}, "crawl-data/CC-MAIN-2008-2009/arc.paths.gz"),
        ({"crawl": "CC-MAIN-2012"}, "crawl-data/CC-MAIN-2012/arc.paths.gz"),
    ],
)
def test_an_id_leads_to_the_list_of_its_crawl(values, path):
    assert entry(**values, first=1).paths == f"{SITE}/{path}"
    bucket = entry(**values, via="s3", share=0.5)
    assert (bucket.paths, bucket.root) == (f"s3://commoncrawl/{path}", "s3://commoncrawl")
    copy = entry(**values, first=1, mirror="https://cc.example/copy/")
    assert copy.paths == f"https://cc.example/copy/{path}"
    assert copy.root == "https://cc.example/copy/"


def test_a_mirror_may_be_a_folder_beside_the_recipe(load, tmp_path):
    folder = tmp_path / "cc/crawl-data/CC-MAIN-2024-33"
    folder.mkdir(parents=True)
    (folder / "a.warc.gz").write_bytes(b"A")
    (folder / "warc.paths.gz").write_bytes(gzip.compress(b"crawl-data/CC-MAIN-2024-33/a.warc.gz\n"))
    (file,) = find_files(load("{crawl: CC-MAIN-2024-33, first: 1, mirror: cc}"))
    assert (file.name, file.location) == (
        "crawl-data/CC-MAIN-2024-33/a.warc.gz",
        str(folder / "a.warc.gz"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{crawl: CC-MAIN-2024, first: 1}",
            "'CC-MAIN-2024' is not a crawl id .*ids look like CC-M",
        ),
        ("{crawl: CC-MAIN-2024-54, first: 1}", "not a crawl id .*https://index.commoncrawl.org"),
        ("{crawl: CC-MAIN-2024-00, first: 1}", "not a crawl id"),
        ("{crawl: CC-NEWS-2024-13, first: 1}", "not a crawl id"),
        ("{crawl: cc-main-2024-8, first: 1}", "did you mean 'CC-MAIN-2024-08'"),
        ("{crawl: CC_NEWS-2024-8, first: 1}", "did you mean 'CC-NEWS-2024-08'"),
        ("{crawl: ../../etc, first: 1}", "not a crawl id"),
        ("{crawl: [CC-MAIN-2024-33], first: 1}", "not a crawl id"),
        ("{crawl: 2024-33, first: 1}", "'2024-33' is not a crawl id"),
        ("{crawl: CC-MAIN-2024-33}", "crawl: a whole crawl is .*say how many .`first` 10"),
        ("{crawl: CC-MAIN-2024-33, first: 0}", "crawl.first: expected a number of files"),
        (
            "{crawl: CC-MAIN-2024-33, first: 1, records: text}",
            "expected warc, wet, wat, got 'text'",
        ),
        (
            "{crawl: CC-NEWS-2024-08, first: 1, records: wet}",
            "expected warc, all that CC-NEWS-2024",
        ),
        ("{crawl: CC-MAIN-2012, first: 1, records: wat}", "expected warc, all that CC-MAIN-2012"),
        ("{crawl: CC-MAIN-2024-33, first: 1, via: ftp}", "crawl.via: expected https or s3"),
        ("{crawl: CC-MAIN-2024-33, first: 1, via: s3, mirror: a}", "mirror: given with via"),
        ("{crawl: CC-MAIN-2024-33, first: 1, mirror: 'http://h'}", "mirror: plain http is read"),
        ("{crawl: CC-MAIN-2024-33, first: 1, mirror: 'https://a:b@h'}", "user or password"),
        ("{crawl: CC-MAIN-2024-33, first: 1, mirror: [a]}", "mirror: expected a path or a URL"),
        ("{crawl: CC-MAIN-2024-33, first: 1, root: a}", "root: does not go with crawl"),
        ("{crawl: CC-MAIN-2024-33, first: 1, files: a}", "crawl: given with files"),
        ("{crawl: CC-MAIN-2024-33, first: 1, paths: a}", "crawl: given with paths"),
        ("{files: a, records: wet}", "records: goes with crawl only"),
        ("{files: a, mirror: b}", "mirror: goes with crawl only"),
    ],
)
def test_a_wrong_crawl_is_told_with_file_and_line(load, text, message):
    with pytest.raises(UsageError, match=message) as caught:
        load(text)
    assert "recipe.yaml:2: snapshots.crawl" in str(caught.value)


def test_all_that_is_wrong_is_told_at_once(load):
    with pytest.raises(UsageError, match="5 problems") as caught:
        load("{crawl: CC-MAIN-2024-3, records: texts, via: x, frist: 2}")
    assert str(caught.value).count("recipe.yaml:2: snapshots.crawl") == 5
    assert "did you mean 'CC-MAIN-2024-03'" in str(caught.value)


def test_a_crawl_that_is_none_is_told_with_where_crawls_are_listed(file_server, tmp_path):
    for mirror in (file_server.url, str(tmp_path)):
        source = entry(crawl="CC-MAIN-2024-34", first=1, mirror=mirror)
        with pytest.raises(InputError, match=r"CC-MAIN-2024-34.*warc\.paths\.gz") as caught:
            find_files(source)
        assert "https://index.commoncrawl.org" in str(caught.value)


def test_a_part_of_a_crawl_is_read_from_its_mirror(mirror, store):
    names = [f"segments/1/warc/CC-MAIN-{number:05d}.warc.gz" for number in (2, 0, 1)]
    url = mirror("crawl-data/CC-MAIN-2024-33", "warc", names)
    source = entry(crawl="CC-MAIN-2024-33", first=2, mirror=url)
    manifest = take_snapshot(store, source)
    files = source_files(Input.from_manifest(store, manifest, "snapshot"))
    assert {file.name: file.open().read().decode() for file in files} == {
        f"crawl-data/CC-MAIN-2024-33/{name}": name for name in names[:2]
    }
    everything = find_files(entry(crawl="CC-MAIN-2024-33", share=1, mirror=url))
    assert len(everything) == 3


@pytest.mark.parametrize(
    ("crawl", "folder", "kind"),
    [
        ("CC-NEWS-2024-08", "crawl-data/CC-NEWS/2024/08", "warc"),
        ("CC-MAIN-2009-2010", "crawl-data/CC-MAIN-2009-2010", "arc"),
    ],
)
def test_news_and_old_crawls_are_read_the_same_way(mirror, crawl, folder, kind):
    url = mirror(folder, kind, [f"a.{kind}.gz", f"b.{kind}.gz"])
    found = find_files(entry(crawl=crawl, first=1, mirror=url))
    assert [file.location for file in found] == [f"{url}/{folder}/a.{kind}.gz"]


def test_a_bucket_may_be_the_mirror(store, s3_url):
    import s3fs

    fs = s3fs.S3FileSystem()
    fs.pipe_file(f"{s3_url}/crawl-data/CC-MAIN-2024-33/wet.paths.gz", gzip.compress(b"d/a.gz\n"))
    fs.pipe_file(f"{s3_url}/d/a.gz", b"A")
    source = entry(crawl="CC-MAIN-2024-33", records="wet", first=1, mirror=s3_url)
    (file,) = source_files(Input.from_manifest(store, take_snapshot(store, source), "snapshot"))
    assert (file.name, file.open().read()) == ("d/a.gz", b"A")


def test_one_line_takes_the_place_of_what_a_base_recipe_says(load):
    crawl = "{crawl: CC-MAIN-2024-33, first: 2}"
    found = load(crawl, base="{root: ../data, files: ['*.gz'], share: 0.5}")
    assert (found.files, found.crawl, found.first, found.share) == ((), "CC-MAIN-2024-33", 2, 0.5)
    assert found.root == SITE
    files = load("{files: [/data/a.gz]}", base="{crawl: CC-MAIN-2024-33, records: wet, first: 3}")
    assert (files.files, files.crawl, files.root, files.first) == (("/data/a.gz",), None, None, 3)
    below = load("{files: [a.gz]}", base="{root: /data, files: ['*.gz']}")
    assert (below.files, below.root) == (("a.gz",), "/data")
    more = load("{first: 4}", base="{crawl: CC-MAIN-2024-33, first: 2}")
    assert (more.crawl, more.first) == ("CC-MAIN-2024-33", 4)


def test_set_points_an_entry_at_a_crawl(load):
    found = load(
        "{root: ../data, files: ['*.gz']}",
        "snapshots.crawl.crawl=CC-MAIN-2024-33",
        "snapshots.crawl.records=wet",
        "snapshots.crawl.share=0.001",
    )
    assert (found.files, found.paths) == ((), f"{SITE}/crawl-data/CC-MAIN-2024-33/wet.paths.gz")
    back = load("{crawl: CC-MAIN-2024-33, records: wet, first: 1}", "snapshots.crawl.files=[/a]")
    assert (back.files, back.crawl, back.paths) == (("/a",), None, None)
    with pytest.raises(UsageError, match=r"snapshots\.\S+\.crawl: .*files"):
        load(
            "{files: a}", "snapshots.crawl.files=b", "snapshots.crawl.crawl=CC-MAIN-2024-33",
            "snapshots.crawl.first=1",
        )  # fmt: skip


def test_ids_have_their_form_and_nothing_around_it():
    assert is_crawl_id("CC-MAIN-2026-01")
    assert not any(map(is_crawl_id, ("CC-MAIN-2026-01\n", " CC-MAIN-2026-01", "CC-MAIN-2026-011")))
