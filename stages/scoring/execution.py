"""How stages run that put a whole model over many texts in worker processes of one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from artifacts_schema.config import Execution
from stages.training.config import Device

if TYPE_CHECKING:
    import torch

    from stages.engine import Context


class WholeModelExecution(Execution):
    """How it is computed; each worker holds the whole model."""

    device: Device = Field(
        default="auto",
        description="Where to compute: `cpu`, `cuda`, or `cuda:1` for the second GPU; `auto` is a "
        "CUDA device if there is one.",
    )
    workers: int | None = Field(
        default=None,
        ge=1,
        description="Worker processes, each with the whole model; by default one for each core, on "
        "a GPU one.",
    )
    batch_tokens: int = Field(
        default=4096, ge=1, description="Tokens of one forward pass; bounds memory."
    )


def take_device(context: Context) -> torch.device:
    """The device of a `WholeModelExecution`; the manifest's layout says what its bytes depend on.

    UsageError if there is no such device.
    """
    import torch

    from stages.training.devices import choose_device, device_name

    execution = context.execution
    device = choose_device(execution.device)
    context.devices_held = int(device.type == "cuda")
    context.layout(
        device=device_name(device),
        threads=execution.threads,
        batch_tokens=execution.batch_tokens,
        torch=str(torch.__version__),
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
    )
    return device
