"""Settings of the import_model stage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artifacts_schema.config import Config


class ImportModelConfig(Config):
    """What is done where the files leave a choice."""

    new_tokens: Literal["refuse", "mean"] = Field(
        default="refuse",
        description="What becomes of a tokenizer with more tokens than the model has rows: an "
        "error, or rows up to its padded_vocabulary_size, each the mean of the model's own.",
    )
