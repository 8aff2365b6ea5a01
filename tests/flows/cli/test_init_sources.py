"""`ingot init` for a bucket and a data set of the Hub: looked at cheaply, planned as written."""

from __future__ import annotations

import io
import json
import socket
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub import constants

from artifacts_schema.store import Store
from flows.cli.main import main
from flows.recipe import remote_files
from flows.recipe.pipeline import Pipeline, Request

sys.path.insert(0, str(Path(__file__).parents[2]))
from hub_server import HubServer

TEXT = {"text": "some words of a text " * 50}
PRETRAINING = {"text", "signals[text]", "dedup", "filter", "tokenizer", "pack", "pretrain",
               "evaluate", "export"}  # fmt: skip


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "node-cache"))


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A Hub where nobody is logged in."""
    server = HubServer()
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield server
    server.close()


def init(*arguments):
    return CliRunner().invoke(main, ["init", *arguments])


def planned(path):
    Store.open("store")
    pipeline = Pipeline.open(Request(str(path), "store"))
    files = {name: made.counts["files"] for name, made in pipeline.snapshots.items()}
    return {step.instance for step in pipeline.plan().steps}, files


def lines(count, **more):
    return "".join(json.dumps({**TEXT, **more, "n": n}) + "\n" for n in range(count)).encode()


def parquet(rows, group=1000):
    file = io.BytesIO()
    pq.write_table(pa.table({"body": [TEXT["text"]] * rows}), file, row_group_size=group)
    return file.getvalue()


# Buckets -----------------------------------------------------------------------------------------


@pytest.fixture
def bucket(s3_url):
    """`bucket(name, data)` puts an object; the URL of the bucket."""
    import s3fs

    fs = s3fs.S3FileSystem()

    def put(name, data):
        fs.pipe_file(f"{s3_url.removeprefix('s3://')}/{name}", data)
        return s3_url

    return put


def test_a_bucket_is_surveyed_and_planned_as_written(bucket):
    bucket("crawl/a/x.jsonl", lines(40))
    bucket("crawl/empty.jsonl", b"")
    url = bucket("crawl/b.jsonl", lines(30))
    result = init(f"{url}/crawl")
    assert result.exit_code == 0, result.output
    entry = yaml.safe_load(Path("crawl.yaml").read_text())["snapshots"]["text-files"]
    assert entry == {"root": f"{url}/crawl", "files": ["a/**/*.jsonl", "*.jsonl"]}
    # The pattern takes the empty file as well: it is no group of its own.
    assert planned("crawl.yaml") == (PRETRAINING, {"text-files": 3})


def test_nothing_of_a_survey_stays_in_the_cache_of_sources(bucket, tmp_path):
    url = bucket("a.jsonl", lines(40))
    assert init(url, "--name", "one").exit_code == 0
    assert not (tmp_path / "node-cache" / "sources").exists()


def test_an_empty_prefix_is_named(bucket):
    url = bucket("a.jsonl", lines(1))
    result = init(f"{url}/nowhere")
    assert result.exit_code == 2
    assert "nowhere" in result.stderr


def test_a_server_that_does_not_answer_is_named(bucket, monkeypatch):
    import dataclasses

    url = bucket("a.jsonl", lines(1))
    with socket.socket() as taken:  # Bound and not listening: connections are refused.
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        quick = dataclasses.replace(remote_files.PLANNING, sleep=lambda seconds: None)
        monkeypatch.setattr(remote_files, "PLANNING", quick)
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        result = init(url)
    assert result.exit_code == 2
    assert "the connection failed" in result.stderr
    assert url in result.stderr


# The Hub -----------------------------------------------------------------------------------------


def test_a_data_set_is_surveyed_and_planned_as_written(hub):
    files = {f"data/train-{n:05}.parquet": parquet(60 + n) for n in range(3)}
    card = b"---\nconfigs: []\n---\n# Math\n"
    files["data/test-00000.parquet"] = parquet(30)
    hub.push("org/math", {**files, "README.md": card, ".gitattributes": b"x"})
    result = init("--dataset", "org/math")
    assert result.exit_code == 0, result.output
    assert "a split to test with: left out" in " ".join(result.stdout.split())
    assert "text in 'body'" in result.stdout
    assert "describes a data set" in result.stdout
    recipe = yaml.safe_load(Path("math.yaml").read_text())
    assert recipe["snapshots"]["text-files"] == {
        "dataset": "org/math", "files": ["data/**/train*.parquet"],
    }  # fmt: skip
    assert recipe["steps"]["text"] == {"config": {"text_field": "body"}}
    assert planned("math.yaml") == (PRETRAINING, {"text-files": 3})


def test_of_a_large_file_a_part_is_fetched(hub):
    """40 MB of rows that no compression makes smaller; 100 of them are looked at."""
    import random

    words = random.Random(1)
    rows = ({"text": f"word {words.getrandbits(4000)} " * 4} for _ in range(8_000))
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert len(data) > 30_000_000
    hub.push("org/big", {"a.jsonl": data})
    sent = []
    plain = hub.storage.special
    hub.storage.special = lambda request: sent.append(request) or plain(request)
    result = init("--dataset", "org/big", "--minutes", "1")
    assert result.exit_code == 0, result.output
    assert len(sent) <= 3


def test_of_many_files_a_part_is_taken(hub):
    """One minute of training needs no 40 MB of text: the recipe names how many files."""
    data = lines(1000)
    hub.push("org/many", {f"{n:03}.jsonl": data for n in range(40)})
    result = init("--dataset", "org/many", "--minutes", "1", "--revision", "main")
    assert result.exit_code == 0, result.output
    entry = yaml.safe_load(Path("many.yaml").read_text())["snapshots"]["text-files"]
    assert entry["revision"] == "main"
    assert 0 < entry.get("share", entry.get("first", 0) / 40) < 0.5
    assert "of the files are taken" in result.stdout
    _, files = planned("many.yaml")
    assert 1 <= files["text-files"] < 20


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((), "name a folder, a bucket, or a data set"),
        (("data", "--dataset", "org/x"), "name a folder, a bucket, or a data set"),
        (("data", "--revision", "v1"), "--revision goes with --dataset"),
        (("https://example.org/data",), "does not list its files"),
        (("--dataset", "org/none"), "the Hub shows no data set org/none"),
        (("--dataset", "https://x"), "is not the name of a data set"),
    ],
)
def test_what_is_no_source_is_refused_with_the_reason(hub, arguments, word):
    result = init(*arguments)
    assert result.exit_code == 2, result.output
    assert word in result.stderr


def test_without_a_network_the_address_is_named(hub, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("HF_ENDPOINT", address)
        result = init("--dataset", "org/math")
    assert result.exit_code == 2
    assert address in result.stderr
    assert "reachable" in result.stderr
