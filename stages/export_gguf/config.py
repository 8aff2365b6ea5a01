"""Settings of the export_gguf stage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artifacts_schema.config import Config

GgufType = Literal["F32", "F16", "BF16", "Q8_0", "Q4_0"]


class GgufConfig(Config):
    """What the file is called, and the type of its weights."""

    name: str = Field(
        default="ingot-model",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$",
        description="Name of the model; the file is `NAME-TYPE.gguf`.",
    )
    type: GgufType = Field(
        default="Q8_0",
        description="Type of the matrices. Q8_0 has 8.5 bits for a number, Q4_0 4.5; K-quants are "
        "made of an F32, F16 or BF16 file by llama.cpp's own program.",
    )
