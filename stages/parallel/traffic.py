"""What a rank sends in a training step, by kind of collective: arithmetic from the layout.

Of S bytes over N ranks a ring sends (N - 1) / N · S for what is gathered, or summed and scattered,
and twice that for what is summed on all (Patarasuk & Yuan 2009, doi 10.1016/j.jpdc.2008.09.002,
section 3); a message is its size. Per micro-batch, forward and backward pass together:

    parts      a block's parameters are gathered twice (zero 3) or once, its gradients scattered
               once: 3 or 2 times the model (Rajbhandari et al. 2020, arXiv 1910.02054, section 7).
               Zero 1 scatters once a training step. The root group is gathered once. Blocks are
               gathered in the type of matrix products, gradients scattered in float32.
    data       the gradients of a part, summed once a training step
    tensor     states [tokens, D]: two gathered and two scattered in each layer and pass
               (Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2); gradients of what is not
               cut, summed; of each token's logits three numbers
    context    keys and values of all tokens, gathered; their gradients scattered
    expert     states to the experts and back, in each pass (Lepikhin et al. 2021, arXiv 2006.16668,
               section 3.2); equally many tokens go to each expert
    pipeline   states to the next stage, gradients to the one before (Narayanan et al. 2021b, arXiv
               2104.04473, section 3.2), in float32

What a checkpointed block computes again it sends again, up to the sum after its last matrix. Not
counted: gradient norms and losses, a few numbers a training step.

What stays gathered (zero 1 and 2, and the root group, which every pass gathers) is dropped after
each backward pass, also those of other groups of layers of an interleaved pipeline's stage, and
gathered again by the next pass that needs it: that is counted along the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Literal

from stages.model.config import Experts, ModelConfig
from stages.model.memory import Checkpointing
from stages.parallel.layout import Layout
from stages.parallel.pipeline_parallel import Unit, schedule, stage_layers
from stages.parallel.rank_parameters import WIDE, GatheredGroup, rank_groups
from stages.parallel.ranks import Ranks


@dataclass(frozen=True)
class Traffic:
    """Bytes that a rank sends, by kind of collective."""

    all_gather: int = 0
    reduce_scatter: int = 0
    all_reduce: int = 0
    all_to_all: int = 0
    send: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(astuple(self))

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, times: int) -> Traffic:
        return Traffic(*(times * one for one in astuple(self)))


def training_traffic(
    config: ModelConfig,
    layout: Layout,
    rank: int,
    *,
    rows: int,
    length: int,
    micro_batches: int = 1,
    precision: Literal["fp32", "bf16", "fp16", "fp8"] = "bf16",
    checkpointing: Checkpointing = "none",
    checkpointing_every: int = 1,
) -> Traffic:
    """What a rank sends in a training step of `micro_batches`, each of `rows` rows of `length`.

    Every token has a target, and all logits of a micro-batch are one chunk.
    """
    ranks = Ranks(rank, layout.world, layout=layout)
    stage = ranks.stage
    size = WIDE if precision == "fp32" else 2
    total = Traffic()
    for layers in stage_layers(config.layers, layout, stage):
        again = [checkpointing != "none" and layer % checkpointing_every == 0 for layer in layers]
        passes = _Pass(config, layout, rows * length // layout.context, size)
        total += passes.layers(layers, sum(again), rows * length) * micro_batches
    for group in rank_groups(config, layout, rank):
        total += _of_group(config, ranks, group, micro_batches, size)
    tied = layout.pipeline > 1 and config.tied_embeddings and stage in (0, layout.pipeline - 1)
    if tied:
        part = config.vocabulary_size // layout.tensor
        total += Traffic(send=-(-part // layout.parts) * config.width * WIDE)
    return total


def _of_group(
    config: ModelConfig, ranks: Ranks, group: GatheredGroup, micro_batches: int, size: int
) -> Traffic:
    """Parameters and gradients of what is gathered together, in a training step."""
    layout = ranks.layout
    gathered = _ring(group.gathered_bytes(size), group.parts)
    is_expert = layout.expert > 1 and ".mlp.experts." in group.parameters[0].name
    once = layout.parts == 1 or layout.zero == 1
    drops = layout.parts > 1 and layout.zero == 3 and not group.is_root
    sums = 1 if once else micro_batches
    replicated = [one.gathered for one in group.parameters if one.replicated]
    wide = WIDE if group.is_root or (once and micro_batches > 1) else size
    by_tensor = sum(_ring(wide * one, layout.tensor, 2) for one in replicated)
    copies = 1 if is_expert else layout.data
    units = schedule(ranks.stage, layout.pipeline, micro_batches, layout.interleave)
    number = None
    if not group.is_root:
        layer = int(group.parameters[0].name.split(".")[1])
        held = stage_layers(config.layers, layout, ranks.stage)
        number = next(number for number, layers in enumerate(held) if layer in layers)
    return Traffic(
        all_gather=gathered * (2 * micro_batches if drops else _kept_gathers(units, number)),
        reduce_scatter=_ring(group.bytes, group.parts) * sums,
        all_reduce=_ring(group.local_bytes, copies, 2) + by_tensor * sums,
    )


def _kept_gathers(units: Sequence[Unit], group: int | None) -> int:
    """How often something is gathered that only backward passes drop, those of any layers.

    `group` is the group of layers whose passes need it; None: all do.
    """
    count, is_whole = 0, False
    for unit in units:
        needed = group is None or unit.group == group
        count, is_whole = count + (needed and not is_whole), is_whole or needed
        is_whole = is_whole and unit.forward
    return count


def _ring(size: int, ranks: int, rounds: int = 1) -> int:
    """Bytes that each of `ranks` sends where `size` go round a ring, once or twice."""
    return rounds * (ranks - 1) * size // ranks


@dataclass(frozen=True)
class _Pass:
    """Forward and backward pass of a micro-batch with `tokens` on this rank.

    `size` are the bytes of a number in matrix products.
    """

    config: ModelConfig
    layout: Layout
    tokens: int
    size: int

    def layers(self, layers: range, again: int, row_tokens: int) -> Traffic:
        """Of consecutive layers, `again` of which are computed twice, and what is around them."""
        config, layout = self.config, self.layout
        total = self._layer() * len(layers) + self._computed_again() * again
        windows = {config.window_of(layer) for layer in layers}
        documents = _ring(8 * row_tokens, layout.context) * len(windows)
        total += Traffic(all_gather=documents)
        if config.experts is not None:
            routed = sum(config.has_experts(layer) for layer in layers)
            total += self._experts(config.experts) * routed
        wide = _ring(WIDE * self.tokens * config.width, layout.tensor)
        boundary = WIDE * self.tokens * config.width // layout.tensor
        if layers.start == 0:
            total += Traffic(all_gather=wide, reduce_scatter=wide)
        else:
            total += Traffic(send=boundary)
        if layers.stop < config.layers:
            return total + Traffic(send=boundary)
        logits = _ring(WIDE * self.tokens, layout.tensor, 2) * 3
        return total + Traffic(self._states, self._states, logits)

    @property
    def _states(self) -> int:
        """States of all tokens, gathered from tensor ranks or scattered to them."""
        return _ring(self.size * self.tokens * self.config.width, self.layout.tensor)

    @property
    def _keys(self) -> int:
        """Keys and values of all tokens of the rows, gathered from context ranks."""
        config, layout = self.config, self.layout
        heads = config.heads if config.latent is not None else config.kv_heads
        channels = 2 * heads // layout.tensor * config.head_width
        return _ring(self.size * self.tokens * layout.context * channels, layout.context)

    @property
    def _norms(self) -> int:
        """Sums of squares of queries and keys over all heads, in one direction."""
        if self.config.qk_norm != "width" or self.config.latent is not None:
            return 0
        return 2 * _ring(WIDE * self.tokens, self.layout.tensor, 2)

    def _layer(self) -> Traffic:
        """One layer: the backward pass gathers what the forward pass scattered, and so on."""
        states, keys = 4 * self._states, self._keys
        return Traffic(states + keys, states + keys, 2 * self._norms)

    def _computed_again(self) -> Traffic:
        """One layer's forward pass in the backward pass, without the sum after its last matrix."""
        states = self._states
        return Traffic(2 * states + self._keys, states, self._norms)

    def _experts(self, experts: Experts) -> Traffic:
        """One layer's experts: how many rows come, then the rows there and back, both ways."""
        ranks, pairs = self.layout.expert, self.tokens * experts.chosen
        counts = _ring(8 * experts.experts, ranks)
        rows = _ring(self.size * pairs * self.config.width, ranks)
        return Traffic(all_to_all=counts + 4 * rows)
