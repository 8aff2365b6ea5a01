"""The shape of a decoder. No torch here: recipes and plans read these fields too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config


class ModelShape(Config):
    """A decoder without its vocabulary, which the tokenizer decides."""

    width: int = Field(default=192, ge=2, description="Channels of the residual stream.")
    layers: int = Field(default=6, ge=1, description="Decoder blocks.")
    heads: int = Field(default=6, ge=1, description="Query heads; they divide `width`.")
    kv_heads: int = Field(
        default=3, ge=1, description="Key and value heads (GQA); they divide `heads`."
    )
    mlp_width: int | None = Field(
        default=None,
        ge=1,
        description="Channels in the SwiGLU; 8/3 of `width` by default, up to a multiple of 32.",
    )
    context: int = Field(default=256, ge=2, description="Longest sequence, in tokens.")
    rope_base: float = Field(default=10000.0, gt=1, description="Base of the rotary frequencies.")
    norm_epsilon: float = Field(default=1e-5, gt=0, lt=1, description="Added inside every RMSNorm.")
    tied_embeddings: bool = Field(
        default=True, description="Use the embedding matrix as output projection too."
    )
    init_std: float = Field(
        default=0.02, gt=0, le=1, description="Standard deviation of the initial weights."
    )

    @property
    def head_width(self) -> int:
        """Channels of one head."""
        return self.width // self.heads

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.heads % self.kv_heads:
            raise ValueError(f"heads {self.heads} is not a multiple of kv_heads {self.kv_heads}")
        if self.head_width % 2:
            raise ValueError(
                f"width / heads is {self.head_width}; rotary embeddings need an even head width"
            )
        return self

    def with_vocabulary(self, vocabulary_size: int) -> ModelConfig:
        """The complete config of a decoder over `vocabulary_size` tokens."""
        return ModelConfig(vocabulary_size=vocabulary_size, **self.model_dump())


class ModelConfig(ModelShape):
    """A complete decoder, every size resolved; `model.json` of a checkpoint holds these fields."""

    vocabulary_size: int = Field(ge=1, description="Rows of the embedding matrix.")
    mlp_width: int = Field(default=0, ge=1, description="Channels inside the SwiGLU.")

    @model_validator(mode="before")
    @classmethod
    def _resolve_mlp_width(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("mlp_width") is None:
            width = values.get("width", cls.model_fields["width"].default)
            if isinstance(width, int):
                return {**values, "mlp_width": default_mlp_width(width)}
        return values


def default_mlp_width(width: int) -> int:
    """8/3 of `width`, up to a multiple of 32: three such matrices weigh two of 4 · `width`.

    Shazeer 2020, "GLU Variants Improve Transformer", section 2, keeps the parameter count so.
    """
    return -(-8 * width // (3 * 32)) * 32
