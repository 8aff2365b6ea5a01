"""Settings of what looks on. Pydantic only, so that a recipe loads fast."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Execution

Preflight = Literal["refuse", "warn", "off"]


class ObservedExecution(Execution):
    """What is told of a training run, and to whom."""

    preflight: Preflight = Field(
        default="refuse",
        description="What a finding of the pre-flight does that the run would fail of: end it "
        "before the first step, be a warning, or nothing is looked at.",
    )
    telemetry_every: int = Field(
        default=10, ge=1, description="Training steps between rows of telemetry and TensorBoard."
    )
    peak_tflops: float | None = Field(
        default=None,
        gt=0,
        description="Peak of the device that MFU is a share of, in 10^12 operations a second; by "
        "default that of its data sheet, for a GPU that is known.",
    )
    tensorboard: bool = Field(
        default=True, description="Whether event files for TensorBoard are written."
    )
    wandb: Literal["off", "offline", "online"] = Field(
        default="off",
        description="Whether Weights & Biases is told; its key is never a setting: "
        "`wandb login`, or WANDB_API_KEY.",
    )
    wandb_project: str = Field(default="ingot", min_length=1, description="Its project.")
    compare_with: str | None = Field(
        default=None,
        description="A run in the store, by name or key: an alert tells when held-out loss is "
        "worse than its own at equal tokens.",
    )

    @model_validator(mode="after")
    def _named_run(self) -> Self:
        if self.compare_with is not None and not self.compare_with.strip():
            raise ValueError("compare_with: name a run, or leave it out")
        return self
