"""What the comparison measures, and on how much text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import Field, field_validator

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError


class CompareTokenizersConfig(Config):
    """What is measured, and on how much text."""

    names: tuple[str, ...] = Field(
        default=(),
        description="Names of the tokenizers in the comparison, in the order of the inputs; "
        "otherwise the snapshot of those brought along, algorithm and size of those trained here.",
    )
    reference: str = Field(
        default="en",
        min_length=1,
        description="Language of the parallel documents that the others are compared with.",
    )
    passage: str = Field(
        default="id",
        min_length=1,
        description="Field by which translations of a passage are known: of a document's metadata, "
        "or `url` or `title`.",
    )
    max_bytes: int = Field(
        default=50_000_000,
        ge=1,
        description="Bytes of documents to measure on, about, and of parallel ones; they are drawn "
        "by a stable hash of their duplicate class, or passage.",
    )

    @field_validator("names")
    @classmethod
    def _unique(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(f"two tokenizers are called '{twice[0]}'")
        if not all(name.strip() for name in names):
            raise ValueError("a name is empty")
        return names


def check_names(names: Sequence[str], tokenizers: int) -> None:
    """Raise UsageError unless there are as many names as tokenizers, or none."""
    if names and len(names) != tokenizers:
        raise UsageError(
            f"{len(names)} names for {tokenizers} tokenizers",
            where="names",
            hint="give a name for each tokenizer in the order of the inputs, or none",
        )
