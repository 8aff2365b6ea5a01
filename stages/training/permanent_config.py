"""Settings of permanent checkpoints: those that a run commits while it goes on. Pydantic only."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config


class CheckpointsConfig(Config):
    """Which checkpoints a run keeps for good, beside its last one."""

    every: int | None = Field(
        default=None,
        ge=1,
        description="Token positions between permanent checkpoints; by default none for their "
        "number.",
    )
    before_decay: bool = Field(
        default=True, description="One before each decay of the learning rate: where to go on from."
    )
    phase_edges: bool = Field(default=True, description="One at the end of each phase.")
    optimizer: bool = Field(
        default=True, description="With the optimizer's state, which a continuation needs."
    )
