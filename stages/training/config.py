"""Settings that pretraining and post-training share. Pydantic only, so that a recipe loads fast."""

from __future__ import annotations

import os
from typing import Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config, Execution

Precision = Literal["bf16", "fp32"]
TooLong = Literal["truncate", "drop"]
Decay = Literal["none", "linear", "1-sqrt", "cosine"]


class AdamWConfig(Config):
    """AdamW (Loshchilov & Hutter 2019) with the constants of today's pretraining recipes."""

    beta1: float = Field(default=0.9, ge=0, lt=1, description="Decay of the mean of gradients.")
    beta2: float = Field(default=0.95, ge=0, lt=1, description="Decay of the mean of squares.")
    epsilon: float = Field(
        default=1e-8, gt=0, description="Added to the root of the mean of squares."
    )
    weight_decay: float = Field(
        default=0.1, ge=0, description="Decay of matrices; embeddings, norms and biases have none."
    )
    clip: float = Field(default=1.0, gt=0, description="Largest global gradient norm of an update.")
    skip_limit: int = Field(
        default=10,
        ge=0,
        description="Updates that may be skipped because loss or gradient is not finite.",
    )


class LearningRate(Config):
    """The learning rate of one phase: warmup to a peak, the peak, a decay at the phase's end."""

    peak: float | None = Field(
        default=None, gt=0, description="Rate after warmup; by default that of the phase before."
    )
    warmup_share: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of the phase's training steps that lead to the peak, from where the "
        "phase before ended (at first 0).",
    )
    decay: Decay = Field(default="none", description="Shape of the decay at the end of the phase.")
    decay_share: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of the phase's training steps that decay; by default all after warmup.",
    )
    final: float = Field(
        default=0.0, ge=0, le=1, description="Where the decay leads, as a share of the peak."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.warmup_share + (self.decay_share or 0) > 1:
            raise ValueError("warmup_share and decay_share together exceed the phase")
        return self


def _cores() -> int:
    """Cores that this process may use, at most 8: more do not help models that train on a CPU."""
    return min(8, len(os.sched_getaffinity(0)))


class TrainingExecution(Execution):
    """How a model is trained; the manifest's layout names threads, device and micro-batch."""

    threads: int = Field(
        default_factory=_cores, ge=1, description="Native threads; by default one a core, up to 8."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="Where to compute; `auto` is a CUDA device if there is one."
    )
    micro_batch: int = Field(
        default=8,
        ge=1,
        description="Rows (dpo: pairs) of one forward and backward pass; bounds memory.",
    )
    checkpoint_every: int = Field(
        default=100, ge=1, description="Training steps between rolling checkpoints."
    )
    prefetch: int = Field(
        default=2,
        ge=0,
        le=64,
        description="Batches that a thread prepares ahead of the training step; 0: none.",
    )
