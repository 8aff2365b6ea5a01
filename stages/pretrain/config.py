"""Settings of pretraining."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError
from stages.model.config import ModelShape, RopeScaling
from stages.pretrain.batch_sizes import read_sizes, written
from stages.training.config import AveragesConfig, LearningRate, OptimizerConfig, Precision
from stages.training.objective_config import ObjectiveConfig
from stages.training.permanent_config import CheckpointsConfig
from stages.training.phases import Sizes, check_mixture
from stages.training.stability_config import StabilityConfig


class PhaseConfig(Config):
    """A span of pretraining with its own mixture, batch size and learning-rate segment."""

    tokens: int = Field(
        ge=1, description="Token positions to read, rounded to whole training steps."
    )
    mixture: dict[str, float] = Field(
        default={}, description="Share of sequences by source; by default each by its size."
    )
    mixture_end: dict[str, float] = Field(
        default={},
        description="Shares that the mixture goes to, in a straight line from the phase's begin to "
        "its end; by default it stays.",
    )
    sequence_length: int | None = Field(
        default=None,
        ge=2,
        description="Tokens of its sequences, where the token shards have several lengths.",
    )
    rope_base: float | None = Field(
        default=None,
        gt=1,
        description="Base of the rotary frequencies from this phase on; by default it stays.",
    )
    rope_scaling: RopeScaling | None = Field(
        default=None,
        description="Scaling of the rotary frequencies from this phase on; by default it stays.",
    )
    sequences_per_batch: int | str = Field(
        default=16,
        description="Sequences of a training step; or several, each from a token of the phase on: "
        "`0: 256, 1e9: 512`.",
    )
    learning_rate: LearningRate = Field(
        default=LearningRate(), description="Segment of the learning-rate schedule."
    )

    @field_validator("sequences_per_batch", mode="before")
    @classmethod
    def _in_one_form(cls, value: Any) -> Any:
        return written(read_sizes(value))

    @field_validator("mixture", "mixture_end")
    @classmethod
    def _sums_to_one(cls, value: dict[str, float]) -> dict[str, float]:
        try:
            check_mixture(value, where="")
        except UsageError as error:
            raise ValueError(error.what) from None
        return value

    @model_validator(mode="after")
    def _sizes_are_reached(self) -> Self:
        sizes = self.batch_sizes
        if not isinstance(sizes, int) and sizes[-1][0] >= self.tokens:
            raise ValueError(
                f"sequences_per_batch changes at token {sizes[-1][0]:,}, the phase has "
                f"{self.tokens:,}"
            )
        return self

    @property
    def batch_sizes(self) -> int | Sizes:
        """Sequences of a training step: one number, or from which token of the phase on."""
        return read_sizes(self.sequences_per_batch)


class SkipConfig(Config):
    """Data that the run leaves out: no other training step changes."""

    first: int = Field(ge=0, description="First of them: training step from 1, or token from 0.")
    last: int = Field(ge=0, description="Last of them, left out as well.")
    unit: Literal["training_steps", "tokens"] = Field(
        default="training_steps",
        description="What is counted; of tokens, every training step that would read one.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.last < self.first:
            raise ValueError(f"it ends at {self.last}, before it begins at {self.first}")
        if self.first < 1 and self.unit == "training_steps":
            raise ValueError("training steps are counted from 1")
        return self


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
    objective: ObjectiveConfig = Field(
        default=ObjectiveConfig(), description="What is learnt from each sequence."
    )
    optimizer: OptimizerConfig = Field(default=OptimizerConfig(), description="AdamW, or Muon.")
    stability: StabilityConfig = Field(
        default=StabilityConfig(),
        description="What is done about spikes, losses that are not finite, and stalls.",
    )
    averages: AveragesConfig = Field(
        default=AveragesConfig(), description="Averages of the weights."
    )
    optimizer_state: Literal["fresh", "keep"] = Field(
        default="fresh", description="Whether to take over the moments of the input checkpoint."
    )
    clock: Literal["restart", "continue"] = Field(
        default="restart",
        description="Where in its data a run with an input checkpoint begins: at its first token, "
        "or behind the checkpoint, as part of one longer run whose phases these are.",
    )
    checkpoints: CheckpointsConfig = Field(
        default=CheckpointsConfig(), description="Checkpoints that are kept for good on the way."
    )
    precision: Precision = Field(default="bf16", description="Precision of matrix products.")
    seed: int = Field(default=0, ge=0, description="Decides initial weights and order of data.")
    max_epochs: float | None = Field(
        default=None, gt=0, description="Most often that the plan may read any source; no limit."
    )
    epochs: dict[str, float] = Field(
        default={},
        description="The same by source, such as {web: 1, math: 4}; wins over `max_epochs`.",
    )
    skip: tuple[SkipConfig, ...] = Field(
        default=(), description="Training steps, or tokens, that are left out."
    )
    held_out_every: int = Field(
        default=50, ge=1, description="Training steps between held-out losses."
    )
    max_held_out_sequences: int = Field(
        default=128, ge=1, description="Held-out sequences to measure on, spread over all."
    )

    @field_validator("epochs")
    @classmethod
    def _caps_are_positive(cls, value: dict[str, float]) -> dict[str, float]:
        for source, cap in value.items():
            if not cap > 0:
                raise ValueError(
                    f"of '{source}' it is {cap:g}, not above 0; leave it out of mixtures"
                )
        return value
