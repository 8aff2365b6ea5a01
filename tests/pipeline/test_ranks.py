"""Pretraining on several processes: as one process trains, killed and stopped, on other layouts."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace

import pytest
import torch
from rank_runs import ranks, start, wait_for_checkpoint
from safetensors.torch import load

from artifacts_schema.errors import EXIT_RESUME, IngotError, UsageError
from artifacts_schema.store.gc import remove_artifact
from artifacts_schema.store.layout import payload
from stages.engine.inputs import Input
from stages.engine.runner import run_stage
from stages.engine.spec import StageSpec
from stages.parallel.layout import Layout

pytestmark = pytest.mark.faults

LAYOUTS = {
    "two": {"shard": 2},
    "copies": {"data": 2},
    "four": {"data": 2, "shard": 2},
    "tensor": {"tensor": 2},
    "pipeline": {"pipeline": 2, "data": 2},
    "context": {"context": 2},
}


@pytest.fixture
def pretrain(copy):
    """`pretrain(layout)` → the tiny recipe's step in float32, forgotten if it was made."""
    pipeline = copy.pipeline("pretrain.precision=fp32", "pretrain.model.kv_heads=2")

    def spec(layout=None):
        step = pipeline.plan().step("pretrain")
        execution = {**step.spec.execution, "layout": layout or {}, "preflight": "off"}
        made = copy.store.manifest(step.stage, step.spec.key)
        if made is not None:
            remove_artifact(copy.store, made)
        return replace(step.spec, execution=execution)

    return spec


def metrics(store, manifest):
    """Losses and gradient norms by training step."""
    run = Input.from_manifest(store, manifest, "training_run")
    return run.read_table("metrics.parquet").to_pydict()


def assert_alike(one, other, tolerance=1e-5):
    for name in ("training_step", "tokens", "targets", "learning_rate"):
        assert one[name] == other[name]
    for name in ("loss", "grad_norm", "bits_per_byte"):
        assert max(abs(a - b) for a, b in zip(one[name], other[name], strict=True)) <= tolerance


@pytest.fixture
def expected(copy, pretrain):
    """What one process measures."""
    manifest = run_stage(copy.store, pretrain()).manifest
    return metrics(copy.store, manifest)


@pytest.mark.full
@pytest.mark.parametrize(
    "layout",
    [pytest.param(one, id=name, marks=[] if name == "two" else [pytest.mark.full])
     for name, one in LAYOUTS.items()],
)  # fmt: skip
def test_ranks_measure_what_one_process_does(copy, pretrain, expected, layout):
    spec = pretrain(layout)
    spec = replace(spec, execution={**spec.execution, "preflight": "refuse"})
    made = run_stage(copy.store, spec).manifest
    assert_alike(metrics(copy.store, made), expected)
    folder = payload(made.stage, made.key, made.attempt, "telemetry")
    checks = json.loads(copy.store.backend.read(f"{folder}/preflight.json"))["findings"]
    by_name = {one["check"]: one for one in checks}
    assert by_name.keys() >= {"device", "memory", "links", "disk", "resume", "dry batch", "time"}
    assert by_name["links"]["ranks"] == Layout.parse(layout, where="layout").world
    # All micro-batches of the first training step, over all ranks.
    assert by_name["dry batch"]["dry_tokens"] == metrics(copy.store, made)["tokens"][0]
    assert made.layout["ranks"] == Layout.parse(layout, where="layout").plain()
    assert {file.path for file in made.outputs["checkpoint"].files} >= {"model.safetensors"}
    assert made.telemetry["cpu_seconds"] > 0


def test_a_killed_rank_is_named_and_another_layout_goes_on(copy, pretrain, expected, tmp_path):
    store, spec = copy.store, pretrain({"shard": 2})
    process = start(store, spec, tmp_path)
    wait_for_checkpoint(store, spec, process, 10)
    os.kill(ranks(store, spec)[1], signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "rank 1 died (SIGKILL)" in output
    assert not ranks(store, spec)
    made = run_stage(store, replace(spec, execution={**spec.execution, "layout": {}})).manifest
    assert_alike(metrics(store, made), expected)


@pytest.mark.full
def test_a_run_that_is_stopped_saves_and_goes_on_with_more_ranks(
    copy, pretrain, expected, tmp_path
):
    store, spec = copy.store, pretrain({"shard": 2})
    process = start(store, spec, tmp_path)
    wait_for_checkpoint(store, spec, process, 5)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == EXIT_RESUME, output
    made = run_stage(
        store, replace(spec, execution={**spec.execution, "layout": {"data": 2}})
    ).manifest
    assert_alike(metrics(store, made), expected)


@pytest.mark.full
@pytest.mark.parametrize("place", ["s3"])
def test_in_a_bucket_another_machine_goes_on_from_what_was_published(
    copy, pretrain, expected, tmp_path, monkeypatch
):
    store, spec = copy.store, pretrain({"shard": 2})
    process = start(store, spec, tmp_path)
    wait_for_checkpoint(store, spec, process, 10)
    process.kill()
    process.communicate()
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "another machine"))
    made = run_stage(
        store, replace(spec, execution={**spec.execution, "layout": {"data": 2}})
    ).manifest
    assert_alike(metrics(store, made), expected)


