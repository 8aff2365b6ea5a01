"""What a `snapshots:` entry may say, where it is told what is wrong, and how `--set` points it."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import UsageError
from flows.recipe.recipe import load_recipe

STEPS = "steps:\n  read: {stage: lines, inputs: {snapshot: crawl}}\n"


@pytest.fixture
def load(tmp_path):
    """`load(entry, *overrides)` → the entry of a recipe in a folder of its own."""

    def entry(text, *overrides):
        path = tmp_path / "recipe.yaml"
        path.write_text(f"snapshots:\n  crawl: {text}\n{STEPS}")
        return load_recipe(path, overrides).snapshots["crawl"]

    return entry


CC = "https://data.commoncrawl.org/crawl-data/CC-MAIN-2024-33/warc.paths.gz"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{files: a, paths: b}", "crawl.paths: given with files.*`files: null`"),
        ("{root: a}", "crawl: needs files: a list of paths, patterns or URLs"),
        ("{files: null}", "crawl: needs files"),
        ("{files: []}", "crawl.files: names no files"),
        ("{files: [1]}", r"crawl.files: expected a path or a list of paths, got \[1\]"),
        ("{files: {a: b}}", "crawl.files: expected a path or a list of paths"),
        ("{paths: [a]}", "crawl.paths: expected a path or a URL"),
        ("{files: a, root: [b]}", "crawl.root: expected a path or a URL"),
        ("{files: a, first: 0}", "crawl.first: expected a number of files, 1 or more, got 0"),
        ("{files: a, first: true}", "crawl.first: expected"),
        ("{files: a, first: 1.5}", "crawl.first: expected"),
        ("{files: a, share: 0}", "crawl.share: expected a share, above 0 and up to 1, got 0"),
        ("{files: a, share: 1.1}", "crawl.share: expected a share"),
        ("{files: a, share: .nan}", "crawl.share: expected a share"),
        ("{files: a, shares: 1}", "unknown key 'shares', did you mean 'share'"),
        ("{files: 'https://h/*.gz'}", "is a pattern, but a web server does not list its files"),
        ("{files: '*.gz', root: 'https://h/a'}", "is a pattern"),
        ("{files: 'ftp://h/a'}", "files behind ftp:// cannot be read"),
        ("{files: 'http://h/a'}", "plain http is read from this machine only"),
        ("{files: 'https:///a'}", "the URL names no host"),
        ("{files: 's3://'}", "the URL names no bucket"),
        ("{files: 'https://[::1/a'}", "not a URL"),
        ("{files: 'https://h:port/a'}", "not a URL"),
        ("{files: 'https://h/a b'}", "not a URL"),
        ('{files: "https://h/a\\e[0m"}', "not a URL"),
    ],
)
def test_a_wrong_entry_is_told_with_file_and_line(load, entry, message):
    with pytest.raises(UsageError, match=message) as caught:
        load(entry)
    assert "recipe.yaml:2: snapshots.crawl" in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://me:hunter2@h/a",
        "s3://AKIA:hunter2@bucket/a",
        "https://h/a?X-Amz-Credential=c&X-Amz-Signature=hunter2",
        "https://h/a?X-Goog-Signature=hunter2",
        "https://h/a?sv=2024&sig=hunter2",
        "https://h/a?x=1&token=hunter2",
        "https://h/a?api_key=hunter2",
        "https://h/a?Key-Pair-Id=K&Policy=hunter2",
    ],
)
@pytest.mark.parametrize("field", ["files", "root", "paths"])
def test_a_secret_in_a_url_is_refused_and_not_repeated(load, url, field):
    more = ", files: a" if field == "root" else ""
    for arguments in (
        (f'{{{field}: "{url}"{more}}}',),
        ("{files: b}", f"snapshots.crawl.{field}={url}"),
    ):
        with pytest.raises(UsageError, match=r"which the store would keep|looks signed") as caught:
            load(*arguments)
        assert "hunter2" not in str(caught.value)
        assert "environment" in str(caught.value)


def test_addresses_of_this_machine_and_harmless_queries_are_taken(load):
    for url in (
        "http://127.0.0.1:8000/a",
        "http://localhost/a",
        "http://[::1]:9/a",
        "https://h/a?download=true&raw=1",
        "gs://bucket/a/*.gz",
        "s3://bucket/a?.gz",
    ):
        assert load(f"{{files: '{url}'}}").files == (url,)


def test_set_points_an_entry_at_a_path_list(load):
    found = load(
        "{root: ../data, files: ['*.gz'], share: 0.5}",
        f"snapshots.crawl.paths={CC}",
        "snapshots.crawl.first=2",
    )
    assert (found.files, found.root, found.paths) == ((), None, CC)
    assert (found.first, found.share) == (2, 0.5)
    with_root = load("{files: a}", "snapshots.crawl.root=s3://b", f"snapshots.crawl.paths={CC}")
    assert (with_root.root, with_root.paths) == ("s3://b", CC)


def test_set_points_an_entry_at_other_files(load, tmp_path):
    bucket = load("{root: ../data, files: a}", "snapshots.crawl.files=s3://b/*.gz")
    assert (bucket.files, bucket.root) == (("s3://b/*.gz",), None)
    absolute = load("{root: ../data, files: a}", "snapshots.crawl.files=[/data/x, ~/y]")
    assert (absolute.files, absolute.root) == (("/data/x", "~/y"), None)
    relative = load("{root: ../data, files: a}", "snapshots.crawl.files=[b]")
    assert (relative.files, relative.root, relative.base) == (("b",), "../data", tmp_path)
    back = load(f"{{paths: '{CC}'}}", "snapshots.crawl.files=s3://b/x")
    assert (back.files, back.paths) == (("s3://b/x",), None)
    nulls = load(
        "{root: ../data, files: a}",
        "snapshots.crawl.files=null",
        "snapshots.crawl.root=null",
        f"snapshots.crawl.paths={CC}",
    )
    assert (nulls.files, nulls.root, nulls.paths) == ((), None, CC)


def test_a_list_is_relative_to_where_its_path_is_written(load, tmp_path):
    assert load("{paths: lists/some.paths}").paths == str(tmp_path / "lists/some.paths")
    assert load("{files: a}", "snapshots.crawl.paths=some.paths").paths == "some.paths"


def test_set_of_both_is_told(load):
    with pytest.raises(UsageError, match=r"crawl\.paths: .*files"):
        load("{files: a}", "snapshots.crawl.files=b", "snapshots.crawl.paths=c")
