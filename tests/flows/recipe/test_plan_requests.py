"""How many requests a plan of many finished steps makes to a bucket, and that it sees each change.

The counts are the server's own. Most artifacts are copies of one that was made, under the keys of
other configs.
"""

from __future__ import annotations

import json
import os
import resource
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from artifacts_schema.identity import canonical_sha256
from artifacts_schema.store import Store, layout
from artifacts_schema.store.runs import run_ids
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request

HEAD = """\
name: many
snapshots:
  crawl: {files: ["data/a/*.txt"]}
steps:
  read: {stage: lines, inputs: {snapshot: crawl}}
  measure: {stage: measure, inputs: {documents: read}}
"""
BY_SNAPSHOT = """\
name: many
snapshots:
{snapshots}
steps:
  read: {{stage: lines, for_each: snapshots, inputs: {{snapshot: each}}}}
"""
STEP = """\
  choose{n}:
    stage: choose
    config: {{least: {{characters: {n}}}}}
    inputs: {{documents: read, signals: measure}}
"""


def counted(server):
    """Requests by method since the last call."""
    with urllib.request.urlopen(f"{server}/-/requests", timeout=10) as answer:
        return json.loads(answer.read())


def upload(local, bucket):
    """All files of a store in a folder, into one in a bucket."""

    def put(name):
        bucket.backend.replace(name, local.backend.read(name))

    _ = bucket.backend.fs
    names = [f"{at}/{n}" for at in ("artifacts", "data", "refs", "runs")
             for n in local.backend.files(at)]  # fmt: skip
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, names))


def clone(store, manifest, spec):
    """The artifact of `spec`, with the payload of `manifest`."""
    value = json.loads(manifest.to_json())
    old = value["key"]
    value |= {"key": spec.key, "config": spec.config, "identity": spec.identity}
    del value["checksum"]
    hashed = {k: v for k, v in value.items() if k not in ("telemetry", "attempt")}
    value["checksum"] = canonical_sha256(hashed)
    source = layout.payload(manifest.stage, old, manifest.attempt)
    target = layout.payload(manifest.stage, spec.key, manifest.attempt)
    for name in store.backend.files(source):
        if not name.startswith("telemetry/"):
            store.backend.replace(f"{target}/{name}", store.backend.read(f"{source}/{name}"))
    store.backend.replace(layout.manifest(spec.stage, spec.key), json.dumps(value).encode())


@pytest.fixture
def finished(project, tmp_path, inline, s3_url, monkeypatch):
    """`finished(n)`: `open()` of a recipe with n choices more than its two steps, all made."""

    def make(choices):
        recipe = project / "many.yaml"
        recipe.write_text(HEAD + "".join(STEP.format(n=n) for n in range(1, choices + 1)))
        local = Store.open(str(tmp_path / "local"))
        at = Pipeline.open(Request(str(recipe), local.url, through="choose1"))
        execute(at, dispatch=inline)
        made = Pipeline.open(Request(str(recipe), local.url)).plan()
        first = made.step("choose1").manifest
        for step in made.steps:
            if step.action == "run":
                clone(local, first, step.spec)
        execute(Pipeline.open(Request(str(recipe), local.url)), dispatch=inline)
        assert run_ids(local, "many")
        bucket = Store.open(f"{s3_url}/store")
        upload(local, bucket)
        return lambda: Pipeline.open(Request(str(recipe), bucket.url))

    return make


def plan(open_pipeline, server, monkeypatch=None):
    """A plan, and the requests that opening the recipe and planning it made."""
    counted(server)
    before = resource.getrusage(resource.RUSAGE_SELF)
    made = open_pipeline().plan()
    after = resource.getrusage(resource.RUSAGE_SELF)
    requests = counted(server)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{len(made.steps)} steps: {requests}, {spent:.1f} CPU s")
    return made, sum(requests.values())


@pytest.mark.parametrize("choices", [40, pytest.param(998, marks=pytest.mark.full)])
def test_a_warm_plan_asks_for_listings_and_changed_manifests_only(finished, s3_server, choices):
    open_pipeline, steps = finished(choices), choices + 2
    made, cold = plan(open_pipeline, s3_server)
    assert made.count("reuse") == steps
    assert steps <= cold <= steps + 50, "one GET for each manifest"
    made, warm = plan(open_pipeline, s3_server)
    assert made.count("reuse") == steps
    assert warm < 50
    store = open_pipeline().store
    gone, changed = made.step("choose2"), made.step("choose3")
    store.backend.remove(layout.manifest("choose", gone.key))
    path = layout.manifest("choose", changed.key)
    raw = store.backend.read(path)
    store.backend.replace(path, raw.replace(b'"characters": 3', b'"characters": 4'))
    made, again = plan(open_pipeline, s3_server)
    assert made.step("choose2").action == "run"
    assert made.step("choose3").cause.startswith("corrupt")
    assert made.count("reuse") == steps - 2
    assert again < 50 + 20, "those of two steps that will run are asked for by themselves"


def test_payload_that_is_cut_or_gone_is_seen_with_a_warm_cache(finished, s3_server):
    open_pipeline = finished(5)
    made, _ = plan(open_pipeline, s3_server)
    store = open_pipeline().store
    cut, gone = made.step("choose2").manifest, made.step("choose3").manifest
    files = {
        one.key: store.payload(one, name, output.files[0].path)
        for one in (cut, gone)
        for name, output in one.outputs.items()
        if output.files
    }
    store.backend.replace(files[cut.key], b"x")
    store.backend.remove(files[gone.key])
    made, _ = plan(open_pipeline, s3_server)
    assert "changed from" in made.step("choose2").cause
    assert "gone" in made.step("choose3").cause
    assert made.count("reuse") == 5


def test_a_cut_cache_is_read_again_from_the_store(finished, s3_server):
    open_pipeline = finished(5)
    plan(open_pipeline, s3_server)
    kept = [p for p in (Path(os.environ["INGOT_CACHE"]) / "manifests").rglob("*") if p.is_file()]
    assert len(kept) >= 7
    for path in kept:
        path.write_bytes(path.read_bytes()[:-1])
    made, requests = plan(open_pipeline, s3_server)
    assert made.count("reuse") == 7
    assert requests >= 7


def test_a_warm_plan_of_many_snapshots_asks_for_listings_only(project, inline, s3_url, s3_server):
    recipe = project / "many.yaml"
    entries = "\n".join(f'  week{n:02d}: {{files: ["data/a/*.txt"]}}' for n in range(30))
    recipe.write_text(BY_SNAPSHOT.format(snapshots=entries))

    def open_pipeline():
        return Pipeline.open(Request(str(recipe), f"{s3_url}/store"))

    Store.open(f"{s3_url}/store", create=True)
    execute(open_pipeline(), dispatch=inline)
    plan(open_pipeline, s3_server)
    made, requests = plan(open_pipeline, s3_server)
    assert made.count("reuse") == 30
    assert requests < 20
    store = open_pipeline().store
    cut, forgotten = (open_pipeline().snapshots[name] for name in ("week03", "week04"))
    digest = forgotten.output("snapshot").digest
    store.write_locations(digest, {})
    store.backend.replace(store.payload(cut, "snapshot", "snapshot.json"), b"x")
    again = open_pipeline()
    assert again.snapshots["week03"].attempt != cut.attempt, "it was taken again"
    assert store.locations(digest), "and the places of the files of week04 are known again"
    assert again.plan().count("reuse") == 30
    (project / "data" / "a" / "more.txt").write_text("more\n")
    assert open_pipeline().plan().count("run") == 30
