"""Settings of direct preference optimization."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config
from stages.training.config import LearningRate, OptimizerConfig, Precision, TooLong


class DpoConfig(Config):
    """How a model learns to prefer."""

    beta: float = Field(default=0.1, gt=0, description="Weight of the distance to the reference.")
    epochs: int = Field(default=1, ge=1, description="Times every pair is seen.")
    pairs_per_batch: int = Field(default=8, ge=1, description="Pairs of one training step.")
    learning_rate: LearningRate = Field(
        default=LearningRate(peak=5e-6, warmup_share=0.1, decay="linear"),
        description="The one phase of the run.",
    )
    optimizer: OptimizerConfig = Field(
        default=OptimizerConfig(weight_decay=0.0), description="AdamW, or Muon."
    )
    too_long: TooLong = Field(
        default="truncate", description="What happens to an answer beyond the model's context."
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of pairs that may be left out."
    )
    held_out_share: float = Field(
        default=0.05, ge=0, lt=1, description="Share of pairs kept for validation."
    )
    held_out_every: int = Field(default=50, ge=1, description="Training steps between validations.")
    precision: Precision = Field(default="bf16", description="Precision of matrix products.")
    seed: int = Field(default=0, ge=0, description="Decides the order and the held-out part.")
