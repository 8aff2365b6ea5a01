"""Settings of `conversations`, `preferences` and `benchmarks`."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config


class ExamplesConfig(Config):
    """What is read, and how much of it may be bad."""

    source: str | None = Field(
        default=None, min_length=1, description="Name of the data set; by default the file's stem."
    )
    rename: dict[str, str] = Field(
        default_factory=dict,
        description="Field of the data → the name under which Ingot knows it, where they differ.",
    )
    max_items: int | None = Field(
        default=None, ge=1, description="Only the first rows of each file, for a small run."
    )
    max_row_bytes: int = Field(
        default=10_000_000, ge=1, description="Longest row in bytes; longer ones are bad."
    )
    max_expansion: int = Field(
        default=200,
        ge=1,
        description="Decompressed over compressed bytes above which a file is refused as a bomb.",
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of bad rows above which the stage fails."
    )
