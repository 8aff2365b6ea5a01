"""A store in a bucket does what one in a folder does."""

from __future__ import annotations

import collections
import json
import os

import pytest
from click.testing import CliRunner

from artifacts_schema.identity import short
from artifacts_schema.store.verify import verify
from flows.cli.main import main
from flows.recipe.execute import execute


def ingot(store, *arguments):
    result = CliRunner().invoke(main, [*arguments, "--store", store])
    assert result.exit_code == 0, result.output
    return result.output


def digests(plan):
    return {
        step.instance: {name: output.digest for name, output in step.manifest.outputs.items()}
        for step in plan.steps
    }


@pytest.mark.full
def test_the_whole_recipe_gives_the_bytes_that_it_gives_in_a_folder(ran, s3_url):
    """By child processes, as `ingot run` does."""
    bucket = type(ran)(s3_url + "/fresh")
    assert execute(bucket.pipeline(), jobs=2).is_done
    plan = bucket.pipeline().plan()
    assert digests(plan) == digests(ran.pipeline().plan())
    for step in plan.steps:
        assert verify(bucket.store, step.manifest) == []


@pytest.mark.full
@pytest.mark.parametrize("place", ["s3"])
def test_a_child_process_makes_a_step_in_the_bucket(copy, without):
    """The steps above are reused, what is below it too: its output is unchanged."""
    _, before = without("signals[web]")
    plan = execute(copy.pipeline(), jobs=1)
    assert plan.is_done
    made = plan.step("signals[web]").manifest
    assert made.attempt != before.attempt
    assert made.outputs == before.outputs
    assert copy.store.backend.files(f"work/{made.key}") == []


def test_readers_work_on_a_bucket(in_bucket, ran):
    store = in_bucket.store.url
    for command in (["ls"], ["gc"], ["verify", "tiny/pack"], ["lineage", "tiny/export"]):
        assert json.loads(ingot(store, *command, "--json"))
    assert short(ran.made("filter").key) in ingot(store, "show", "tiny/filter")
    assert "export" in ingot(store, "trace", "tiny/export")
    rows = json.loads(ingot(store, "trace", "tiny/pretrain", "--training-step", "3", "--json"))
    local = ingot(str(ran.folder), "trace", "tiny/pretrain", "--training-step", "3", "--json")
    assert rows == json.loads(local)


def test_a_plan_asks_the_bucket_a_few_times_a_step(in_bucket, monkeypatch):
    """A manifest and a listing for each step that stands, and a few requests for the whole."""
    import s3fs

    requests = collections.Counter()
    call = s3fs.S3FileSystem._call_s3

    async def counted(self, method, *arguments, **more):
        requests[method] += 1
        return await call(self, method, *arguments, **more)

    pipeline = in_bucket.pipeline()
    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
    plan = pipeline.plan()
    assert plan.is_done
    assert sum(requests.values()) <= 2 * len(plan.steps) + 5, requests


def test_a_fresh_machine_reads_through_its_cache_once(in_bucket, tmp_path, monkeypatch):
    """The second reader of the same files makes no request for their bytes."""
    from artifacts_schema.store import remote
    from stages.engine import Input

    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "fresh-machine"))
    fetched = []
    blocks = remote.RemoteBackend.blocks
    monkeypatch.setattr(
        remote.RemoteBackend,
        "blocks",
        lambda self, path, size: (fetched.append(path), blocks(self, path, size))[1],
    )
    for _ in range(2):
        documents = Input.from_manifest(in_bucket.store, in_bucket.made("filter"), "documents")
        rows = sum(shard.read(["doc_id"]).num_rows for shard in documents.shards())
        assert rows == documents.rows > 0
    assert len(fetched) == len(documents.paths("*.parquet"))
    files = (tmp_path / "fresh-machine").rglob("??/*")
    copies = (one for one in files if "manifests" not in one.parts and not one.suffix)
    held = sum(one.stat().st_size for one in copies)
    assert held == documents.size
    assert not os.path.exists(tmp_path / "fresh-machine" / "work")
