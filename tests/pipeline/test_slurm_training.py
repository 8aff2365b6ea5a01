"""Pretraining on two nodes of a real Slurm (srun, torchrun, gloo): the digests of one machine."""

from __future__ import annotations

import time

import pytest
from slurm_cluster import cluster, slurm

from artifacts_schema.store.gc import remove_artifact
from flows.recipe.dispatch import Dispatcher
from flows.recipe.execute import run_step
from stages.engine.inputs import Input

__all__ = ["cluster", "slurm"]
pytestmark = [pytest.mark.faults, pytest.mark.full, pytest.mark.usefixtures("slurm")]

PROFILE = """\
name: two-nodes
pools:
  train:
    type: slurm
    partition: train
    poll_seconds: 0.5
    stop_seconds: 60
    environment: {INGOT_CACHE: SCRATCH}
resources:
  pretrain: {pool: train, nodes: 2, cpus: 2, memory: 2 GB, time: 30 min}
stages:
  pretrain: {threads: 1, preflight: 'off', layout: {shard: 2}, copy_inputs: true}
"""
HERE = """\
name: here
stages:
  pretrain: {threads: 1, preflight: 'off', layout: {shard: 2}}
"""


def digests(manifest):
    return {name: output.digest for name, output in manifest.outputs.items()}


@pytest.fixture
def plan(copy, tmp_path):
    """`plan(profile)` → pipeline and its pretraining step, forgotten if it was made."""

    def make(profile):
        path = tmp_path / "profile.yaml"
        path.write_text(profile.replace("SCRATCH", str(tmp_path / "scratch")))
        pipeline = copy.pipeline(
            "pretrain.precision=fp32", "pretrain.model.kv_heads=2", profile=str(path)
        )
        step = pipeline.plan().step("pretrain")
        made = copy.store.manifest(step.stage, step.key)
        if made is not None:
            remove_artifact(copy.store, made)
        return pipeline, pipeline.plan().step("pretrain")

    return make


@pytest.mark.parametrize("what", ["undisturbed", "requeued", "warned", "killed"])
def test_two_nodes_make_what_one_machine_makes_at_that_layout(copy, plan, tmp_path, slurm, what):
    _, alone = plan(HERE)
    expected = digests(run_step(copy.store, alone))
    pipeline, step = plan(PROFILE)
    assert step.spec.execution["machines"]["count"] == 2
    job = Dispatcher(pipeline.profile)(copy.store, step)
    disturbed, deadline = what == "undisturbed", time.monotonic() + 300
    while (code := job.poll()) is None:
        assert time.monotonic() < deadline
        steps = [one for one in job.events() if one["type"] == "progress" and one["done"] >= 3]
        if steps and not disturbed:
            disturbed = True
            if what == "requeued":
                slurm.run("scontrol", "requeue", job.job)
            elif what == "killed":  # srun's step, on both nodes.
                slurm.run("scancel", "--signal=KILL", f"{job.job}.0")
            else:
                slurm.run("scancel", "--batch", "--signal=USR2", job.job)
        time.sleep(0.1)
    assert code == 0, job.last_words()
    assert disturbed
    copies = {path.name for path in (tmp_path / "scratch" / "files").glob("??/*")}
    train = Input.load(copy.store, step.spec.inputs["train"][0])
    assert copies >= {one.sha256 for one in train.files if one.path.endswith(".tokens")}
    made = copy.store.manifest(step.stage, step.key)
    assert made.layout["ranks"]["shard"] == 2
    assert digests(made) == expected
