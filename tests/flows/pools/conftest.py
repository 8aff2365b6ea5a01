"""A real Slurm of two nodes, where its packages are installed."""

from slurm_cluster import cluster, slurm

__all__ = ["cluster", "slurm"]