@pytest.mark.full
def test_checkpoints_on_the_way_are_those_of_one_process(copy):
    """Committed by rank 0 of gathered tensors; steps that read them see one model."""
    store = copy.store
    pipeline = copy.pipeline("pretrain.precision=fp32", "pretrain.checkpoints.every=4096")
    spec = pipeline.plan().step("pretrain").spec
    kept = []
    for layout in ({"shard": 2}, {}):
        execution = {**spec.execution, "layout": layout, "preflight": "off"}
        made = run_stage(store, replace(spec, execution=execution)).manifest
        interims = {one.at: store.manifest("pretrain", one.key) for one in made.interims}
        kept.append(
            {
                (at, name): load(Input.from_manifest(store, one, "checkpoint").read_bytes(name))
                for at, one in interims.items()
                for name in ("model.safetensors", "optimizer.safetensors")
            }
        )
        for one in (made, *interims.values()):
            remove_artifact(store, one)
    ranks, alone = kept
    assert ranks.keys() == alone.keys()
    assert len({at for at, _ in ranks}) == 4
    for place, tensors in alone.items():
        assert ranks[place].keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert torch.allclose(ranks[place][name], tensor, atol=1e-5), (place, name)


@pytest.mark.full
def test_ranks_end_with_the_process_that_started_them(copy, pretrain, expected, tmp_path):
    store, spec = copy.store, pretrain({"shard": 2})
    process = start(store, spec, tmp_path)
    wait_for_checkpoint(store, spec, process, 5)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while ranks(store, spec) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not ranks(store, spec)
    assert_alike(metrics(store, run_stage(store, spec).manifest), expected)


@pytest.mark.full
def test_resumed_at_the_same_layout_it_is_bit_equal(copy, pretrain, tmp_path):
    store, spec = copy.store, pretrain({"shard": 2})
    whole = run_stage(store, spec).manifest
    spec = pretrain({"shard": 2})
    process = start(store, spec, tmp_path)
    wait_for_checkpoint(store, spec, process, 10)
    os.kill(ranks(store, spec)[0], signal.SIGKILL)
    assert process.wait(timeout=120) == 1
    again = run_stage(store, spec).manifest
    assert {n: o.digest for n, o in again.outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }


@pytest.mark.full
def test_an_error_of_the_ranks_is_the_error_of_the_run(copy, pretrain):
    """Every rank finds that its inputs are damaged; the first one is told."""
    store, spec = copy.store, pretrain({"shard": 2})
    reference = spec.inputs["tokenizer"][0]
    manifest = store.manifest(reference.stage, reference.key)
    path = store.backend.local_path(
        f"data/{manifest.stage}/{manifest.key}/{manifest.attempt}/{reference.output}/tokenizer.json"
    )
    text = path.read_bytes()
    path.unlink()  # Payload is shared by links.
    path.write_bytes(text[:-1] + b" ")
    with pytest.raises(IngotError, match=r"tokenizer\.json: rank [01]: ") as caught:
        run_stage(store, spec)
    assert caught.value.exit_code == 2


def test_a_layout_that_a_stage_cannot_run_is_refused_with_its_spec(copy):
    spec = copy.pipeline().plan().step("dpo").spec
    value = json.loads(spec.to_json())
    value["execution"]["layout"] = {"pipeline": 2}
    with pytest.raises(UsageError) as caught:
        StageSpec.from_json(json.dumps(value).encode(), where="spec")
    assert caught.value.where == "execution.layout.pipeline"


@pytest.mark.full
def test_an_evaluation_on_ranks_has_the_tables_of_one_process(copy):
    """With benchmarks, held-out text, contamination, planted defects and generations."""
    step, alone = copy.step("evaluate"), copy.made("evaluate")
    expected = evaluation(copy.store, alone)
    remove_artifact(copy.store, alone)
    execution = {**step.spec.execution, "layout": {"shard": 2}}
    made = run_stage(copy.store, replace(step.spec, execution=execution)).manifest
    assert made.layout["ranks"] == Layout(shard=2).plain()
    assert made.counts == alone.counts
    results = evaluation(copy.store, made)
    for name, columns in expected.items():
        assert results[name].keys() == columns.keys()
        for column, values in columns.items():
            for value, one in zip(results[name][column], values, strict=True):
                assert value == (pytest.approx(one, rel=1e-5) if isinstance(one, float) else one)


def evaluation(store, manifest):
    """Columns of the tables of an evaluation, by file."""
    made = Input.from_manifest(store, manifest, "evaluation")
    names = ("results.parquet", "items.parquet", "generations.parquet")
    return {name: made.read_table(name).to_pydict() for name in names}
