"""A real Slurm of two nodes, where its packages are installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster, what_lacks


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Running for the tests of a module; each ends with an empty queue."""
    if lack := what_lacks():
        pytest.skip(lack)
    # Not below pytest's own folders, which only their owner may enter: munge's user must.
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ingot-slurm-") as folder:
        cluster = SlurmCluster(Path(folder))
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture
def slurm(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """Slurm's commands of this process lead to it."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, cluster.environment[name])
    yield cluster
    cluster.run("scancel", "--user", "root")
    cluster.wait_until_idle()
