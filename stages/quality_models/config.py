"""Which models are made, and of how much text."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config, Execution
from stages.language_model.config import NgramConfig


class ClassifierConfig(Config):
    """A fastText classifier. Defaults are DCLM's (Li et al. 2024): 200,000 documents, bigrams."""

    name: str = Field(
        default="quality",
        pattern=r"^[a-z][a-z0-9_]*$",
        description="What it tells; its signal is `<name>_score`.",
    )
    learning_rate: float = Field(default=0.1, gt=0, le=5, description="At the start; falls to 0.")
    dim: int = Field(default=100, ge=2, le=4096, description="Width of a word's vector.")
    epochs: int = Field(default=5, ge=1, le=1000, description="Passes over the text.")
    word_ngrams: int = Field(default=2, ge=1, le=5, description="Words of the longest n-gram.")
    buckets: int = Field(
        default=2_000_000,
        ge=1,
        le=2**30,
        description="Rows for hashed n-grams; the model file has 4 bytes × `dim` for each.",
    )
    min_count: int = Field(default=1, ge=1, description="Occurrences a word needs to be known.")
    subword_min: int = Field(
        default=0, ge=0, le=32, description="Characters of the shortest subword; 0 for none."
    )
    subword_max: int = Field(
        default=0,
        ge=0,
        le=32,
        description="Characters of the longest; subwords help with short or inflected text.",
    )
    lower_case: bool = Field(default=False, description="Put text in lower case first.")
    quantize: bool = Field(
        default=False, description="Make a small `.ftz`: a byte for every two numbers, less exact."
    )
    kept_contrast: float | None = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="Share of the contrast that the cut-off keeps; null for the best F1.",
    )
    seed: int = Field(default=1, ge=1, lt=2**31, description="Seed of fastText.")

    @model_validator(mode="after")
    def _subwords_have_both_ends(self) -> Self:
        if self.subword_min > self.subword_max or (self.subword_max and not self.subword_min):
            raise ValueError("subword_min and subword_max are both 0, or min ≥ 1 and ≤ max")
        return self


class CutoffsConfig(Config):
    """Percentiles that divide text into head, middle and tail; by default CCNet's."""

    head: float = Field(
        default=30, gt=0, lt=100, description="Percentile of perplexity below which is the head."
    )
    tail: float = Field(
        default=60, gt=0, lt=100, description="Percentile from which on is the tail."
    )

    @model_validator(mode="after")
    def _head_before_tail(self) -> Self:
        if self.head >= self.tail:
            raise ValueError("head must be less than tail")
        return self


class QualityModelsExecution(Execution):
    """How much memory an estimation may take."""

    memory: str = Field(
        default="2GB",
        pattern=r"^\d+(\.\d+)?\s*[KMGT]i?B$",
        description="What DuckDB may hold of the n-grams; more is spilt to the work folder.",
    )


class QualityModelsConfig(Config):
    """Which models are made, and of how much text."""

    language: str = Field(
        default="en",
        pattern=r"^[a-z]{2,3}$",
        description="Language of the models; documents that declare another one are left out.",
    )
    documents: int = Field(
        default=200_000, ge=1, description="Documents of each role, about; drawn by a stable hash."
    )
    held_share: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="Share of them that no model learns from, to judge the models by.",
    )
    seed: int = Field(default=1, ge=0, lt=2**31, description="Seed of the draw.")
    ngram: NgramConfig | None = Field(
        default=NgramConfig(), description="The n-gram model of the reference; null for none."
    )
    cutoffs: CutoffsConfig | None = Field(
        default=CutoffsConfig(), description="Cut-offs of its perplexity; null for none."
    )
    classifier: ClassifierConfig | None = Field(
        default=ClassifierConfig(), description="The classifier; null for none."
    )
