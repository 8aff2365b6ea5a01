"""The format that tokens are written in."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config

Format = Literal["megatron", "nanotron", "mosaicml"]


class ExportTokensConfig(Config):
    """Which trainer is to read the tokens."""

    format: Format = Field(
        default="megatron",
        description="`megatron`: Megatron-LM's indexed dataset; `nanotron`: datatrove's tokenized "
        "files, which nanotron reads; `mosaicml`: shards of MosaicML Streaming (MDS), which LLM "
        "Foundry reads.",
    )
    sample_length: int | None = Field(
        default=None,
        ge=1,
        le=1 << 24,
        description="Tokens of a sample; by default the sequence length of the first input. For "
        "`mosaicml` alone: the other formats hold documents, and their trainers cut them.",
    )

    @model_validator(mode="after")
    def _length_only_where_cut(self) -> Self:
        if self.sample_length is not None and self.format != "mosaicml":
            raise ValueError(
                f"sample_length is for format mosaicml; with {self.format} the trainer cuts samples"
            )
        return self
