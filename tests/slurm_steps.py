"""Steps that a test sends to a Slurm: a profile, a step of many shards, what to wait for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from slurm_cluster import SlurmCluster

from artifacts_schema.store import Store, layout
from flows.recipe.dispatch import Job
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.plan import Plan

T = TypeVar("T")

PROFILE = """\
name: cluster
jobs: 4
pools:
  cpu: {type: slurm, partition: debug, poll_seconds: 0.5, warning_seconds: 30, stop_seconds: 30}
  small: {type: slurm, partition: small, poll_seconds: 0.5, warning_seconds: 30}
  other: {type: slurm, partition: train, poll_seconds: 0.5, warning_seconds: 30}
  typo: {type: slurm, partition: nowhere, poll_seconds: 0.5}
  charged: {type: slurm, partition: debug, poll_seconds: 0.5, account: nobody}
  special: {type: slurm, partition: debug, poll_seconds: 0.5, qos: nothing}
  snake: {type: slurm, partition: debug, poll_seconds: 0.5, python: /nowhere/python}
resources:
  default: {pool: cpu, cpus: 1, memory: 500 MB}
"""
NAPS = """\
name: NAME
snapshots:
  crawl: {files: ["data/a/*.txt"]}
steps:
  naps: {stage: naps, config: {shards: 20, seconds: SECONDS}, inputs: {snapshot: crawl}}
"""
LIVE = ("PENDING", "RUNNING", "COMPLETING")
OVER = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY")


@pytest.fixture
def profile(project: Path) -> Callable[..., str]:
    """`profile("naps: {pool: small, time: 2 min}")`: the file of a profile."""

    def write(*resources: str) -> str:
        path = project / "cluster.yaml"
        path.write_text(PROFILE + "".join(f"  {line}\n" for line in resources))
        return str(path)

    return write


@pytest.fixture
def naps(
    project: Path, open_pipeline: Callable[..., Pipeline], profile: Callable[..., str]
) -> Callable[..., Pipeline]:
    """`naps(seconds, *resources, name="sleepy")`: a pipeline of one step of twenty shards."""

    def make(seconds: float, *resources: str, name: str = "sleepy") -> Pipeline:
        recipe = project / f"{name}.yaml"
        recipe.write_text(NAPS.replace("NAME", name).replace("SECONDS", str(seconds)))
        return open_pipeline(recipe=recipe, profile=profile(*resources))

    return make


def jobs(slurm: SlurmCluster, states: tuple[str, ...] = LIVE) -> dict[str, str]:
    """Number → state of the jobs in the queue."""
    lines = slurm.output("squeue", "-h", "-t", "all", "-o", "%i %T").splitlines()
    return {line.split()[0]: line.split()[1] for line in lines if line.split()[1] in states}


def done_shards(store: Store, pipeline: Pipeline) -> int:
    """How many shards of the only step are kept."""
    (step,) = pipeline.plan().steps
    assert step.key is not None
    return len(store.backend.files(layout.work(step.key, "done")))


def wait_for(condition: Callable[[], T], seconds: float = 60.0) -> T:
    """The first value of `condition` that counts as true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return value


def follow(job: Job, seconds: float = 180.0) -> tuple[int, list[str]]:
    """The exit code of a job, and what was said of it until then."""
    texts: list[str] = []

    def look() -> list[int]:
        code = job.poll()
        texts.extend(event["text"] for event in job.events() if event["type"] == "job")
        return [] if code is None else [code]

    return wait_for(look, seconds)[0], texts


def digests(plan: Plan) -> dict[str, Any]:
    """The digests of all outputs of a plan that is done."""
    return {
        step.instance: {name: one.digest for name, one in step.manifest.outputs.items()}
        for step in plan.steps
        if step.manifest is not None
    }


def start(request: Request) -> subprocess.Popen[bytes]:
    """`ingot run` in a process of its own, which leads its group."""
    command = [
        str(Path(sys.executable).with_name("ingot")), "run", request.recipe,
        "--store", request.store, "--profile", str(request.profile), "--no-prefect",
    ]  # fmt: skip
    return subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL)
