"""A page that hangs or crashes a worker of a cluster: as on this machine, to the byte."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs pip install 'ingot[dask]'")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from brittle import Brittle  # noqa: E402
from dask_server import DaskServer, machines_may_be_slow  # noqa: E402, F401

from artifacts_schema.errors import IngotError  # noqa: E402
from artifacts_schema.store import Store  # noqa: E402
from stages.engine.protocol import register  # noqa: E402
from stages.engine.runner import run_stage as run_spec  # noqa: E402
from stages.engine.spec import StageSpec  # noqa: E402

BAD = {"0/3": "spins", "2/0": "writes out of bounds", "2/4": "spins in Python", "3/1": "aborts"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with DaskServer(tmp_path_factory.mktemp("dask"), [HERE]) as server:
        server.wait_for_workers(2)
        yield server


def spec_of(execution, **config):
    register(Brittle)
    return StageSpec.make(Brittle, config, {}, execution)


def test_bad_pages_are_left_out_by_name_and_no_worker_of_the_cluster_dies(tmp_path, server):
    before = sorted(server.workers())
    cluster = {"engine": "dask", "scheduler": server.address, "workers": None}
    there = run_spec(Store.open(str(tmp_path / "there")), spec_of(cluster, bad=BAD)).manifest
    here = run_spec(Store.open(str(tmp_path / "here")), spec_of({"workers": 1}, bad=BAD)).manifest
    assert (there.outputs, there.counts) == (here.outputs, here.counts)
    assert there.counts == {"lost": 4}
    assert there.telemetry["found"] == 4
    assert there.telemetry["dask_cpu_seconds"] > 0
    assert sorted(server.workers()) == before


def test_a_crash_between_pages_is_the_same_error_as_without_a_cluster(tmp_path, server):
    cluster = {"engine": "dask", "scheduler": server.address, "workers": None}
    spec = spec_of(cluster, bad={"1/1": "crashes between pages"})
    with pytest.raises(IngotError, match=r"00001: .*SIGABRT"):
        run_spec(Store.open(str(tmp_path / "store")), spec)
    assert len(server.workers()) == 2
