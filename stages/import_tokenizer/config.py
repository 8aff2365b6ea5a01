"""Settings of the import_tokenizer stage."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config


class ImportTokenizerConfig(Config):
    """Which tokens have which role, where the files do not say, and what may be added."""

    add_missing: bool = Field(
        default=True,
        description="Whether tokens that the tokenizer lacks (end, padding, turns, filling in the "
        "middle) are added after its last id, under Ingot's names.",
    )
    begin_token: str | None = Field(
        default=None, min_length=1, description="Token before a document; else bos_token, if any."
    )
    end_token: str | None = Field(
        default=None, min_length=1, description="Token that ends a document; else eos_token."
    )
    padding_token: str | None = Field(
        default=None, min_length=1, description="Token that fills rows; else pad_token."
    )
    pad_to_multiple_of: int = Field(
        default=64,
        ge=1,
        le=2**16,
        description="Rows of a model's embedding are the next multiple of this "
        "(padded_vocabulary_size).",
    )
