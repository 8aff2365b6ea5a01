"""Settings of the merge_checkpoints stage."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config

MergeMethod = Literal["linear", "slerp", "ties"]

READ_BY = {"weights": ("linear", "ties"), "decay": ("linear",), "share": ("slerp",)}
READ_BY |= {"density": ("ties",), "scale": ("ties",)}
"""Which methods read a field."""


class MergeConfig(Config):
    """How weights become one set of weights."""

    method: MergeMethod = Field(
        default="linear",
        description="`linear`: a weighted mean; `slerp`: along the arc between two; `ties`: what "
        "changed since the input `base`, without small and contrary changes.",
    )
    weights: tuple[float, ...] = Field(
        default=(),
        description="linear, ties: a weight for each checkpoint, in the order of inputs; they are "
        "divided by their sum. By default all alike.",
    )
    decay: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="linear: instead of weights, each checkpoint weighs so much of the next one: "
        "0.5 is 1, 2, 4, … for permanent checkpoints in order.",
    )
    share: float = Field(default=0.5, ge=0, le=1, description="slerp: share of the second one.")
    density: float = Field(
        default=0.2, gt=0, le=1, description="ties: share of each tensor's changes that is kept."
    )
    scale: float = Field(default=1.0, gt=0, description="ties: factor of the merged change.")

    @model_validator(mode="after")
    def _is_read(self) -> Self:
        for name, methods in READ_BY.items():
            default = type(self).model_fields[name].default
            if self.method not in methods and getattr(self, name) != default:
                raise ValueError(f"{name} is set, but {self.method} does not read it")
        if self.weights and self.decay is not None:
            raise ValueError("weights and decay are both set: leave one out")
        if any(weight < 0 for weight in self.weights) or (self.weights and not sum(self.weights)):
            raise ValueError("weights are not negative, and not all 0")
        return self

    def shares(self, count: int) -> list[float]:
        """[count] Weights that sum to 1; ValueError where there are another number of them."""
        if self.weights and len(self.weights) != count:
            raise ValueError(f"{len(self.weights)} weights for {count} checkpoints")
        raw = list(self.weights) or [(self.decay or 1.0) ** (count - 1 - n) for n in range(count)]
        return [weight / sum(raw) for weight in raw]
