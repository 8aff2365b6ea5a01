"""Settings of the extend_vocabulary stage."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config


class ExtendConfig(Config):
    """Which tokens a vocabulary gets, and from how much text they are learnt."""

    new_tokens: int = Field(
        default=1024,
        ge=0,
        le=2**20,
        description="Tokens to learn from the documents; fewer if the text runs out.",
    )
    tokens: tuple[str, ...] = Field(
        default=(),
        description="Texts that become one token each, whatever the documents say. A word inside a "
        "sentence begins with a space.",
    )
    min_frequency: int = Field(
        default=2, ge=1, description="Occurrences that a pair of tokens needs to become one."
    )
    sample_share: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Share of the documents that is used, drawn by a stable hash of each.",
    )
    held_share: float = Field(
        default=0.01,
        ge=0,
        lt=1,
        description="Share of the drawn documents kept out of training, to measure bytes per token "
        "on.",
    )
    pad_to_multiple_of: int = Field(
        default=64,
        ge=1,
        le=2**16,
        description="Rows of the embedding are the next multiple of this, and never fewer than "
        "before.",
    )

    @model_validator(mode="after")
    def _adds_something(self) -> Self:
        if not self.new_tokens and not self.tokens:
            raise ValueError("new_tokens is 0 and tokens are empty: nothing would be added")
        for place, text in enumerate(self.tokens):
            if not text:
                raise ValueError(f"tokens.{place} is empty")
            if text in self.tokens[:place]:
                raise ValueError(f"tokens.{place}: {text!r} is there twice")
        return self
