"""Settings of stages that run a published encoder."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artifacts_schema.config import Execution
from stages.training.config import Device

Precision = Literal["float32", "bfloat16"]


class EncoderExecution(Execution):
    """How it is computed; the manifest's layout records device, threads and batch."""

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
    batch_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens of one forward pass, padding included; by default `max_length` on a "
        "CPU, whose cores larger ones keep no busier, and 64 times that on a GPU.",
    )
