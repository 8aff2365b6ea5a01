"""Settings of the pack stage."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from artifacts_schema.config import Config, MapExecution
from stages.training.config import LearntTurns, TemplateDate, TooLong, template_date


class Repetition(Config):
    """Which segments of documents say the same over and over."""

    max_period: int = Field(default=13, ge=1, le=256, description="Tokens of the longest n-gram.")
    min_repeats: int = Field(
        default=32, ge=3, description="How often in a row an n-gram comes that is too much."
    )


class FillInTheMiddle(Config):
    """Which documents are reordered so that a model learns to fill in the middle."""

    rate: float = Field(default=0.5, gt=0, le=1, description="Share of documents.")
    spm_rate: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Share of these in the order suffix, prefix, middle; the others are prefix, "
        "suffix, middle.",
    )
    sources: tuple[str, ...] = Field(
        default=("code",), description="Sources, or patterns such as `code*`."
    )
    languages: tuple[str, ...] = Field(
        default=(), description="Declared languages, whatever the source."
    )

    @model_validator(mode="after")
    def _is_of_something(self) -> Self:
        if not self.sources and not self.languages:
            raise ValueError("fim needs sources or languages")
        return self


class PackConfig(Config):
    """How documents become sequences."""

    sequence_length: int = Field(
        default=2048, ge=8, le=2**24, description="Tokens of a sequence; the model's context."
    )
    strategy: Literal["best_fit", "best_fit_crop", "concatenate"] = Field(
        default="best_fit",
        description="`best_fit` cuts no document that fits into a sequence; `best_fit_crop` fills "
        "every sequence and drops what does not fit, so that each begins with a document; "
        "`concatenate` cuts a stream of documents at every sequence's end.",
    )
    held_out_share: float = Field(
        default=0.02,
        ge=0,
        lt=1,
        description="Share of duplicate classes that is never trained on, to measure loss on.",
    )
    repetition: Repetition | None = Field(
        default=Repetition(),
        description="Segments of documents, a sequence long at most, with an n-gram that comes so "
        "often in a row are left out; null: none is.",
    )
    fim: FillInTheMiddle | None = Field(
        default=None, description="Fill in the middle, for documents of `train`; null: none."
    )
    seed: int = Field(
        default=0,
        ge=0,
        le=2**32,
        description="Draws held-out documents, their sequences' order, and what fim turns.",
    )


class PackExecution(MapExecution):
    """How packing runs: same bytes."""

    encoder: Literal["tokenizers", "gigatoken", "auto"] = Field(
        default="tokenizers",
        description="What encodes: `tokenizers`, or `gigatoken` (extra `gigatoken`), ten times as "
        "fast, refused where its ids differ on texts that are tried first; `auto` takes it where "
        "it is installed and its ids are the same.",
    )


class PackChatConfig(Config):
    """How conversations become sequences."""

    template: Literal["tokenizer", "chatml"] = Field(
        default="tokenizer",
        description="What writes conversations: the input `chat_template`, else the tokenizer's "
        "own template, else ChatML; or ChatML in any case.",
    )
    date: TemplateDate = template_date()
    learn: LearntTurns = Field(
        default="assistant",
        description="`assistant`: what it says in every turn, and the token that ends it; `last`: "
        "in the last one; `everything`: every token.",
    )
    learn_pattern: str | None = Field(
        default=None,
        description="Regular expression: of those, only what it matches (its first group, if it "
        "has one), such as `(?s)</think>(.*)`.",
    )
    sequence_length: int = Field(
        default=2048, ge=8, le=2**24, description="Tokens of a sequence; the model's context."
    )
    too_long: TooLong = Field(
        default="truncate",
        description="What happens to a conversation of more tokens: it loses its end, or is left "
        "out.",
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of conversations that may be left out."
    )
    held_out_share: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="Share of conversations that is never trained on, to measure loss on.",
    )
    seed: int = Field(
        default=0,
        ge=0,
        le=2**32,
        description="Draws held-out conversations, and their sequences' order.",
    )

    @field_validator("learn_pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"'{value}' is no regular expression: {error}") from None
        return value


class PackPreferencesConfig(Config):
    """How preference pairs become sequences."""

    template: Literal["tokenizer", "chatml"] = Field(
        default="tokenizer",
        description="What writes answers: the input `chat_template`, else the tokenizer's own "
        "template, else ChatML; or ChatML in any case.",
    )
    date: TemplateDate = template_date()
    sequence_length: int = Field(
        default=2048,
        ge=8,
        le=2**24,
        description="Tokens of a sequence; it holds both answers of a pair, each after the prompt.",
    )
    too_long: TooLong = Field(
        default="truncate",
        description="What happens to a pair of more tokens: the longer answer loses its end (both, "
        "where each has more than half of the sequence), or the pair is left out.",
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of pairs that may be left out."
    )
    held_out_share: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="Share of pairs that is never trained on, to measure on.",
    )
    seed: int = Field(
        default=0, ge=0, le=2**32, description="Draws held-out pairs, and their sequences' order."
    )
