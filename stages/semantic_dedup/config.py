"""Settings of `semantic_dedup`: what is embedded, and which pairs are listed."""

from __future__ import annotations

from pydantic import Field

from stages.encoders.config import EncoderConfig


class SemanticDedupConfig(EncoderConfig):
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
