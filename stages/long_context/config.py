"""Settings of `long_context`."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from artifacts_schema.config import Config

Family = Literal[
    "niah_single_1", "niah_single_2", "niah_single_3", "niah_multikey_1", "niah_multikey_2",
    "niah_multikey_3", "niah_multivalue", "niah_multiquery", "vt", "cwe", "fwe", "qa_1", "qa_2",
]  # fmt: skip
"""RULER's names: needles in a haystack, variable tracking, common and frequent words, questions."""
QUESTIONS: tuple[Family, ...] = ("qa_1", "qa_2")
"""Families that need rows of a data set, each from the role of its name."""


class LongContextConfig(Config):
    """Which items are made. The seed decides every draw."""

    families: tuple[Family, ...] = Field(
        default=tuple(one for one in get_args(Family) if one not in QUESTIONS),
        min_length=1,
        description="Families of items, by RULER's names; `qa_1` and `qa_2` need a snapshot.",
    )
    lengths: tuple[Annotated[int, Field(ge=64, le=2**24)], ...] = Field(
        default=(1024, 2048, 4096),
        min_length=1,
        description="Tokens of an item: its prompt and the room for its answer. RULER has 4,096 to "
        "131,072.",
    )
    depths: tuple[Annotated[float, Field(ge=0, le=100)], ...] = Field(
        default=(0, 25, 50, 75, 100),
        min_length=1,
        description="Where the needle that is asked for lies: per cent of the haystack before it.",
    )
    items: int = Field(
        default=100,
        ge=1,
        le=100_000,
        description="Items of each family and length; those with a depth take the depths in turn.",
    )
    choices: int = Field(
        default=4, ge=2, le=10, description="Choices of an item whose answers are ranked."
    )
    answer_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Room for an answer in tokens; null: RULER's (128 for needles, 30 for vt, 120 "
        "for cwe, 50 for fwe, 32 for questions).",
    )
    seed: int = Field(default=0, ge=0, lt=2**31, description="Of every draw.")

    @model_validator(mode="after")
    def _nothing_twice(self) -> Self:
        for name in ("families", "lengths", "depths"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} has a value twice")
        return self
