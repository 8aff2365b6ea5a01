"""Memory of a training step on one rank of a layout: what is held, kept and computed again.

Activations are what autograd keeps between forward and backward pass when each operation runs by
itself (eager), with the reference attention: tests compare them with what torch really holds.
Compiled blocks, and the fused kernels of a GPU, keep a little less. What a single operation
needs while it runs, and what an allocator wastes, is not counted.

Over ranks, norms and the residual stream are divided by tensor ranks (sequence parallelism), heads
and inner channels too, tokens by context ranks; but the gathered input of attention and of the
feed-forward layer is whole on each tensor rank (Korthikanti et al. 2022, arXiv 2205.05198, section
4.2.2, table 2), and so are keys and values on each context rank. A stage of a pipeline keeps all of
that for each micro-batch that is under way (Narayanan et al. 2021a, arXiv 2006.09503, section 2.2).
Experts are taken to get equally many tokens.

Per token: D width, H query heads, K key and value heads, C channels of a head, F inner channels
of a SwiGLU, X experts of a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Literal, NamedTuple

from stages.model.config import Experts, LatentAttention, ModelConfig
from stages.model.size import attention_parameters
from stages.parallel.layout import ONE_PROCESS, Layout
from stages.parallel.pipeline_parallel import schedule, stage_layers
from stages.parallel.rank_parameters import GatheredGroup, rank_groups, rank_parameters

Checkpointing = Literal["none", "full", "cheap"]

_WIDE = 4
"""Bytes of a float32."""


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of one training step with `rows` sequences at once.

    `gathered` are parameters that are whole while they compute, and their gradients until they are
    summed over ranks. Between forward and backward pass are kept: `norms` their inputs; `attention`
    queries, keys, values and what they gave; `feed_forward` what is inside SwiGLUs and experts;
    `masks` the mask and the rotary angles, once for all layers; `casts` matrices in half precision.
    `recomputed` is what one checkpointed block holds while its backward pass runs. `logits` are
    those in memory at once, and the gradients that are formed of them.
    """

    weights: int
    gradients: int
    optimizer: int
    gathered: int
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
    def state(self) -> int:
        """What is held from one training step to the next, and the gradients."""
        return self.weights + self.gradients + self.optimizer

    @property
    def total(self) -> int:
        """All of it at the height of the step."""
        return self.state + self.gathered + self.activations + self.logits


def training_memory(
    config: ModelConfig,
    *,
    rows: int,
    length: int,
    precision: Literal["fp32", "bf16", "fp16", "fp8"] = "bf16",
    checkpointing: Checkpointing = "none",
    checkpointing_every: int = 1,
    optimizer: Literal["adamw", "muon"] = "adamw",
    averages: int = 0,
    logits: int | None = None,
    attention: str = "sdpa",
    layout: Layout = ONE_PROCESS,
    rank: int = 0,
    micro_batches: int | None = None,
) -> TrainingMemory:
    """Memory of a step of which a rank has `rows` sequences of `length` tokens at once, packed.

    `logits` are those in memory at once, all by default; `averages` further copies of the weights;
    `attention` is the backend, of which only `sdpa` has a mask as large as all scores of a head.
    A step has so many `micro_batches`; as many as fill the pipeline by default. AdamW keeps two
    float32 numbers a parameter and one a tensor, Muon one for each of a block's matrices.
    """
    groups = rank_groups(config, layout, rank)
    held = rank_parameters(groups)
    by_adamw = [one for one in held if not (optimizer == "muon" and one.by_muon)]
    local = sum(one.local for one in held)
    size = 2 if precision != "fp32" else _WIDE
    gradients, gathered = _gathered(layout, groups, size)
    stage = rank // (layout.world // layout.pipeline)
    step = _Step(
        config,
        _Cut(size, layout.tensor, layout.context, layout.expert),
        rows * length // layout.context,
        length,
        dense_mask=attention == "sdpa",
        casts=size != _WIDE and layout.world == 1,
        checkpointing=checkpointing,
        every=checkpointing_every,
    )
    kept = step.kept_by(layout, stage, micro_batches)
    has_output = stage == layout.pipeline - 1
    return TrainingMemory(
        weights=_WIDE * (sum(one.padded for one in held) + averages * local),
        gradients=gradients,
        optimizer=_WIDE * (local + sum(one.local + 1 for one in by_adamw)),
        gathered=gathered,
        norms=kept.norms,
        attention=kept.attention,
        feed_forward=kept.feed_forward,
        masks=kept.masks,
        casts=kept.casts,
        recomputed=step.recomputed_by(layout, stage),
        logits=_logits(config, step.tokens, step.cut, logits) if has_output else 0,
    )


