"""What a language model learns from text. Pydantic only, so that a recipe loads fast."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config

ObjectiveName = Literal["causal", "masked", "prefix", "span_corruption"]

_READ_BY = {
    "corrupted": ("masked", "span_corruption"),
    "masked": ("masked",),
    "replaced": ("masked",),
    "mean_span": ("span_corruption",),
}
"""Which objectives read a field."""


class ObjectivePart(Config):
    """One objective, and the share of sequences that it has."""

    name: ObjectiveName = Field(
        default="causal",
        description="Predict each next token; masked tokens (BERT); the rest of a document whose "
        "begin is seen whole (prefix LM); or spans that are cut out (T5).",
    )
    share: float = Field(default=1.0, gt=0, le=1, description="Share of sequences.")
    corrupted: float = Field(
        default=0.15,
        gt=0,
        lt=1,
        description="masked, span_corruption: share of tokens that are to be predicted.",
    )
    masked: float = Field(
        default=0.8,
        ge=0,
        le=1,
        description="masked: share of those that the mask token stands for.",
    )
    replaced: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="masked: share of those that a random token stands for; the rest stays.",
    )
    mean_span: float = Field(
        default=3.0, ge=1, description="span_corruption: mean length of a span, in tokens."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for field, readers in _READ_BY.items():
            default = type(self).model_fields[field].default
            if self.name not in readers and getattr(self, field) != default:
                raise ValueError(f"{field} is set, but {self.name} does not read it")
        if self.masked + self.replaced > 1 + 1e-9:
            raise ValueError(f"masked and replaced sum to {self.masked + self.replaced:g}, above 1")
        return self


class ObjectiveConfig(Config):
    """What is learnt from each sequence, and what is added to its loss."""

    parts: tuple[ObjectivePart, ...] = Field(
        default=(ObjectivePart(),),
        min_length=1,
        description="Objectives by share of the sequences, such as "
        "`[{name: causal, share: 0.5}, {name: span_corruption, share: 0.5}]`.",
    )
    z_loss: float = Field(
        default=0.0,
        ge=0,
        description="Weight of log² Z, which keeps logits from drifting; PaLM has 1e-4, OLMo 2 "
        "1e-5.",
    )

    @model_validator(mode="after")
    def _shares_sum_to_one(self) -> Self:
        total = sum(part.share for part in self.parts)
        if abs(total - 1) > 1e-3:
            raise ValueError(f"shares of the parts sum to {total:g}, not to 1")
        return self
