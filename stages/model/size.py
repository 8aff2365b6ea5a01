"""Size of a decoder by structure: parameters, floating point operations, memory of a training step.

Activations are what autograd keeps between forward and backward pass when each operation runs by
itself (eager), with the reference attention: tests compare them with what torch really holds.
Compiled blocks, and the fused kernels of a GPU, keep a little less. What a single operation
needs while it runs, and what an allocator wastes, is not counted.

Per token: D width, H query heads, K key and value heads, C channels of a head, F inner channels
of a SwiGLU, X experts of a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stages.model.config import Experts, LatentAttention, ModelConfig


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


def attention_parameters(config: ModelConfig) -> int:
    """Parameters of one layer's attention matrices."""
    query_width = config.heads * config.head_width
    if config.latent is None:
        return 2 * config.width * (query_width + config.kv_heads * config.head_width)
    latent = config.latent
    queries = config.width * query_width
    if latent.query_rank is not None:
        queries = latent.query_rank * (config.width + query_width)
    down = config.width * (latent.kv_rank + latent.rotary_width)
    up = latent.kv_rank * config.heads * (latent.plain_width + latent.value_width)
    return queries + down + up + config.heads * latent.value_width * config.width


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


Checkpointing = Literal["none", "full", "cheap"]

_WIDE = 4
"""Bytes of a float32."""


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of one training step with `rows` sequences at once.

    Between forward and backward pass are kept: `norms` their inputs; `attention` queries, keys,
    values and what they gave; `feed_forward` what is inside SwiGLUs and experts; `masks` the mask
    and the rotary angles, once for all layers; `casts` matrices in half precision. `recomputed` is
    what one checkpointed block holds while its backward pass runs. `logits` are those in memory at
    once, and the gradients that are formed of them.
    """

    weights: int
    gradients: int
    optimizer: int
    norms: int
    attention: int
    feed_forward: int
    masks: int
    casts: int
    recomputed: int
    logits: int

    @property
    def kept(self) -> int:
        """What is kept between forward and backward pass, without the output layer."""
        return self.norms + self.attention + self.feed_forward + self.masks + self.casts

    @property
    def activations(self) -> int:
        """What is kept, and what is computed again."""
        return self.kept + self.recomputed

    @property
    def total(self) -> int:
        """All of it at the height of the step."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.logits


def training_memory(
    config: ModelConfig,
    *,
    rows: int,
    length: int,
    precision: Literal["fp32", "bf16", "fp16"] = "bf16",
    checkpointing: Checkpointing = "none",
    checkpointing_every: int = 1,
    optimizer: Literal["adamw", "muon"] = "adamw",
    averages: int = 0,
    logits: int | None = None,
    attention: str = "sdpa",
) -> TrainingMemory:
    """Memory of a step that has `rows` sequences of `length` tokens at once, documents packed.

    `logits` are those in memory at once, all by default; `averages` further copies of the weights;
    `attention` is the backend, of which only `sdpa` has a mask as large as all scores of a head.
    AdamW keeps two float32 numbers a parameter, Muon one for each of a block's matrices.
    """
    half = precision != "fp32"
    size, tokens = 2 if half else _WIDE, rows * length
    count = count_parameters(config)
    by_muon = count.without_embeddings - count.norms if optimizer == "muon" else 0
    layers = [_Layer.for_layer(config, layer, size) for layer in range(config.layers)]
    again = [
        checkpointing != "none" and layer % checkpointing_every == 0
        for layer in range(config.layers)
    ]
    held = [
        layer.checkpointed(checkpointing) if is_again else layer
        for layer, is_again in zip(layers, again, strict=True)
    ]
    recomputed = max(
        (whole.total - kept.total for whole, kept in zip(layers, held, strict=True)), default=0
    )
    casts = sum(layer.cast for layer in held) if half else 0
    last_norm, ids = _norm(config.width), 8
    # Experts that are computed again need to know again which tokens are padding.
    padding = any(one and config.has_experts(layer) for layer, one in enumerate(again))
    return TrainingMemory(
        weights=_WIDE * count.total * (1 + averages),
        gradients=_WIDE * count.total,
        optimizer=_WIDE * (2 * count.total - by_muon),
        norms=tokens * (sum(layer.norms for layer in held) + last_norm + ids),
        attention=tokens * sum(layer.attention for layer in held),
        feed_forward=tokens * sum(layer.feed_forward for layer in held),
        masks=tokens * (_masks(config, length, size, dense=attention == "sdpa") + padding),
        casts=casts,
        recomputed=tokens * recomputed + (max(one.cast for one in layers) if half else 0)
        if any(again)
        else 0,
        logits=_logits(config, tokens, size, logits),
    )


