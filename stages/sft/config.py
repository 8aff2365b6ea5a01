"""Settings of supervised fine-tuning."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config
from stages.training.config import LearningRate, OptimizerConfig, Precision, TooLong


class SftConfig(Config):
    """How a pretrained model learns to answer."""

    epochs: int = Field(default=2, ge=1, description="Times every conversation is seen.")
    conversations_per_batch: int = Field(
        default=16, ge=1, description="Conversations of one training step."
    )
    learning_rate: LearningRate = Field(
        default=LearningRate(peak=2e-4, warmup_share=0.05, decay="linear"),
        description="The one phase of the run.",
    )
    optimizer: OptimizerConfig = Field(default=OptimizerConfig(), description="AdamW, or Muon.")
    too_long: TooLong = Field(
        default="truncate", description="What happens to a conversation beyond the model's context."
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of conversations that may be left out."
    )
    held_out_share: float = Field(
        default=0.05, ge=0, lt=1, description="Share of conversations kept for validation."
    )
    held_out_every: int = Field(default=50, ge=1, description="Training steps between validations.")
    precision: Precision = Field(default="bf16", description="Precision of matrix products.")
    seed: int = Field(default=0, ge=0, description="Decides the order and the held-out part.")