def _gathered(layout: Layout, groups: Sequence[GatheredGroup], size: int) -> tuple[int, int]:
    """Bytes of gradients, and of what is whole for a while: parameters, gradients to be summed.

    Torch's FSDP copies parameters even where there is nothing to gather. Blocks that are dropped
    after use: that in use and that which is gathered ahead. Gradients of the root group (embedding,
    output layer) wait for the end of the backward pass; those of a block are copied to be sent.
    Parameters of blocks have `size` bytes, and so have their gradients before that copy.
    """
    local = sum(group.local_bytes for group in groups)
    if layout.world == 1:
        return local, 0
    whole = sum(group.bytes for group in groups)
    root = sum(group.bytes for group in groups if group.is_root)
    block = max((group.bytes for group in groups if not group.is_root), default=0)
    half = block * size // _WIDE
    drops = layout.parts > 1 and layout.zero == 3
    parameters = root + 2 * half if drops else sum(group.gathered_bytes(size) for group in groups)
    if layout.parts == 1 or layout.zero == 1:
        return whole, parameters + max(root, block)
    return local, parameters + max(root + block + half, 2 * root)


class _Cut(NamedTuple):
    """What divides the numbers of a layer, and the bytes of a number in matrix products."""

    size: int
    tensor: int = 1
    context: int = 1
    expert: int = 1


