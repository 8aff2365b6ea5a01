"""What a profile says of a pool of type `slurm`."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import Field

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError


class Container(Config):
    """The container in which a job's processes run."""

    runtime: Literal["pyxis", "apptainer"] = Field(
        description="`pyxis`: srun's own options for enroot; `apptainer`: its command."
    )
    image: str = Field(description="Image: a file that all nodes see, or an address.")
    mounts: tuple[str, ...] = Field(
        default=(),
        description="Folders seen inside, PATH or OUTSIDE:INSIDE; the store too.",
    )


class SlurmSettings(Config):
    """Where and how jobs are submitted; every value is Slurm's own, checked by Slurm."""

    partition: str | None = Field(default=None, description="Partition; the default one if none.")
    account: str | None = Field(default=None, description="Account that is charged.")
    qos: str | None = Field(default=None, description="Quality of service.")
    options: tuple[str, ...] = Field(
        default=(), description="Further options of sbatch, as `--exclusive`, `--constraint=a100`."
    )
    setup: tuple[str, ...] = Field(
        default=(), description="Shell commands before the stage, as `module load cuda/12.8`."
    )
    environment: dict[str, str] = Field(
        default_factory=dict,
        description="Variables of the job, as NCCL_SOCKET_IFNAME. No secrets: a script is public.",
    )
    environment_file: str | None = Field(
        default=None,
        description="A shell file with further variables, read on the node; keep secrets there, "
        "with mode 0600.",
    )
    python: str | None = Field(
        default=None,
        description="Python of the nodes; by default the path of the one that submits.",
    )
    folder: str | None = Field(
        default=None,
        description="Folder for scripts and outputs that the nodes see; by default beside the work "
        "in the store, of a store in a bucket `.ingot-jobs` in the home folder.",
    )
    container: Container | None = Field(default=None, description="Container of the stage.")
    warning_seconds: int = Field(
        default=120, ge=10, description="How long before its limit a job saves and queues again."
    )
    stop_seconds: float = Field(
        default=300.0, gt=0, description="Grace of a running job that is to save and end."
    )
    poll_seconds: float = Field(
        default=10.0, gt=0, description="Seconds between two questions to Slurm about all jobs."
    )


def check_environment_file(path: str) -> None:
    """Raise UsageError if other users of this machine can read the file.

    A file that only the nodes see is checked there, by the script of the job.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if mode & 0o077:
        hint = f"chmod 600 {path}, and change what it holds if others may have read it"
        raise UsageError("other users can read or write it", where=path, hint=hint)
