"""A work pool of type `slurm` on the test server of Prefect, and workers that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster

from tests.flows.orchestration.conftest import Standing

LIVE = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")
PROFILE = """\
name: site
jobs: 4
pools:
  cpu:
    type: slurm
    partition: debug
    poll_seconds: 0.5
    warning_seconds: 30
    stop_seconds: 30
    environment_file: {secrets}
resources:
  default: {{pool: cpu, cpus: 1, memory: 500 MB}}
  flow: {{pool: cpu, cpus: 1, memory: 1 GB}}
"""


class Site:
    """A profile that is deployed, and what its runs leave in Slurm."""

    pool = "ingot-site"
    form = "pipeline/toys@site"

    def __init__(self, ui: Standing, slurm: SlurmCluster, folder: Path) -> None:
        self.ui, self.slurm, self.folder = ui, slurm, folder
        self.secrets = folder / "secrets.sh"
        self.secrets.write_text(f"PREFECT_API_AUTH_STRING={ui.password}\n")
        self.secrets.chmod(0o600)
        self.profile = folder / "site.yaml"
        self.profile.write_text(PROFILE.format(secrets=self.secrets))
        self.store = str(folder / "store")
        self.environment = {
            **ui.environment,
            **{name: slurm.environment[name] for name in ("SLURM_CONF", "PATH")},
            "PREFECT_API_URL": f"{ui.ui}/api",
            "PREFECT_API_AUTH_STRING": ui.password,
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_WORKER_QUERY_SECONDS": "2",
        }
        self.workers: list[subprocess.Popen[bytes]] = []
        self.log = folder / "worker.log"

    def deploy(self) -> dict[str, str]:
        """Outcome by name of `ingot deploy`."""
        recipe = str(self.ui.folder / "toys.yaml")
        done = self.ui.ingot(
            "deploy", "--profile", str(self.profile), "--store", self.store, "--recipe", recipe,
            "--json", SLURM_CONF=self.environment["SLURM_CONF"],
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        outcomes: dict[str, str] = json.loads(done.stdout)
        return outcomes

    def start_worker(self, path: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a worker; programs in `path` come before Slurm's."""
        environment = dict(self.environment)
        if path is not None:
            environment["PATH"] = f"{path}:{environment['PATH']}"
        name = f"worker-{len(self.workers)}"
        command = [
            sys.executable, "-P", "-m", "prefect", "worker", "start",
            "--type", "slurm", "--pool", self.pool, "--name", name,
        ]  # fmt: skip
        with open(self.log, "ab") as log:
            worker = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, cwd=self.folder,
            )  # fmt: skip
        self.workers.append(worker)
        return worker

    def kill_worker(self, worker: subprocess.Popen[bytes]) -> None:
        """SIGKILL."""
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def stop(self) -> None:
        """End the workers that live."""
        for worker in self.workers:
            if worker.poll() is None:
                self.kill_worker(worker)

    def jobs(self, run: str, states: tuple[str, ...] | None = LIVE) -> list[str]:
        """Numbers of the jobs of a flow run; of all states if None."""
        lines = self.slurm.output("squeue", "-h", "-t", "all", "-o", "%i|%T|%k").splitlines()
        rows = [line.split("|", 2) for line in lines]
        return [
            number for number, state, tag in rows if run in tag and state in (states or [state])
        ]

    def state(self, run: str) -> tuple[str, str]:
        """Type and message of the state of a flow run."""
        state = self.ui.get(f"/flow_runs/{run}")["state"]
        return state["type"], state["message"] or ""

    def logs(self, run: str) -> str:
        """The log of a flow run in the UI."""
        body = {"logs": {"flow_run_id": {"any_": [run]}}, "sort": "TIMESTAMP_ASC", "limit": 200}
        return "\n".join(line["message"] for line in self.ui.post("/logs/filter", body))

    def cancel(self, run: str) -> None:
        """As the UI's button."""
        state = {"type": "CANCELLING", "name": "Cancelling"}
        self.ui.post(f"/flow_runs/{run}/set_state", {"state": state})


@pytest.fixture
def site(ui: Standing, slurm: SlurmCluster, tmp_path: Path) -> Iterator[Site]:
    """A site whose forms are deployed; it has no worker yet."""
    site = Site(ui, slurm, tmp_path)
    site.deploy()
    try:
        yield site
    finally:
        site.stop()