@dataclass(frozen=True)
class _Layer:
    """What one block keeps: bytes of a token, and of its matrices in half precision.

    `products` are what its matrices and its attention give.
    """

    norms: int
    attention: int
    feed_forward: int
    products: int
    width: int
    cast: int

    @classmethod
    def for_layer(cls, config: ModelConfig, layer: int, size: int) -> _Layer:
        """`size` are the bytes of a number in the type of matrix products."""
        if config.latent is None:
            attention, products = _grouped(config, size)
        else:
            attention, products = _latent(config, config.latent, size)
        matrices = attention_parameters(config)
        if config.experts is not None and config.has_experts(layer):
            feed_forward, mlp_products = _mixture(config, config.experts, size)
            each = 3 * config.width * config.experts.width
            matrices += (config.experts.experts + config.experts.shared) * each
        else:
            feed_forward = _read(config.width, 2, size) + 4 * size * config.mlp_width
            mlp_products = size * (2 * config.mlp_width + config.width)
            matrices += 3 * config.width * config.mlp_width
        return cls(
            norms=2 * _norm(config.width),
            attention=attention,
            feed_forward=feed_forward,
            products=products + mlp_products,
            width=config.width,
            cast=2 * matrices,
        )

    @property
    def total(self) -> int:
        return self.norms + self.attention + self.feed_forward

    def checkpointed(self, checkpointing: Checkpointing) -> _Layer:
        """Its input alone is kept, or with it what products gave."""
        products = self.products if checkpointing == "cheap" else 0
        return _Layer(_WIDE * self.width, products, 0, products, self.width, cast=0)


def _norm(width: int, rows: int = 1) -> int:
    """Input and normalised input of an RMSNorm, and one number a row, all in float32."""
    return _WIDE * (2 * width + rows)


def _read(width: int, matrices: int, size: int) -> int:
    """An input that `matrices` multiply: itself, or a cast copy for each of them."""
    return _WIDE * width if size == _WIDE else size * width * matrices


def _grouped(config: ModelConfig, size: int) -> tuple[int, int]:
    """Bytes that grouped attention keeps of a token, and those that its products give."""
    query, keys = config.heads * config.head_width, config.kv_heads * config.head_width
    mixed = size * query + _WIDE * config.heads  # and the logarithm of each softmax's sum
    kept = _read(config.width, 3, size) + size * (query + 2 * keys) + mixed
    if config.qk_norm == "head":
        kept += _norm(query, config.heads) + _norm(keys, config.kv_heads)
    elif config.qk_norm == "width":
        kept += _norm(query) + _norm(keys)
    if config.qk_norm == "head" or config.rotary_width < config.head_width:
        kept += size * query  # Heads precede tokens in memory: mixed values are copied once more.
    return kept, mixed + size * (query + 2 * keys + config.width)


def _latent(config: ModelConfig, latent: LatentAttention, size: int) -> tuple[int, int]:
    """The same of latent attention; values are padded to the width of keys."""
    query, value = config.heads * config.head_width, config.heads * latent.value_width
    down = latent.kv_rank + latent.rotary_width
    mixed = size * query + _WIDE * config.heads
    kept = _read(config.width, 2, size) + size * (3 * query + value) + mixed
    kept += _norm(latent.kv_rank) + _read(latent.kv_rank, 1, size)
    if size == _WIDE:
        kept += _WIDE * latent.rotary_width  # The norm's input is a part of what is kept.
    up = config.heads * (latent.plain_width + latent.value_width)
    products = mixed + size * (query + down + up + config.width)
    if latent.query_rank is not None:
        kept += _norm(latent.query_rank) + _read(latent.query_rank, 1, size)
        products += size * latent.query_rank
    return kept, products


def _mixture(config: ModelConfig, experts: Experts, size: int) -> tuple[int, int]:
    """The same of router and experts: X copies of a token go to its experts and come back."""
    width, inner, chosen = config.width, experts.width, experts.chosen
    # Scores, numbers of the chosen, their order and its inverse, weights before and after scaling
    routing = _WIDE * experts.experts + chosen * (8 + 8 + 8 + size)
    if experts.normalise:
        routing += _WIDE * (1 + chosen)
    kept = _WIDE * width + routing
    kept += chosen * (_read(width, 2, size) + size * (4 * inner + width))
    products = _WIDE * experts.experts + chosen * size * (2 * inner + width)
    if experts.shared:
        shared = experts.shared * inner
        kept += 4 * size * shared
        if size != _WIDE:
            kept += _read(width, 2, size)
        products += size * (2 * shared + width)
    return kept, products


def _masks(config: ModelConfig, length: int, size: int, *, dense: bool) -> int:
    """Of a token: what is added to its scores, for each window, and cos and sin of its angles."""
    angles = 2 * _WIDE * config.rotary_width
    if not dense:
        return angles
    windows = {config.window_of(layer) for layer in range(config.layers)}
    reaches = {window if window is not None and window < length else None for window in windows}
    return len(reaches) * size * length + angles


def _logits(config: ModelConfig, tokens: int, size: int, logits: int | None) -> int:
    """Logits and their gradients, and those of states and matrix, which are formed at once."""
    logits = tokens * config.vocabulary_size if logits is None else logits
    operands = (tokens + config.vocabulary_size) * config.width
    capped = 0 if config.logit_softcap is None else 2 * _WIDE * logits
    if size == _WIDE:
        return capped + _WIDE * (logits + operands)
    return capped + (2 * size + _WIDE) * logits + (size + _WIDE) * operands
