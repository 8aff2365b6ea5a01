"""Settings of `decontaminate`."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config


class DecontaminateConfig(Config):
    """What counts as a match."""

    ngram: int = Field(
        default=13, ge=2, le=64, description="Normalised words that a document and an item share."
    )
    min_words: int = Field(
        default=8,
        ge=1,
        description="Shorter passages match as a whole from this many words on.",
    )
    passages: Literal["prompt", "answer", "prompt_and_answer", "choices"] = Field(
        default="prompt_and_answer",
        description="Which texts of an item are looked for: `prompt`: its prompt; `answer`: prompt "
        "and right answer as one text; `prompt_and_answer`: both of these; `choices`: the prompt "
        "with each choice.",
    )
    common_documents: int | None = Field(
        default=None,
        ge=1,
        description="Ignore n-grams that more documents than this hold: phrases, not leaks.",
    )

    @model_validator(mode="after")
    def _short_passages_are_shorter(self) -> Self:
        if self.min_words > self.ngram:
            raise ValueError(f"min_words ({self.min_words}) exceeds ngram ({self.ngram})")
        return self
