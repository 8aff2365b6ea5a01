"""What an n-gram model is estimated with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from artifacts_schema.config import Config
from stages.text.splitters import Splitter

Normalisation = Literal["ccnet", "none"]

LEAST_ORDER, MOST_ORDER = 2, 6


class NgramConfig(Config):
    """An interpolated modified Kneser-Ney model (Chen & Goodman 1998), as lmplz estimates it."""

    order: int = Field(
        default=5, ge=LEAST_ORDER, le=MOST_ORDER, description="Words of the longest n-grams."
    )
    prune: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        default=(),
        description="n-grams of order 1, 2, … seen at most so often are left out; the last number "
        "holds for all higher orders.",
    )
    vocabulary: int | None = Field(
        default=None, ge=1, description="Only the so many most frequent words are kept."
    )
    discount_fallback: tuple[float, float, float] = Field(
        default=(0.5, 1.0, 1.5),
        description="Discounts of an order whose counts of counts give none (small corpora).",
    )
    normalisation: Normalisation = Field(
        default="ccnet", description="How text is normalised before it is split into tokens."
    )
    splitter: Splitter = Field(default="unicode", description="What splits it into tokens.")

    @model_validator(mode="after")
    def _consistent(self) -> NgramConfig:
        if len(self.prune) > self.order:
            raise ValueError(f"prune names {len(self.prune)} orders, the model has {self.order}")
        if list(self.prune) != sorted(self.prune):
            raise ValueError("prune must not decrease: the parts of a kept n-gram are kept")
        if not all(0 <= d <= k for k, d in enumerate(self.discount_fallback, 1)):
            raise ValueError("discount_fallback takes 0 to 1, 0 to 2 and 0 to 3")
        return self

    def prune_by_order(self) -> list[int]:
        """The greatest count that is left out, for orders 1, 2, …"""
        return [*self.prune, *[(self.prune or (0,))[-1]] * (self.order - len(self.prune))]
