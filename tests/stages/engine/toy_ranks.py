"""A small stage on several ranks: sums over all of them, a checkpoint at each step, faults."""

from __future__ import annotations

import errno
import json
import os
import signal
import time

from pydantic import Field

from artifacts_schema.config import Config, Execution
from artifacts_schema.errors import Stopped, StoreError
from stages.engine import Context, Stage
from stages.engine.machines import ONE_MACHINE, Machines


class ToyLayout(Config):
    """Ranks."""

    shard: int = Field(default=2, ge=1, description="Ranks.")

    @property
    def world(self) -> int:
        """Processes."""
        return self.shard


class SumConfig(Config):
    """What `Sum` sums."""

    steps: int = Field(default=4, ge=1, description="Steps.")


class SumExecution(Execution):
    """How it runs, and what goes wrong."""

    layout: ToyLayout = Field(default=ToyLayout(), description="Ranks.")
    machines: Machines = Field(default=ONE_MACHINE, description="Machines.")
    watchdog: float | None = Field(default=None, description="Seconds.")
    step_seconds: float = Field(default=0.0, description="Seconds of a step.")
    fault: str = Field(default="", description="Kind of a fault of rank 1 in step 2.")


def fail(kind: str) -> None:
    """What goes wrong in a rank."""
    import torch

    match kind:
        case "stuck":
            time.sleep(3600)
        case "suspended":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "memory":
            raise MemoryError
        case "device memory":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        case "disk":
            raise StoreError("cannot write a checkpoint: No space left", where="training-step-2")
        case "system":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "training-step-2")
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)


class Sum(Stage):
    """The sum of all ranks' numbers over the steps."""

    name, version, reproducible = "toy_sum", 1, "bytes"
    outputs = {"exclusions": "exclusions"}
    launch = "spmd"
    Config, Execution = SumConfig, SumExecution

    def run(self, context: Context) -> None:
        import torch
        import torch.distributed as dist
        from toy import exclusions_table

        rank, execution = dist.get_rank(), context.execution
        place = context.work / "checkpoint.json"
        step, total = json.loads(place.read_text()) if place.exists() else (0, 0)
        context.count(resumed=step)
        dist.barrier()
        while step < context.config.steps:
            if rank == 1 and step == 2:
                fail(execution.fault)
            time.sleep(execution.step_seconds)
            value = torch.tensor([rank + 1, int(context.stopping)])
            dist.all_reduce(value)
            step, total = step + 1, total + step * int(value[0])
            context.progress(step, context.config.steps, unit="steps")
            if rank == 0:
                part = place.with_suffix(".part")
                part.write_text(json.dumps([step, total]))
                os.replace(part, place)
            if value[1]:
                time.sleep(1.0 if rank == 0 else 0.0)  # Rank 0 finishes the checkpoint.
                (context.work / f"stopped-{rank}").touch()
                raise Stopped("stopped on request", hint="again")
        if rank == 0:
            context.write_table("exclusions", "00000.parquet", exclusions_table([total]))
            context.count(sum=total)
