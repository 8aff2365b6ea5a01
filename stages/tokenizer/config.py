"""Settings of the tokenizer stage."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config
from stages.tokens.vocabulary import SPECIAL_TOKENS

Share = Annotated[float, Field(gt=0, le=1)]


class TokenizerConfig(Config):
    """What tokenizer is trained, and on how much of which text."""

    algorithm: Literal["bpe", "unigram", "wordpiece"] = Field(
        default="bpe",
        description="`bpe`: the pairs met most often are merged; `unigram`: the likeliest of all "
        "segmentations; `wordpiece`: BPE's vocabulary, the longest token first. llama.cpp runs the "
        "first.",
    )
    vocabulary_size: int = Field(
        default=32_768,
        ge=264,
        le=2**20,
        description="Tokens, special ones and 256 bytes included; fewer if the text runs out.",
    )
    pre_tokenizer: Literal["gpt-2", "smollm", "llama-bpe", "qwen2"] = Field(
        default="llama-bpe",
        description="How text is cut before merging, by llama.cpp's name; decides how digits go.",
    )
    min_frequency: int = Field(
        default=2, ge=1, description="Occurrences that a string needs to become a token."
    )
    reserved_tokens: int = Field(
        default=8,
        ge=0,
        le=4096,
        description="Special tokens without a meaning yet, <|reserved_0|> and on, for what comes "
        "later.",
    )
    pad_to_multiple_of: int = Field(
        default=64,
        ge=1,
        le=2**16,
        description="Rows of a model's embedding are the next multiple of this "
        "(padded_vocabulary_size).",
    )
    max_bytes: int = Field(
        default=1_000_000_000,
        ge=1,
        lt=2**31,
        description="Bytes of text to train on, about; documents are drawn by a stable hash. "
        "`tokenizers` counts pairs in 32 bits.",
    )
    weights: dict[str, Share] = Field(
        default={},
        description="Shares of bytes by source, as {code: 0.3}; sources that are not named divide "
        "the rest as they naturally do.",
    )
    language_weights: dict[str, Share] = Field(
        default={},
        description="Shares of bytes by language as declared (`unknown`: none), likewise.",
    )
    language_alpha: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Instead: shares of languages proportional to their natural share to this "
        "power (0.3 in XLM-R and mT5).",
    )
    held_share: float = Field(
        default=0.01,
        ge=0,
        lt=1,
        description="Share of the drawn documents kept out of training, to measure fertility on.",
    )

    @property
    def special_tokens(self) -> int:
        """How many special tokens there are; ids of ordinary ones begin there."""
        return len(SPECIAL_TOKENS) + self.reserved_tokens

    @model_validator(mode="after")
    def _fits(self) -> Self:
        needed = self.special_tokens + 256
        if self.vocabulary_size < needed:
            raise ValueError(
                f"vocabulary_size: {self.vocabulary_size} has no room for {self.special_tokens} "
                f"special tokens and 256 bytes: at least {needed}"
            )
        for name in ("weights", "language_weights"):
            total = sum(getattr(self, name).values())
            if total > 1 + 1e-6:
                raise ValueError(f"{name}: shares sum to {total:g}, more than 1")
        if self.language_weights and self.language_alpha is not None:
            raise ValueError("language_alpha and language_weights are both set: set one of them")
        return self
