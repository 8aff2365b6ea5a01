"""Settings of `semantic_dedup`: what is embedded, and which pairs are listed."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config
from stages.encoders.config import Precision


class SemanticDedupConfig(Config):
    """What is embedded, and from which cosine on a pair is listed."""

    floor: float = Field(
        default=0.9,
        ge=0.3,
        le=1,
        description="Least cosine of a pair that is listed; `duplicates.threshold` of `filter` can "
        "not lie below. Which cosine means a copy depends on the encoder.",
    )
    max_partners: int = Field(
        default=64, ge=1, description="Most partners that are listed of one document: the nearest."
    )
    max_length: int = Field(
        default=512, ge=8, le=131_072, description="Most tokens of a sequence, special ones too."
    )
    windows: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Sequences from the beginning of a text that are embedded; of several the "
        "mean over all their tokens.",
    )
    precision: Precision = Field(
        default="float32", description="Type of the encoder's weights and products."
    )
