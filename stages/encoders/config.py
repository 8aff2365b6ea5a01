"""Settings of stages that run a published encoder."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artifacts_schema.config import Config, Execution
from stages.training.config import Device


class EncoderConfig(Config):
    """What of a text an encoder reads, and in which precision."""

    max_length: int = Field(
        default=512, ge=8, le=131_072, description="Most tokens of a sequence, special ones too."
    )
    windows: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Sequences from the beginning of a text that are read; of several the result "
        "is the mean, weighted by their tokens.",
    )
    precision: Literal["float32", "bfloat16"] = Field(
        default="float32",
        description="Type of weights and products; results in bfloat16 differ from the third "
        "digit.",
    )


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
        description="Tokens of one forward pass, padding included; by default twice "
        "`max_length` on a CPU, whose cores larger ones keep no busier, on a GPU 64 times it.",
    )
