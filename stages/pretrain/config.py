"""Settings of pretraining. Pydantic only, so that a recipe loads fast.

A batch size is one number, or a schedule such as `0: 256, 1e9: 512`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError
from stages.model.config import ModelShape, RopeScaling
from stages.pairs.config import READ_BY, WITH_CROSS_ENTROPY, WITHOUT_REFERENCE, LossName
from stages.training.config import (
    AdapterConfig,
    AveragesConfig,
    LearningRate,
    OptimizerConfig,
    StabilityConfig,
    TrainingPrecision,
)
from stages.training.run_plan import check_mixture
from stages.training.schedule import Sizes

_PAIR = re.compile(r"([^\s:,]+)\s*:\s*([^\s:,]+)")
_BETWEEN = re.compile(r"[\s,]*")


def read_sizes(value: Any) -> int | Sizes:
    """What `value` means: a number, a text of pairs TOKEN: SEQUENCES, or a mapping of them.

    A schedule begins at token 0, and its tokens rise. ValueError for anything else.
    """
    if isinstance(value, str) and ":" in value:
        pairs = _PAIR.findall(value)
        if not _BETWEEN.fullmatch(_PAIR.sub("", value)):
            raise ValueError(f"'{value}' is no schedule like 0: 256, 1e9: 512")
    elif isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        return _number(value, "sequences", 1)
    sizes = tuple((_number(a, "tokens", 0), _number(b, "sequences", 1)) for a, b in pairs)
    if not sizes or sizes[0][0] != 0:
        raise ValueError("a schedule of batch sizes begins at token 0")
    for (before, _), (after, _) in pairwise(sizes):
        if after <= before:
            raise ValueError(f"the tokens of a schedule rise, but {after:,} follows {before:,}")
    return sizes[0][1] if len(sizes) == 1 else sizes


def format_sizes(sizes: int | Sizes) -> int | str:
    """The one form in which equal schedules are equal."""
    if isinstance(sizes, int):
        return sizes
    return ", ".join(f"{token}: {size}" for token, size in sizes)


def _number(value: Any, what: str, least: int) -> int:
    """A whole number of tokens or sequences; 1e9 is one, 1.5 is none."""
    try:
        number = Decimal(str(value))
        whole = int(number)
    except (InvalidOperation, ValueError, OverflowError):
        raise ValueError(f"'{value}' is no number of {what}") from None
    if isinstance(value, bool) or whole != number or whole < least:
        raise ValueError(f"'{value}' is no number of {what} from {least}")
    return whole


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
        description="masked: share of those that the mask token replaces.",
    )
    replaced: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="masked: share of those that a random token replaces; the rest is unchanged.",
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
    """The objectives of a run, and the penalty that is added to the loss."""

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


class CheckpointsConfig(Config):
    """Permanent checkpoints of a run, besides its last one."""

    every: int | None = Field(
        default=None,
        ge=1,
        description="Token positions between permanent checkpoints; by default none at intervals.",
    )
    before_decay: bool = Field(
        default=True, description="One before each decay of the learning rate, to continue from."
    )
    phase_edges: bool = Field(default=True, description="One at the end of each phase.")
    optimizer: bool = Field(
        default=True, description="With the optimizer's state, which a continuation needs."
    )


class PhaseConfig(Config):
    """A span of pretraining with its own mixture, batch size and learning-rate segment."""

    tokens: int | None = Field(
        default=None,
        ge=1,
        description="Token positions to read, rounded to whole training steps.",
    )
    epochs: float | None = Field(
        default=None,
        gt=0,
        description="Instead of tokens: how often the data is read; of a mixture, the source that "
        "would be read most often.",
    )
    mixture: dict[str, float] = Field(
        default={}, description="Share of sequences by source; by default each by its size."
    )
    mixture_end: dict[str, float] = Field(
        default={},
        description="Shares at the end of the phase, reached linearly; by default the mixture is "
        "constant.",
    )
    sequence_length: int | None = Field(
        default=None,
        ge=2,
        description="Tokens of a sequence, if the token shards have several lengths.",
    )
    rope_base: float | None = Field(
        default=None,
        gt=1,
        description="Base of the rotary frequencies from this phase on; by default unchanged.",
    )
    rope_scaling: RopeScaling | None = Field(
        default=None,
        description="Scaling of the rotary frequencies from this phase on; by default unchanged.",
    )
    sequences_per_batch: int | str = Field(
        default=16,
        description="Sequences of a training step; or a schedule by tokens of the phase: "
        "`0: 256, 1e9: 512`.",
    )
    learning_rate: LearningRate = Field(
        default=LearningRate(), description="Segment of the learning-rate schedule."
    )

    @field_validator("sequences_per_batch", mode="before")
    @classmethod
    def _in_one_form(cls, value: Any) -> Any:
        return format_sizes(read_sizes(value))

    @field_validator("mixture", "mixture_end")
    @classmethod
    def _sums_to_one(cls, value: dict[str, float]) -> dict[str, float]:
        try:
            check_mixture(value, where="")
        except UsageError as error:
            raise ValueError(error.what) from None
        return value

    @model_validator(mode="after")
    def _has_a_length(self) -> Self:
        if (self.tokens is None) == (self.epochs is None):
            raise ValueError("a phase has either tokens or epochs")
        if self.epochs is not None and (self.mixture_end or not isinstance(self.batch_sizes, int)):
            raise ValueError("a mixture_end or a schedule of batch sizes needs tokens, not epochs")
        return self

    @model_validator(mode="after")
    def _sizes_are_reached(self) -> Self:
        sizes = self.batch_sizes
        if self.tokens is not None and not isinstance(sizes, int) and sizes[-1][0] >= self.tokens:
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
    """Data that the run skips: no other training step changes."""

    first: int = Field(ge=0, description="First of them: training step from 1, or token from 0.")
    last: int = Field(ge=0, description="Last of them, skipped as well.")
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


class DistillationConfig(Config):
    """How a teacher's distributions are learnt."""

    divergence: Literal["forward", "reverse", "mixed"] = Field(
        default="forward",
        description="`forward`: KL(teacher, model); `reverse`: KL(model, teacher); `mixed`: the "
        "mean of both.",
    )
    weight: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Share of the divergence in the loss; the rest is the cross-entropy of the "
        "tokens.",
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
    objective: ObjectiveConfig = Field(
        default=ObjectiveConfig(), description="What is learnt from each sequence."
    )
    optimizer: OptimizerConfig = Field(default=OptimizerConfig(), description="AdamW, or Muon.")
    stability: StabilityConfig = Field(
        default=StabilityConfig(),
        description="Handling of spikes, losses that are not finite, and stalls.",
    )
    averages: AveragesConfig = Field(
        default=AveragesConfig(), description="Averages of the weights."
    )
    adapter: AdapterConfig | None = Field(
        default=None,
        description="Train low-rank matrices beside the weights of the input checkpoint; by "
        "default the weights.",
    )
    distillation: DistillationConfig | None = Field(
        default=None,
        description="Learn the distributions of the input `teacher`; by default the tokens alone.",
    )
    optimizer_state: Literal["fresh", "keep"] = Field(
        default="fresh", description="Whether to take over the moments of the input checkpoint."
    )
    clock: Literal["restart", "continue"] = Field(
        default="restart",
        description="Where in its data a run with an input checkpoint begins: at its first token, "
        "or after the checkpoint, as part of one longer run with these phases.",
    )
    checkpoints: CheckpointsConfig = Field(
        default=CheckpointsConfig(), description="Permanent checkpoints."
    )
    precision: TrainingPrecision = Field(
        default="bf16",
        description="Precision of matrix products. fp8 (with ingot[float8]) is bf16 with the "
        "matrices of blocks in eight bits: faster on Hopper and later, where layers are wide.",
    )
    seed: int = Field(default=0, ge=0, description="Decides initial weights and order of data.")
    max_epochs: float | None = Field(
        default=None, gt=0, description="Most epochs of any source; by default no limit."
    )
    epochs: dict[str, float] = Field(
        default={},
        description="Most epochs by source, such as {web: 1, math: 4}; overrides `max_epochs`.",
    )
    skip: tuple[SkipConfig, ...] = Field(
        default=(), description="Training steps, or tokens, that are skipped."
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


class SftConfig(PretrainConfig):
    """How a pretrained model learns to answer: as `PretrainConfig`, by other defaults."""

    phases: tuple[PhaseConfig, ...] = Field(
        default=(
            PhaseConfig(
                epochs=2,
                learning_rate=LearningRate(peak=2e-4, warmup_share=0.05, decay="linear"),
            ),
        ),
        min_length=1,
        description="The phases in order; by default one of two epochs that decays to zero.",
    )
    checkpoints: CheckpointsConfig = Field(
        default=CheckpointsConfig(before_decay=False),
        description="Permanent checkpoints on the way.",
    )
    embedding_noise: float = Field(
        default=0.0,
        ge=0,
        description="NEFTune: alpha of the noise that is added to embeddings in training steps, "
        "uniform in ±alpha / √(tokens of the document · width); 5 to 15 are usual, 0 is none.",
    )


class PairLossConfig(Config):
    """The loss of pairs of answers."""

    name: LossName = Field(
        default="sigmoid",
        description="`sigmoid` (DPO), `cdpo`, `robust`, `hinge`, `ipo_sum`, `ipo_mean`, "
        "`sigmoid_mean` (length-normalised DPO), `apo_zero`, `apo_down`, `bco_pair`; without a "
        "reference `simpo`, `orpo`, `cpo`. `kto` is the stage `preference`'s.",
    )
    beta: float = Field(
        default=0.1,
        gt=0,
        description="Weight of the distance to the reference; scale of simpo's, orpo's and cpo's "
        "terms.",
    )
    gamma: float = Field(default=0.0, ge=0, description="simpo: margin that is aimed at.")
    label_smoothing: float = Field(
        default=0.0,
        ge=0,
        lt=0.5,
        description="cdpo, robust: probability that a pair is labelled the wrong way round.",
    )
    sft_weight: float | None = Field(
        default=None,
        ge=0,
        description="Weight of the mean cross-entropy of chosen answers, which is added; by "
        "default 1 for orpo and cpo, else 0.",
    )

    @model_validator(mode="after")
    def _is_read(self) -> Self:
        if self.name == "kto":
            raise ValueError("kto judges single answers, which are not packed: use `preference`")
        for field in ("gamma", "label_smoothing"):
            if self.name not in READ_BY[field] and getattr(self, field):
                raise ValueError(f"{field} is set, but {self.name} does not read it")
        if self.name in READ_BY["label_smoothing"] and not self.label_smoothing:
            raise ValueError(f"{self.name} without label_smoothing is sigmoid: set it")
        return self

    @property
    def loss_name(self) -> LossName:
        """The loss."""
        return self.name

    @property
    def sft(self) -> float:
        """Weight of the mean cross-entropy of chosen answers."""
        if self.sft_weight is not None:
            return self.sft_weight
        return 1.0 if self.name in WITH_CROSS_ENTROPY else 0.0

    @property
    def has_reference(self) -> bool:
        """Whether the loss compares with a reference model."""
        return self.name not in WITHOUT_REFERENCE


class PackedPreferenceConfig(PretrainConfig):
    """How a model learns to prefer: as `PretrainConfig`, by other defaults."""

    phases: tuple[PhaseConfig, ...] = Field(
        default=(
            PhaseConfig(
                epochs=1,
                learning_rate=LearningRate(peak=5e-6, warmup_share=0.1, decay="linear"),
            ),
        ),
        min_length=1,
        description="The phases in order; by default one of one epoch that decays to zero.",
    )
    loss: PairLossConfig = Field(default=PairLossConfig(), description="What is minimised.")
    optimizer: OptimizerConfig = Field(
        default=OptimizerConfig(weight_decay=0.0), description="AdamW, or Muon."
    )
    checkpoints: CheckpointsConfig = Field(
        default=CheckpointsConfig(before_decay=False),
        description="Permanent checkpoints on the way.",
    )