@dataclass(frozen=True)
class _Kept:
    """Bytes between forward and backward pass, as `TrainingMemory` has them."""

    norms: int = 0
    attention: int = 0
    feed_forward: int = 0
    masks: int = 0
    casts: int = 0

    @property
    def total(self) -> int:
        return self.norms + self.attention + self.feed_forward + self.masks + self.casts

    def __add__(self, other: _Kept) -> _Kept:
        return _Kept(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class _Step:
    """What a rank computes at once: `tokens` of its own, of rows of `length`."""

    config: ModelConfig
    cut: _Cut
    tokens: int
    length: int
    dense_mask: bool
    casts: bool
    """Whether matrices are cast; those of several ranks are gathered in the type of products."""
    checkpointing: Checkpointing
    every: int

    def kept_by(self, layout: Layout, stage: int, micro_batches: int | None) -> _Kept:
        """What a stage keeps of all micro-batches that are under way, at the most."""
        groups = [self.kept(layers) for layers in stage_layers(self.config.layers, layout, stage)]
        if layout.pipeline == 1:
            return sum(groups, _Kept())
        under_way = most = _Kept()
        micro_batches = micro_batches or 2 * layout.pipeline
        for unit in schedule(stage, layout.pipeline, micro_batches, len(groups)):
            if unit.forward:
                under_way += groups[unit.group]
                most = max(most, under_way, key=lambda one: one.total)
            else:
                done = groups[unit.group]
                under_way += _Kept(*(-number for number in astuple(done)))
        return most

    def recomputed_by(self, layout: Layout, stage: int) -> int:
        """What a checkpointed block holds besides while its backward pass runs."""
        layers = [
            layer for group in stage_layers(self.config.layers, layout, stage) for layer in group
        ]
        if not any(self._again(layer) for layer in layers):
            return 0
        both = [(self._layer(layer), self._held(layer)) for layer in layers]
        casts = max(whole.cast for whole, _ in both) if self.casts else 0
        return casts + max(whole.bytes(self) - held.bytes(self) for whole, held in both)

    def kept(self, layers: range) -> _Kept:
        """What one micro-batch keeps of these layers, and of what comes before and after them."""
        config, cut, tokens = self.config, self.cut, self.tokens
        held = [self._held(layer) for layer in layers]
        norms = sum(layer.norms for layer in held) * tokens // cut.tensor
        if layers.start == 0:  # Numbers of the tokens; which of them this rank has.
            norms += tokens * (8 + (cut.tensor > 1))
        last = _norm(config.width) if layers.stop == config.layers else _WIDE * config.width
        # Experts that are computed again need to know again which tokens are padding.
        padding = any(self._again(layer) and config.has_experts(layer) for layer in layers)
        masks = _masks(config, layers, self.length, cut.size, dense=self.dense_mask)
        return _Kept(
            norms=norms + last * tokens // cut.tensor,
            attention=tokens * sum(layer.attention for layer in held),
            feed_forward=tokens * sum(layer.feed_forward for layer in held),
            masks=tokens * (masks + padding),
            casts=sum(layer.cast for layer in held) if self.casts else 0,
        )

    def _again(self, layer: int) -> bool:
        return self.checkpointing != "none" and layer % self.every == 0

    def _layer(self, layer: int) -> _Layer:
        return _Layer.for_layer(self.config, layer, self.cut)

    def _held(self, layer: int) -> _Layer:
        whole = self._layer(layer)
        return whole.checkpointed(self.checkpointing) if self._again(layer) else whole


@dataclass(frozen=True)
class _Layer:
    """What one block keeps: bytes of a token, and of its matrices in half precision.

    `norms` are divided by tensor ranks, which the numbers of the rest are already. `products` are
    what its matrices and its attention give.
    """

    norms: int
    attention: int
    feed_forward: int
    products: int
    width: int
    cast: int

    @classmethod
    def for_layer(cls, config: ModelConfig, layer: int, cut: _Cut) -> _Layer:
        """One layer as a rank computes it."""
        if config.latent is None:
            attention, products = _grouped(config, cut)
        else:
            attention, products = _latent(config, config.latent, cut)
        matrices = attention_parameters(config, cut.tensor)
        if config.experts is not None and config.has_experts(layer):
            experts = config.experts
            feed_forward, mlp_products = _mixture(config, experts, cut)
            each = 3 * config.width * experts.width // cut.tensor
            matrices += (experts.experts // cut.expert + experts.shared) * each
        else:
            inner = config.mlp_width // cut.tensor
            feed_forward = _read(config.width, 2, cut) + 4 * cut.size * inner
            mlp_products = cut.size * (2 * inner + config.width)
            matrices += 3 * config.width * inner
        return cls(
            norms=2 * _norm(config.width),
            attention=attention,
            feed_forward=feed_forward,
            products=products + mlp_products,
            width=config.width,
            cast=2 * matrices,
        )

    def bytes(self, step: _Step) -> int:
        """Of all tokens of a step, without casts."""
        by_token = self.attention + self.feed_forward
        return step.tokens * by_token + step.tokens * self.norms // step.cut.tensor

    def checkpointed(self, checkpointing: Checkpointing) -> _Layer:
        """Its input alone is kept, or with it what products gave."""
        products = self.products if checkpointing == "cheap" else 0
        return _Layer(_WIDE * self.width, products, 0, products, self.width, cast=0)


def _norm(width: int, rows: int = 1) -> int:
    """Input and normalised input of an RMSNorm, and one number a row, all in float32."""
    return _WIDE * (2 * width + rows)


def _read(width: int, matrices: int, cut: _Cut) -> int:
    """An input that `matrices` multiply: itself, or a cast copy for each of them.

    What is gathered from tensor ranks has the type of the products already.
    """
    copies = 1 if cut.size == _WIDE or cut.tensor > 1 else matrices
    return cut.size * width * copies


def _grouped(config: ModelConfig, cut: _Cut) -> tuple[int, int]:
    """Bytes that grouped attention keeps of a token, and those that its products give."""
    size, heads, kv_heads = cut.size, config.heads // cut.tensor, config.kv_heads // cut.tensor
    query, keys = heads * config.head_width, kv_heads * config.head_width
    mixed = size * query + _WIDE * heads  # and the logarithm of each softmax's sum
    kept = _read(config.width, 3, cut) + size * (query + 2 * keys * cut.context) + mixed
    if config.qk_norm == "head":
        kept += _norm(query, heads) + _norm(keys, kv_heads)
    elif config.qk_norm == "width":
        kept += _norm(query) + _norm(keys)
    if config.qk_norm == "head" or config.rotary_width < config.head_width:
        kept += size * query  # Heads precede tokens in memory: mixed values are copied once more.
    return kept, mixed + size * (query + 2 * keys + config.width)


def _latent(config: ModelConfig, latent: LatentAttention, cut: _Cut) -> tuple[int, int]:
    """The same of latent attention; values are padded to the width of keys."""
    size, heads = cut.size, config.heads // cut.tensor
    query, value = heads * config.head_width, heads * latent.value_width
    down = latent.kv_rank + latent.rotary_width
    mixed = size * query + _WIDE * heads
    kept = _read(config.width, 2, cut) + size * (query + 2 * query * cut.context + value) + mixed
    kept += _norm(latent.kv_rank) + size * latent.kv_rank
    if size == _WIDE:
        kept += _WIDE * latent.rotary_width  # The norm's input is a part of what is kept.
    up = heads * (latent.plain_width + latent.value_width)
    products = mixed + size * (query + down + up + config.width)
    if latent.query_rank is not None:
        kept += _norm(latent.query_rank) + size * latent.query_rank
        products += size * latent.query_rank
    return kept, products


def _mixture(config: ModelConfig, experts: Experts, cut: _Cut) -> tuple[int, int]:
    """The same of router and experts: X copies of a token go to its experts and come back."""
    size, width, chosen = cut.size, config.width, experts.chosen
    inner = experts.width // cut.tensor
    # Scores, numbers of the chosen, their order and its inverse, weights before and after scaling
    routing = _WIDE * experts.experts + chosen * (8 + 8 + 8 + size)
    if experts.normalise:
        routing += _WIDE * (1 + chosen)
    kept = _WIDE * width + routing
    one = cut._replace(tensor=1)
    kept += chosen * (_read(width, 2, one) + size * (4 * inner + width))
    products = _WIDE * experts.experts + chosen * size * (2 * inner + width)
    if experts.shared:
        shared = experts.shared * inner
        kept += 4 * size * shared
        if size != _WIDE:
            kept += _read(width, 2, cut)
        products += size * (2 * shared + width)
    return kept, products


def _masks(config: ModelConfig, layers: range, length: int, size: int, *, dense: bool) -> int:
    """Of a token: what is added to its scores, for each window, and cos and sin of its angles."""
    angles = 2 * _WIDE * config.rotary_width
    if not dense:
        return angles
    windows = {config.window_of(layer) for layer in layers}
    reaches = {window if window is not None and window < length else None for window in windows}
    return len(reaches) * size * length + angles


def _logits(config: ModelConfig, tokens: int, cut: _Cut, logits: int | None) -> int:
    """Logits and their gradients, and those of states and matrix, which are formed at once."""
    vocabulary = config.vocabulary_size // cut.tensor
    most = tokens * vocabulary
    logits = most if logits is None else min(logits, most)
    operands = (tokens + vocabulary) * config.width
    capped = 0 if config.logit_softcap is None else 2 * _WIDE * logits
    if cut.size == _WIDE:
        return capped + _WIDE * (logits + operands)
    return capped + (2 * cut.size + _WIDE) * logits + (cut.size + _WIDE) * operands
