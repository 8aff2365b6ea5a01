"""Slurm: its commands, the script of a job, and the pool that joins them."""
