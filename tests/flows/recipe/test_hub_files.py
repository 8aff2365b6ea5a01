"""Data sets and models of the Hub: which files an entry means, how pinned, who is told a token."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from artifacts_schema.errors import InputError, UsageError
from flows.recipe.recipe import load_recipe, snapshot_entry
from flows.recipe.snapshots import find_files, take_snapshot
from stages.engine import Input
from stages.engine.remote import RetryPolicy
from stages.engine.sources import source_files

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
from file_server import Fault
from hub_server import HubServer, blob_id

BIG = {name: name.encode() * 200 for name in ("data/a.parquet", "data/b.parquet")}
FILES = {
    **BIG,
    "README.md": b"# Math\n",
    ".gitattributes": b"*.parquet lfs\n",
    "data/deep/c.parquet": b"c" * 3000,
    "extra/50% & more.jsonl": b'{"text": "x"}\n',
}
TOKEN = "hf_hunter2hunter2"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A Hub with the data set `org/math`, nobody logged in; the node's cache is of this test."""
    server = HubServer()
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "node-cache"))
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    server.push("org/math", FILES)
    yield server
    server.close()


def entry(**values):
    return snapshot_entry("math", {"dataset": "org/math", **values}, "test")


def names(**values):
    return [file.name for file in find_files(entry(**values))]


def read(store, manifest):
    files = source_files(Input.from_manifest(store, manifest, "snapshot"))
    return {file.name: file.open().read() for file in files}


def test_a_data_set_is_pinned_by_the_checksums_that_the_hub_tells(hub, store):
    manifest = take_snapshot(store, entry())
    listed = source_files(Input.from_manifest(store, manifest, "snapshot"))
    visible = {name: data for name, data in FILES.items() if name[0] != "."}
    assert [(file.name, file.bytes) for file in listed] == sorted(
        (name, len(data)) for name, data in visible.items()
    )
    for file in listed:
        data = FILES[file.name]
        large = len(data) >= hub.lfs_from
        assert file.sha256 == (hashlib.sha256(data).hexdigest() if large else None)
        assert file.etag == (None if large else f'"{blob_id(data)}"')
    assert manifest.counts["provisional"] == 2  # The README and the small table.
    assert read(store, manifest) == visible


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("data/*.parquet", ["data/a.parquet", "data/b.parquet"]),
        ("**/*.parquet", ["data/a.parquet", "data/b.parquet", "data/deep/c.parquet"]),
        ("data", ["data/a.parquet", "data/b.parquet", "data/deep/c.parquet"]),
        ("data/", ["data/a.parquet", "data/b.parquet", "data/deep/c.parquet"]),
        ("./data/[ab].parquet", ["data/a.parquet", "data/b.parquet"]),
        ("README.md", ["README.md"]),
        (".gitattributes", [".gitattributes"]),
        ("*", ["README.md"]),
        ("d*/deep/*", ["data/deep/c.parquet"]),
        (["extra", "README.md"], ["README.md", "extra/50% & more.jsonl"]),
    ],
)
def test_files_are_patterns_inside_the_data_set(hub, files, expected):
    assert names(files=files) == expected


def test_first_and_share_take_a_part(hub):
    assert names(files="data/*", first=1) == ["data/a.parquet"]
    assert names(files="data/*", share=1, first=2) == ["data/a.parquet", "data/b.parquet"]


def test_a_branch_is_pinned_at_its_commit(hub, store):
    first = hub.branches["org/math"]["main"]
    (file,) = find_files(entry(files="README.md"))
    assert file.location == f"{hub.url}/datasets/org/math/resolve/{first}/README.md"
    before = take_snapshot(store, entry(files="data/*.parquet"))
    hub.push("org/math", {**FILES, "data/a.parquet": b"new" * 1000})
    assert read(store, before) == BIG  # What a branch holds by now is another snapshot.
    after = take_snapshot(store, entry(files="data/*.parquet"))
    assert after.key != before.key
    pinned = take_snapshot(store, entry(files="data/*.parquet", revision=first))
    assert pinned.key == before.key
    hub.push("org/math", {"x": b"X" * 2000}, branch="refs/convert/parquet")
    assert names(revision="refs/convert/parquet") == ["x"]
    moved = hub.push("org/math", {**FILES, "README.md": b"other"})
    same = take_snapshot(store, entry(files="data/*.parquet", revision=moved))
    assert same.key == before.key  # The same bytes at another commit are the same snapshot.


def test_a_commit_is_not_asked_about(hub):
    names(files="data/*.parquet", revision=hub.branches["org/math"]["main"])
    assert not any("/revision/" in path for path, _ in hub.callers)


def test_a_cut_fetch_goes_on_where_it_was(hub, store, monkeypatch):
    monkeypatch.setattr(RetryPolicy, "pause", lambda *_: None)
    data = bytes(range(256)) * 20_000
    hub.push("org/math", {"big.bin": data})
    path = f"/{hashlib.sha256(data).hexdigest()}?X-Amz-Signature=abc"
    hub.storage.faults[path] = [Fault(cut=2_000_000)]
    (file,) = source_files(Input.from_manifest(store, take_snapshot(store, entry()), "snapshot"))
    assert file.open().read() == data
    assert hub.storage.sent(path) == len(data)
    assert [asked.range for asked in hub.storage.asked] == [None, "bytes=2000000-"]


