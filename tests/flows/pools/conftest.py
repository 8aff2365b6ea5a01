"""A real Slurm of two nodes, where its packages are installed, and Prefect's worker for it."""

from prefect_worker import site
from slurm_cluster import cluster, slurm

from tests.flows.orchestration.conftest import ui

__all__ = ["cluster", "site", "slurm", "ui"]
