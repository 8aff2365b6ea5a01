"""Data stages on a Dask cluster: the bytes of processes, with any workers, one killed or not."""

from __future__ import annotations

import dataclasses
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs pip install 'ingot[dask]'")

sys.path.insert(0, str(Path(__file__).parents[1]))
from dask_server import DaskServer, machines_may_be_slow  # noqa: F401

from stages.engine import shards
from stages.engine.runner import run_stage
from tests.pipeline import faults

pytestmark = [pytest.mark.full, pytest.mark.faults]

MOST = 4
STEPS = (
    "web",
    "code",
    "signals[web]",
    "dedup",
    "later_passages",
    "decontaminate",
    "filter",
    "chat_filter",
    "tokenizer",
    "pack",
    "pack_chat",
)
"""Steps of stages that map over shards; `tests/stages` has the list of their settings."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskServer]:
    with DaskServer(tmp_path_factory.mktemp("dask"), workers=0) as server:
        for _ in range(MOST):
            server.worker("--nthreads", "1", nanny=False)
        server.wait_for_workers(MOST)
        yield server


def on_dask(step, server, workers):
    execution = {**step.spec.execution, "engine": "dask", "scheduler": server.address}
    return dataclasses.replace(step.spec, execution={**execution, "workers": workers})


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("instance", STEPS)
def test_it_makes_the_bytes_that_processes_make(copy, without, server, instance, workers):
    step, before = without(instance)
    manifest = run_stage(copy.store, on_dask(step, server, workers)).manifest
    faults.is_same_artifact(copy.store, step, before)
    assert 1 <= manifest.telemetry["dask_workers"] <= MOST


@pytest.mark.parametrize("instance", STEPS)
def test_a_worker_that_is_killed_costs_its_shard_alone(
    copy, without, server, monkeypatch, instance
):
    """By SIGKILL, as soon as the first shard of a map is recorded."""
    step, before = without(instance)
    worker = server.worker("--nthreads", "1", nanny=False)
    server.wait_for_workers(MOST + 1)
    record = shards.ShardMap._record

    def kill_and_record(self, name, value):
        worker.send_signal(signal.SIGKILL)
        record(self, name, value)

    monkeypatch.setattr(shards.ShardMap, "_record", kill_and_record)
    run_stage(copy.store, on_dask(step, server, None))
    faults.is_same_artifact(copy.store, step, before)
    assert worker.wait(10) == -signal.SIGKILL
    server.wait_for_workers(MOST)
