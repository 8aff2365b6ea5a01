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
        description="A prompt that is shorter than `ngram` matches as a whole from this many words "
        "on.",
    )
    min_answered_words: int = Field(
        default=5,
        ge=1,
        description="The same for a prompt with its answer behind it, which says more.",
    )
    passages: Literal["prompt", "answer", "prompt_and_answer", "choices", "all"] = Field(
        default="all",
        description="Which texts of an item are looked for: `prompt`: its prompt; `answer`: prompt "
        "and right answer as one text; `prompt_and_answer`: both of these; `choices`: the prompt "
        "with each choice; `all`: prompt, each choice of `ngram` words, and prompt with the right "
        "answer.",
    )
    min_prompt_share: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="A document must hold as many n-grams of an item as this share of its prompt "
        "has: what shares less of a long one quotes the text that the item quotes. Of 20 one is "
        "enough.",
    )
    common_documents: int | None = Field(
        default=None,
        ge=1,
        description="Ignore n-grams that more documents than this hold: phrases, not leaks.",
    )
    common_short_documents: int | None = Field(
        default=10,
        ge=1,
        description="The same for n-grams of fewer than `min_words` words; items of which nothing "
        "else is found are counted as common phrases.",
    )

    @model_validator(mode="after")
    def _short_passages_are_shorter(self) -> Self:
        if self.min_words > self.ngram:
            raise ValueError(f"min_words ({self.min_words}) exceeds ngram ({self.ngram})")
        if self.min_answered_words > self.ngram:
            least = self.min_answered_words
            raise ValueError(f"min_answered_words ({least}) exceeds ngram ({self.ngram})")
        return self
