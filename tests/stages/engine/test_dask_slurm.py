"""`ingot dask --on slurm` on a real Slurm of two nodes: workers come for shards, and go."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("dask_jobqueue", reason="needs pip install 'ingot[dask-slurm]'")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from dask_toy import Squares  # noqa: E402
from slurm_cluster import cluster, slurm  # noqa: E402, F401
from test_dask_cluster import started  # noqa: E402

from artifacts_schema.store import Store  # noqa: E402
from stages.engine import dask_engine  # noqa: E402

pytestmark = pytest.mark.faults


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "store"))


def jobs(slurm):  # noqa: F811
    """Names of the jobs that wait or run."""
    return slurm.output("squeue", "--noheader", "--format=%j").split()


def test_shards_are_done_by_jobs_of_slurm(slurm, run_stage, store, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(dask_engine, "FIRST_SECONDS", 60.0)
    options = ("--on", "slurm", "--workers", "0:3", "--memory", "300MB", "--interface", "lo")
    environment = {name: slurm.environment[name] for name in ("SLURM_CONF", "PATH")}
    config = {"happens": ["waits for a second worker"] * 6, "folder": str(tmp_path)}
    with started(tmp_path / "cluster", *options, environment=environment) as path:
        assert jobs(slurm) == []
        execution = {"engine": "dask", "scheduler_file": path, "workers": None}
        there = run_stage(Squares, config, execution={**execution, "absent_seconds": 120})
        assert set(jobs(slurm)) <= {"dask-worker"}
    here = run_stage(Squares, config, execution={"workers": 1}, force=True)
    assert here.outputs == there.outputs
    assert there.telemetry["dask_workers"] >= 2
