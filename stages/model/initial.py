"""Initial weights: every element is a function of seed, parameter name and place in the parameter.

A parameter is drawn in blocks of rows, each from a generator of its own. A rank that holds a shard
draws the blocks that its shard touches and no others, so any parallel layout starts from the
weights of one process, bit for bit, and no rank needs room for a whole model. Seeds by rank, the
usual way, gave SmolLM3 equal weights on the ranks of a tensor-parallel group; it was restarted
after 10^12 tokens (Hugging Face, The Smol Training Playbook, 2025).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from artifacts_schema.identity import canonical_json
from stages.parallel.boxes import Box, box_of, local

_BLOCK = 1 << 16
"""Elements of a block, up to whole rows."""


@torch.no_grad()
def initialise(model: nn.Module, seed: int, init_std: float, layers: int) -> None:
    """Set all weights of `model`, a decoder of so many layers; those on the meta device are left.

    matrices, embeddings, routers     N(0, init_std²)
    attention.output, each mlp's down N(0, init_std² / (2 · layers)), so that the residual
                                      stream keeps its scale over depth (Radford et al. 2019,
                                      section 2.3)
    norms                             1
    buffers (routers' biases, counts) 0
    """
    scaled = init_std / (2 * layers) ** 0.5
    for buffer in model.buffers():
        buffer.zero_()
    for name, weight in model.named_parameters():
        if weight.is_meta:
            continue
        if weight.dim() == 1:
            local(weight).fill_(1.0)
            continue
        residual = name.removesuffix(".weight").endswith((".output", ".down"))
        std = scaled if residual else init_std
        _fill_normal(local(weight), box_of(weight), weight.shape, std, seed, name)


def _fill_normal(
    part: Tensor, box: Box, shape: Sequence[int], std: float, seed: int, name: str
) -> None:
    """Set `part`, the box of a tensor of `shape`, to its elements of N(0, std²)."""
    rows = max(1, _BLOCK // math.prod(shape[1:]))
    generator = torch.Generator()
    first, end = box.offset[0], box.offset[0] + box.shape[0]
    for number in range(first // rows, -(-end // rows)):
        begin = number * rows
        block = Box((begin, *[0] * len(shape[1:])), (min(rows, shape[0] - begin), *shape[1:]))
        common = block.overlap(box)
        if common is not None:
            generator.manual_seed(_seed(seed, name, number))
            drawn = torch.empty(block.shape).normal_(0.0, std, generator=generator)
            part[common.within(box)] = drawn[common.within(block)].to(part.device)


def _seed(seed: int, name: str, block: int) -> int:
    digest = hashlib.blake2b(canonical_json(["weights", seed, name, block]), digest_size=8)
    return int.from_bytes(digest.digest(), "little") >> 1
