"""Settings of pretraining."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config
from stages.model.config import ModelShape
from stages.training.config import AdamWConfig, LearningRate, Precision


class PhaseConfig(Config):
    """A span of pretraining with its own mixture, batch size and learning-rate segment."""

    tokens: int = Field(
        ge=1, description="Token positions to read, rounded to whole training steps."
    )
    mixture: dict[str, float] = Field(
        default={}, description="Share of sequences by source; by default each by its size."
    )
    sequences_per_batch: int = Field(default=16, ge=1, description="Sequences of a training step.")
    learning_rate: LearningRate = Field(
        default=LearningRate(), description="Segment of the learning-rate schedule."
    )


class PretrainConfig(Config):
    """What model is trained, on how many tokens of what."""

    model: ModelShape = Field(
        default=ModelShape(), description="Architecture; the tokenizer decides the vocabulary."
    )
    phases: tuple[PhaseConfig, ...] = Field(
        default=(
            PhaseConfig(tokens=800_000, learning_rate=LearningRate(peak=3e-3, warmup_share=0.05)),
            PhaseConfig(tokens=200_000, learning_rate=LearningRate(decay="linear")),
        ),
        min_length=1,
        description="The phases in order; by default a stable one, then one that decays to zero.",
    )
    optimizer: AdamWConfig = Field(default=AdamWConfig(), description="AdamW.")
    optimizer_state: Literal["fresh", "keep"] = Field(
        default="fresh", description="Whether to take over the moments of the input checkpoint."
    )
    precision: Precision = Field(default="bf16", description="Precision of matrix products.")
    seed: int = Field(default=0, ge=0, description="Decides initial weights and order of data.")
    max_epochs: float | None = Field(
        default=None, gt=0, description="Most often that the plan may read any source; no limit."
    )
    held_out_every: int = Field(
        default=50, ge=1, description="Training steps between held-out losses."
    )
    max_held_out_sequences: int = Field(
        default=128, ge=1, description="Held-out sequences to measure on, spread over all."
    )

    @model_validator(mode="after")
    def _starts(self) -> Self:
        if self.phases[0].learning_rate.peak is None:
            raise ValueError("the first phase needs learning_rate.peak")
        return self
