"""Settings of learning from preferences. Pydantic only, so that a recipe loads fast."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config
from stages.pairs.config import READ_BY, WITH_CROSS_ENTROPY, LossName
from stages.training.config import (
    AdapterConfig,
    LearningRate,
    OptimizerConfig,
    Precision,
    TemplateDate,
    TooLong,
    template_date,
)


class PairsConfig(Config):
    """How pairs are read and put in order, and how a model is updated by them."""

    epochs: int = Field(default=1, ge=1, description="Times every pair is seen.")
    pairs_per_batch: int = Field(
        default=8, ge=1, description="Pairs of one training step, or rows of one answer (kto)."
    )
    learning_rate: LearningRate = Field(
        default=LearningRate(peak=5e-6, warmup_share=0.1, decay="linear"),
        description="The one phase of the run.",
    )
    optimizer: OptimizerConfig = Field(
        default=OptimizerConfig(weight_decay=0.0), description="AdamW, or Muon."
    )
    date: TemplateDate = template_date()
    too_long: TooLong = Field(
        default="truncate", description="What happens to an answer beyond the model's context."
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of pairs that may be left out."
    )
    held_out_share: float = Field(
        default=0.05, ge=0, lt=1, description="Share of pairs kept for validation."
    )
    held_out_every: int = Field(default=50, ge=1, description="Training steps between validations.")
    precision: Precision = Field(default="bf16", description="Precision of matrix products.")
    seed: int = Field(default=0, ge=0, description="Decides the order and the held-out part.")


class DpoConfig(PairsConfig):
    """How a model learns to prefer."""

    beta: float = Field(default=0.1, gt=0, description="Weight of the distance to the reference.")
    adapter: AdapterConfig | None = Field(
        default=None,
        description="Train low-rank matrices beside the weights; by default the weights.",
    )

    @property
    def loss_name(self) -> LossName:
        """The loss of the run."""
        return "sigmoid"

    @property
    def sft(self) -> float:
        """Weight of the mean cross-entropy of chosen answers."""
        return 0.0


class ReferenceConfig(Config):
    """How the answers of preference pairs are read, and in what precision a model scores them."""

    date: TemplateDate = template_date()
    too_long: TooLong = Field(
        default="truncate", description="What happens to an answer beyond the model's context."
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of pairs that may be left out."
    )
    precision: Precision = Field(default="bf16", description="Precision of matrix products.")

    @property
    def held_out_share(self) -> float:
        """All pairs are scored; which are held out is the training's choice."""
        return 0.0

    @property
    def seed(self) -> int:
        """Nothing is drawn."""
        return 0


class PreferenceConfig(DpoConfig):
    """How a model learns to prefer, by a loss of one's choice."""

    loss: LossName = Field(
        default="sigmoid",
        description="`sigmoid` (DPO), `cdpo`, `robust`, `hinge`, `ipo_sum`, `ipo_mean`, "
        "`sigmoid_mean` (length-normalised DPO), `apo_zero`, `apo_down`, `bco_pair`, `kto`; "
        "without a reference `simpo`, `orpo`, `cpo`.",
    )
    beta: float = Field(
        default=0.1,
        gt=0,
        description="Weight of the distance to the reference; scale of simpo's, orpo's and cpo's "
        "terms. SimPO's authors use 2 to 10.",
    )
    gamma: float = Field(default=0.0, ge=0, description="simpo: margin that is aimed at.")
    label_smoothing: float = Field(
        default=0.0,
        ge=0,
        lt=0.5,
        description="cdpo, robust: probability that a pair is labelled the wrong way round.",
    )
    desirable_weight: float = Field(default=1.0, gt=0, description="kto: of chosen answers.")
    undesirable_weight: float = Field(default=1.0, gt=0, description="kto: of rejected answers.")
    sft_weight: float | None = Field(
        default=None,
        ge=0,
        description="Weight of the mean cross-entropy of chosen answers, which is added; by "
        "default 1 for orpo and cpo, as their papers have it, else 0.",
    )

    @model_validator(mode="after")
    def _is_read(self) -> Self:
        for name, losses in READ_BY.items():
            default = type(self).model_fields[name].default
            if self.loss not in losses and getattr(self, name) != default:
                raise ValueError(f"{name} is set, but {self.loss} does not read it")
        if self.loss in READ_BY["label_smoothing"] and not self.label_smoothing:
            raise ValueError(f"{self.loss} without label_smoothing is sigmoid: set it")
        return self

    @property
    def loss_name(self) -> LossName:
        """The loss of the run."""
        return self.loss

    @property
    def sft(self) -> float:
        """Weight of the mean cross-entropy of chosen answers."""
        if self.sft_weight is not None:
            return self.sft_weight
        return 1.0 if self.loss in WITH_CROSS_ENTROPY else 0.0


class RewardConfig(PairsConfig):
    """How a model learns to score answers."""

    learning_rate: LearningRate = Field(
        default=LearningRate(peak=1e-5, warmup_share=0.1, decay="linear"),
        description="The one phase of the run.",
    )
    margin: str | None = Field(
        default=None,
        min_length=1,
        description="Field of the pairs' `metadata` with the margin of each, a number: by how much "
        "the chosen answer's score should exceed the other's before the loss is ln 2; by default "
        "no margins.",
    )
    centring: float = Field(
        default=0.0,
        ge=0,
        description="Weight of (chosen + rejected)², which keeps the mean of scores at 0; 0.01 "
        "is usual.",
    )
    too_long: TooLong = Field(
        default="drop",
        description="What happens to an answer beyond the model's context: a cut one is scored at "
        "its last token.",
    )
    seed: int = Field(
        default=0,
        ge=0,
        description="Decides the order, the held-out part and the first weights of the score.",
    )
