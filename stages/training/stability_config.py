"""Settings of a run that looks after itself. Pydantic only, so that a recipe loads fast."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config


class StabilityConfig(Config):
    """What counts as trouble in a training run, and how often it helps itself.

    A training step in trouble updates nothing. Several of them near each other lead back to an
    earlier checkpoint, and what led there is left out (as Chowdhery et al. 2022, PaLM, section 5.1,
    did by hand). A run that this does not help is stopped with a verdict.
    """

    enabled: bool = Field(
        default=True,
        description="Whether the run looks after itself; else updates are skipped only where loss "
        "or gradient is not finite, up to optimizer.skip_limit.",
    )
    window: int = Field(
        default=128,
        ge=8,
        le=2_000,
        description="Training steps that a loss or gradient norm is compared with, those of the "
        "same phase; half of them must be there before anything is judged.",
    )
    threshold: float = Field(
        default=6.0,
        gt=0,
        description="Robust standard deviations above the window's median that make a spike.",
    )
    loss_floor: float = Field(
        default=0.02,
        ge=0,
        description="Smallest standard deviation of the loss, as a share of its median.",
    )
    grad_norm_floor: float = Field(
        default=0.25,
        ge=0,
        description="Smallest standard deviation of the gradient norm's natural logarithm.",
    )
    strikes: int = Field(
        default=3, ge=1, description="Training steps in trouble within `window` that roll back."
    )
    margin: int = Field(
        default=100,
        ge=0,
        description="Trained steps before the first of them that are left out as well.",
    )
    rollbacks: int = Field(
        default=5, ge=0, le=100, description="Rollbacks of a run; where one more is due, it stops."
    )
    divergence: float | None = Field(
        default=0.4,
        gt=0,
        description="Share of what the loss has gained since the first step that the window's "
        "median may lose again, at least a fifth of its lowest; null: any.",
    )
    stall: int = Field(
        default=50,
        ge=2,
        description="Training steps with the very same loss, gradient norm or weights that stop "
        "the run.",
    )

    @model_validator(mode="after")
    def _strikes_fit(self) -> Self:
        if self.strikes > self.window:
            raise ValueError(f"{self.strikes} strikes do not fit a window of {self.window}")
        return self
