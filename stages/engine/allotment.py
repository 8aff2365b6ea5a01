"""How many cores and how much memory this process was given: by its affinity, its control group,
and a job's scheduler.

A pod with a CPU limit and a Slurm job without task affinity both see all cores of their node; one
worker for each of those would be throttled, or take what belongs to other jobs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
OWN_GROUP = Path("/proc/self/cgroup")
JOB_CORES = "SLURM_CPUS_PER_TASK"
"""Set by Slurm where a job asked for cores by `--cpus-per-task`."""


def available_cores(
    environment: Mapping[str, str] = os.environ, groups: Sequence[Path] | None = None
) -> int:
    """Cores of this process, at least one; `groups` are its control groups by default."""
    limits = [float(len(os.sched_getaffinity(0)))]
    limits += [
        cores
        for folder in (own_groups() if groups is None else groups)
        if (cores := group_cores(folder)) is not None
    ]
    of_job = environment.get(JOB_CORES, "")
    if of_job.isdigit():
        limits.append(float(of_job))
    return max(1, math.floor(min(limits)))


def own_groups(path: Path = OWN_GROUP, root: Path = CGROUP) -> list[Path]:
    """The control group (version 2) of this process and those above it, as a job of Slurm has."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return []
    own = next((line[3:].strip("/") for line in lines if line.startswith("0::")), "")
    folder = root / own
    return [folder, *(one for one in folder.parents if one.is_relative_to(root))]


def group_cores(folder: Path) -> float | None:
    """Cores that the control group (version 2) at `folder` may use; None where it sets no limit.

    `cpu.max` is a quota and a period in microseconds (Linux, admin-guide/cgroup-v2, "CPU").
    """
    try:
        quota, period = (folder / "cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # `max`: no limit.
        return None


def available_memory(groups: Sequence[Path] | None = None) -> int:
    """Bytes that this process may use: the machine's memory, or a smaller `memory.max` of its
    control groups (version 2)."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for folder in own_groups() if groups is None else groups:
        with suppress(OSError, ValueError):  # No such group, or `max`: no limit.
            limits.append(int((folder / "memory.max").read_text()))
    return min(limits)
