"""The parameters that a rank of a layout holds, by arithmetic: no process group, no memory.

A parameter is cut in the order in which `spread.cut_model` and `data_parallel.spread_model` do it:

    pipeline   only the layers of the rank's stage
    expert     whole experts, along the first dimension
    tensor     along the dimension that `tensor_parallel.cut_dimension` names
    parts      along the first dimension, like `torch.chunk`: all parts but the last ones have
               ceil(rows / parts) rows; experts are cut over their `copies` instead

What is left before the last cut is what a rank computes with, and gathers for that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from stages.model.config import ModelConfig
from stages.parallel.layout import Layout
from stages.parallel.pipeline_parallel import stage_layers
from stages.parallel.ranks import Ranks
from stages.parallel.tensor_parallel import cut_dimension

WIDE = 4
"""Bytes of a float32: weights, gradients and optimizer state."""


@dataclass(frozen=True)
class RankParameter:
    """One parameter on one rank.

    `shape` is what the rank computes with, `parts` how many parts of that are on different ranks,
    `place` which of them this rank has. `replicated` says that all tensor ranks have the same one.
    """

    name: str
    shape: tuple[int, ...]
    parts: int
    place: int
    replicated: bool

    @property
    def gathered(self) -> int:
        """Elements that the rank computes with."""
        return math.prod(self.shape)

    @property
    def padded(self) -> int:
        """Elements of a part in memory and in messages: all parts are as large as the first."""
        return -(-self.shape[0] // self.parts) * math.prod(self.shape[1:])

    @property
    def local(self) -> int:
        """Elements of this rank's part."""
        rows = -(-self.shape[0] // self.parts)
        own = min(rows, max(0, self.shape[0] - self.place * rows))
        return own * math.prod(self.shape[1:])

    @property
    def by_muon(self) -> bool:
        """Whether Muon updates it where it is asked for: a matrix of a block."""
        return len(self.shape) > 1 and self.name.startswith("blocks.")


@dataclass(frozen=True)
class GatheredGroup:
    """Parameters that are gathered together, and whose gradients are summed together."""

    parameters: tuple[RankParameter, ...]
    is_root: bool
    """Whether it is what is outside of blocks, which stays gathered until the backward pass."""

    @property
    def parts(self) -> int:
        """Ranks that share the group."""
        return self.parameters[0].parts

    @property
    def local_bytes(self) -> int:
        """Of one part, padded: what a rank gives to be gathered."""
        return WIDE * sum(one.padded for one in self.parameters)

    @property
    def bytes(self) -> int:
        """Of all parts, padded, in float32: what gradients are summed in."""
        return self.parts * self.local_bytes

    def gathered_bytes(self, size: int) -> int:
        """Of what is gathered, where a number in matrix products has `size` bytes.

        Blocks are gathered in that type, what is outside of them in float32.
        """
        return self.bytes if self.is_root else self.bytes * size // WIDE


def rank_groups(config: ModelConfig, layout: Layout, rank: int) -> list[GatheredGroup]:
    """What the rank holds, by group in the order of the layers; the root group is the last."""
    ranks = Ranks(rank, layout.world, layout=layout)
    held = {layer for group in stage_layers(config.layers, layout, ranks.stage) for layer in group}
    last = ranks.stage == layout.pipeline - 1
    groups: dict[str, list[RankParameter]] = {}
    for name, shape in parameter_shapes(config).items():
        block, is_expert = "", False
        if name.startswith("blocks."):
            block = name.split(".")[1]
            is_expert = layout.expert > 1 and ".mlp.experts." in name
            is_here = int(block) in held
        elif name.startswith("embedding."):
            is_here = ranks.stage == 0 or (last and config.tied_embeddings)
        else:
            is_here = last
        if is_here:
            key = f"{block} experts" if is_expert else block
            groups.setdefault(key, []).append(_cut(name, shape, config, ranks, is_expert=is_expert))
    root = groups.pop("", [])
    results = [GatheredGroup(tuple(group), is_root=False) for group in groups.values()]
    return results + ([GatheredGroup(tuple(root), is_root=True)] if root else [])


def rank_parameters(groups: Iterable[GatheredGroup]) -> list[RankParameter]:
    """All parameters of the groups."""
    return [parameter for group in groups for parameter in group.parameters]


def _cut(
    name: str, shape: tuple[int, ...], config: ModelConfig, ranks: Ranks, *, is_expert: bool
) -> RankParameter:
    layout, sizes = ranks.layout, list(shape)
    if is_expert:
        sizes[0] //= layout.expert
    dim = cut_dimension(name, config)
    if dim is not None:
        sizes[dim] //= layout.tensor
    parts, place = layout.parts, ranks.rank // layout.tensor % layout.parts
    if is_expert:
        parts = layout.rows * layout.context // layout.expert
        place = ranks.rank // (layout.tensor * layout.expert) % parts
    return RankParameter(name, tuple(sizes), parts, place, replicated=dim is None)


@lru_cache(maxsize=8)
def parameter_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The parameters of a whole `Decoder(config)`, a tied matrix once; none gets memory."""
    import torch

    from stages.model.decoder import Decoder

    with torch.device("meta"):
        return {name: tuple(one.shape) for name, one in Decoder(config).named_parameters()}
