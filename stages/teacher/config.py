"""Settings of `teacher`."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config, Execution
from stages.training.config import Device


class TeacherConfig(Config):
    """What is kept of the teacher's distributions."""

    top: int = Field(
        default=32,
        ge=1,
        le=4096,
        description="Likeliest tokens on record; eight bytes each, for every token of the shards.",
    )


class TeacherExecution(Execution):
    """How it is computed; each worker holds the whole teacher."""

    device: Device = Field(
        default="auto",
        description="Where to compute: `cpu`, `cuda`, or `cuda:1` for the second GPU; `auto` is a "
        "CUDA device if there is one.",
    )
    workers: int | None = Field(
        default=None,
        ge=1,
        description="Worker processes, each with the whole teacher; by default one for each core, "
        "on a GPU one.",
    )
    batch_tokens: int = Field(
        default=4096, ge=1, description="Tokens of one forward pass; bounds memory."
    )