def test_other_bytes_than_the_checksum_says_are_refused(hub, store):
    data = b"x" * 5000
    hub.push("org/math", {"big.bin": data})
    manifest = take_snapshot(store, entry())
    (path,) = (p for p in hub.storage.files if hashlib.sha256(data).hexdigest() in p)
    hub.storage.files[path].data = b"y" * 5000
    (file,) = source_files(Input.from_manifest(store, manifest, "snapshot"))
    with pytest.raises(InputError, match="not those of the pinned checksum"):
        file.open()
    assert hub.storage.sent(path) == 2 * 5000  # Once more, since the way may have hurt them.
    hub.storage.files[path].data = data
    assert file.open().read() == data


def test_a_token_goes_to_the_hub_alone_and_nowhere_else(hub, store, monkeypatch, tmp_path):
    hub.private["org/math"] = TOKEN
    with pytest.raises(InputError, match=r"org/math.*HF_TOKEN"):
        find_files(entry())
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    manifest = take_snapshot(store, entry())
    assert read(store, manifest)["data/a.parquet"] == FILES["data/a.parquet"]
    assert {said for _, said in hub.callers[-3:]} == {f"Bearer {TOKEN}"}
    assert {said for _, said in hub.storage.callers} == {None}
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 5
    assert not [path for path in kept if TOKEN.encode() in path.read_bytes()]


def test_a_token_that_is_gone_when_files_are_read_is_told(hub, store, monkeypatch):
    hub.private["org/math"] = TOKEN
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    manifest = take_snapshot(store, entry())
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(InputError, match=r"the server answered 401 \(`hf auth login` or set HF_T"):
        read(store, manifest)


def test_what_is_not_there_is_told(hub):
    def told(**values):
        with pytest.raises(InputError) as caught:
            find_files(entry(**values))
        return str(caught.value)

    assert "data set org/none" in told(dataset="org/none")
    assert "'v9'" in told(revision="v9")
    assert "'x/*.gz'" in told(files="x/*.gz")
    assert "'data/none'" in told(files="data/none")
    hub.gated.add("org/math")
    assert "data set org/math requires consent (agree on " in told()


def test_a_hub_that_is_not_there_is_told_in_one_line(hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"org/math.*HF_HUB_OFFLINE"):
        find_files(entry())
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(InputError, match="the Hub cannot be queried for data set org/math: "):
        find_files(entry())


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "a//b", "a\\b", "a\x1b[31m"])
def test_a_hostile_name_is_refused(hub, name):
    hub.push("org/math", {"good": b"", name: b"x" * 2000})
    with pytest.raises(InputError, match="the Hub names a file") as caught:
        find_files(entry())
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{dataset: 'https://huggingface.co/datasets/a/b'}",
            "is not the name of a data set .as on hugg",
        ),
        ("{dataset: a/b/c}", "not the name of a data set"),
        ("{dataset: ../b}", "not the name of a data set"),
        ("{dataset: a/b, revision: ../x}", "revision: expected a branch"),
        ("{dataset: a/b, revision: 1}", "revision: expected a branch"),
        ("{dataset: a/b, files: /etc/x}", "files: '/etc/x' is not a path inside a data set"),
        ("{dataset: a/b, files: 's3://b/x'}", "is not a path inside a data set"),
        ("{dataset: a/b, files: ../x}", "files: '../x' leads out of the data set"),
        ("{dataset: a/b, root: c}", "root: does not go with dataset"),
        ("{dataset: a/b, paths: c}", "dataset: given with paths"),
        ("{dataset: a/b, crawl: CC-MAIN-2024-33, first: 1}", "dataset: given with crawl"),
        ("{files: a, revision: main}", "revision: goes with dataset or model only"),
    ],
)
def test_a_wrong_entry_is_told_with_file_and_line(tmp_path, text, message):
    path = tmp_path / "recipe.yaml"
    path.write_text(f"snapshots:\n  math: {text}\nsteps: {{read: {{stage: ingest}}}}\n")
    with pytest.raises(UsageError, match=message) as caught:
        load_recipe(path)
    assert "recipe.yaml:2: snapshots.math" in str(caught.value)


def test_a_model_s_files_are_pinned_likewise(hub, store):
    files = {"tokenizer.json": b"{" + b" " * 2000 + b"}", "model.safetensors": b"w" * 9000}
    commit = hub.push("org/llm", files, kind="models")
    source = snapshot_entry("llm", {"model": "org/llm", "files": ["tokenizer*"]}, "test")
    assert source.location == "model org/llm"
    (found,) = find_files(source)
    assert found.location == f"{hub.url}/org/llm/resolve/{commit}/tokenizer.json"
    manifest = take_snapshot(store, source)
    assert read(store, manifest) == {"tokenizer.json": files["tokenizer.json"]}
    with pytest.raises(InputError, match="model org/none"):
        find_files(snapshot_entry("llm", {"model": "org/none"}, "test"))


def test_a_model_and_a_data_set_are_two_places():
    with pytest.raises(UsageError, match=r"model: .*dataset"):
        snapshot_entry("x", {"model": "org/a", "dataset": "org/b"}, "test")
    with pytest.raises(UsageError, match="model: 'org/a/b'"):
        snapshot_entry("x", {"model": "org/a/b"}, "test")
