"""Size of a decoder by structure: parameters and floating point operations.

The memory of a training step is in `stages.model.memory`.
"""

from __future__ import annotations

from dataclasses import dataclass

from stages.model.config import ModelConfig


@dataclass(frozen=True)
class ParameterCount:
    """Parameters by part. `head` is 0 where the embedding matrix serves as output projection.

    `mlp` are SwiGLUs that every token goes through, shared experts among them; `experts` are all
    routed ones, `chosen` those that one token goes to.
    """

    embedding: int
    attention: int
    mlp: int
    norms: int
    head: int
    router: int = 0
    experts: int = 0
    chosen: int = 0

    @property
    def total(self) -> int:
        """All parameters, a tied matrix once."""
        return self.embedding + self.without_embeddings + self.head

    @property
    def without_embeddings(self) -> int:
        """All but the embedding matrix and the output projection."""
        return self.attention + self.mlp + self.norms + self.router + self.experts

    @property
    def active(self) -> int:
        """Those that one token meets: all but the experts that it does not go to."""
        return self.total - self.experts + self.chosen

    @property
    def active_without_embeddings(self) -> int:
        """The same without the embedding matrix and the output projection."""
        return self.without_embeddings - self.experts + self.chosen


def count_parameters(config: ModelConfig) -> ParameterCount:
    """Parameters of a `Decoder(config)` by part."""
    matrix = config.vocabulary_size * config.width
    dense, routed = config.layers, 0
    shared = router = expert = chosen = total_experts = 0
    if config.experts is not None:
        dense = min(config.experts.first, config.layers)
        routed = config.layers - dense
        expert = 3 * config.width * config.experts.width
        shared = config.experts.shared * expert
        router = config.width * config.experts.experts
        total_experts, chosen = config.experts.experts, config.experts.chosen
    return ParameterCount(
        embedding=matrix,
        attention=config.layers * attention_parameters(config),
        mlp=dense * 3 * config.width * config.mlp_width + routed * shared,
        norms=config.layers * (2 * config.width + _inner_norms(config)) + config.width,
        head=0 if config.tied_embeddings else matrix,
        router=routed * router,
        experts=routed * total_experts * expert,
        chosen=routed * chosen * expert,
    )


def attention_parameters(config: ModelConfig, tensor: int = 1) -> int:
    """Parameters of one layer's attention matrices that one of `tensor` ranks computes with."""
    heads = config.heads // tensor
    query_width = heads * config.head_width
    if config.latent is None:
        keys = config.kv_heads // tensor * config.head_width
        return 2 * config.width * (query_width + keys)
    latent = config.latent
    queries = config.width * query_width
    if latent.query_rank is not None:
        queries = latent.query_rank * (config.width + query_width)
    down = config.width * (latent.kv_rank + latent.rotary_width)
    up = latent.kv_rank * heads * (latent.plain_width + latent.value_width)
    return queries + down + up + heads * latent.value_width * config.width


def _inner_norms(config: ModelConfig) -> int:
    """Parameters of the norms inside one layer's attention."""
    if config.latent is not None:
        return (config.latent.query_rank or 0) + config.latent.kv_rank
    if config.qk_norm == "none":
        return 0
    heads = 2 if config.qk_norm == "head" else config.heads + config.kv_heads
    return heads * config.head_width


def forward_flops_per_token(config: ModelConfig, length: int) -> int:
    """Multiplications and additions of one token's forward pass in a sequence of `length` tokens.

    Two for each parameter that multiplies a token (attention, SwiGLU, router, chosen experts,
    output projection, tied or not; the embedding is a lookup), and what scores and mixing cost:
    Chowdhery et al. 2022 (PaLM), appendix B.
    """
    count = count_parameters(config)
    matrices = count.active_without_embeddings - count.norms
    matrices += config.vocabulary_size * config.width
    return 2 * matrices + _mixing_flops(config, length)


def training_flops_per_token(config: ModelConfig, length: int) -> int:
    """Forward and backward pass: three times the forward pass, recomputation not counted."""
    return 3 * forward_flops_per_token(config, length)


def mfu_flops_per_token(config: ModelConfig, length: int) -> int:
    """6N + 12 · L · d · T, by which model FLOPs utilisation is compared between systems.

    N are the parameters without embeddings (of experts those that a token goes to), L layers, d
    heads · channels of a head (`width`, where they are not free of it), T the sequence length, in
    layers with a window no more than that. So the output projection is not counted, unlike in
    `training_flops_per_token`.
    """
    active = count_parameters(config).active_without_embeddings
    return 6 * active + 3 * _mixing_flops(config, length)


def _mixing_flops(config: ModelConfig, length: int) -> int:
    """4 · layers · width · length: scores of a token with all others, and mixing their values.

    Not halved for the causal mask; in layers with a window, no more than the window. Keys and
    values of latent attention have widths of their own.
    """
    seen = sum(min(length, config.window_of(layer) or length) for layer in range(config.layers))
    return 2 * config.heads * (config.head_width + config.value_width) * seen
