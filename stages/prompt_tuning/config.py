"""Settings of prompt tuning. Pydantic only, so that a recipe loads fast."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config
from stages.training.config import LearningRate, OptimizerConfig, Precision, TooLong


class PromptTuningConfig(Config):
    """How many virtual tokens are trained, and how."""

    virtual_tokens: int = Field(
        default=20, ge=1, le=4096, description="Vectors before every conversation."
    )
    text: str | None = Field(
        default=None,
        min_length=1,
        description="They begin as the vectors of this text's tokens, repeated or cut to the "
        "number; by default as those of tokens that `seed` draws.",
    )
    epochs: int = Field(default=1, ge=1, description="Times every conversation is seen.")
    conversations_per_batch: int = Field(
        default=16, ge=1, description="Conversations of one training step."
    )
    learning_rate: LearningRate = Field(
        default=LearningRate(peak=3e-2, warmup_share=0.1, decay="linear"),
        description="The one phase of the run.",
    )
    optimizer: OptimizerConfig = Field(
        default=OptimizerConfig(weight_decay=0.0), description="AdamW, or Muon."
    )
    too_long: TooLong = Field(
        default="drop",
        description="What happens to a conversation that does not fit beside the virtual tokens.",
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of conversations that may be left out."
    )
    held_out_every: int = Field(default=50, ge=1, description="Training steps between validations.")
    precision: Precision = Field(default="bf16", description="Precision of matrix products.")
    seed: int = Field(default=0, ge=0, description="Decides the order and the first vectors.")
