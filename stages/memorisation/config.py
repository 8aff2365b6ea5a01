"""Settings of `memorisation`."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config


class MemorisationConfig(Config):
    """Which sequences are tried."""

    prompt_tokens: int = Field(
        default=50, ge=1, description="First tokens of a document that the model is shown."
    )
    continuation_tokens: int = Field(
        default=50,
        ge=1,
        description="Tokens after them that it has to give back, each of them, to have the "
        "sequence extracted.",
    )
    copies: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(1, 2, 4, 8, 16, 32, 64, 128),
        min_length=1,
        description="Least copies of each group of sequences; a group ends where the next begins.",
    )
    max_sequences: int = Field(
        default=1000,
        ge=1,
        description="Sequences of each group, and held-out ones; a seeded draw where there are "
        "more.",
    )
    seed: int = Field(default=0, ge=0, lt=2**31, description="Of the draw.")

    @model_validator(mode="after")
    def _copies_rise(self) -> Self:
        if list(self.copies) != sorted(set(self.copies)):
            raise ValueError("copies must rise")
        return self
