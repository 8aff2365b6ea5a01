"""Parameters and floating point operations of a decoder, by structure."""

from __future__ import annotations

from dataclasses import dataclass

from stages.model.config import ModelConfig


@dataclass(frozen=True)
class ParameterCount:
    """Parameters by part. `head` is 0 where the embedding matrix serves as output projection."""

    embedding: int
    attention: int
    mlp: int
    norms: int
    head: int

    @property
    def total(self) -> int:
        """All parameters, a tied matrix once."""
        return self.embedding + self.attention + self.mlp + self.norms + self.head

    @property
    def without_embeddings(self) -> int:
        """All but the embedding matrix and the output projection."""
        return self.attention + self.mlp + self.norms


def count_parameters(config: ModelConfig) -> ParameterCount:
    """Parameters of a `Decoder(config)` by part."""
    kv_width = config.kv_heads * config.head_width
    matrix = config.vocabulary_size * config.width
    return ParameterCount(
        embedding=matrix,
        attention=config.layers * 2 * config.width * (config.width + kv_width),
        mlp=config.layers * 3 * config.width * config.mlp_width,
        norms=(2 * config.layers + 1) * config.width,
        head=0 if config.tied_embeddings else matrix,
    )


def forward_flops_per_token(config: ModelConfig, length: int) -> int:
    """Multiplications and additions of one token's forward pass in a sequence of `length` tokens.

    Two for each parameter that multiplies a token (attention, SwiGLU, output projection, tied or
    not; the embedding is a lookup), and 4 · layers · width · length for scores and mixing, not
    halved for the causal mask: Chowdhery et al. 2022 (PaLM), appendix B.
    """
    count = count_parameters(config)
    matrices = count.attention + count.mlp + config.vocabulary_size * config.width
    return 2 * matrices + 4 * config.layers * config.width * length


def training_flops_per_token(config: ModelConfig, length: int) -> int:
    """Forward and backward pass: three times the forward pass, recomputation not counted."""
    return 3 * forward_flops_per_token(config, length)
