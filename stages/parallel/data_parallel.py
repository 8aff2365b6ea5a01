"""Data parallelism in all its forms: DDP, ZeRO-1, -2 and -3 (FSDP), and hybrid sharding.

Every rank reads other rows of the batch. A parameter is cut along its first dimension into `shard`
parts, each with its part of the optimizer state, on a mesh of `data` × `shard` ranks:

forward    all parts of a block are gathered before it, and dropped after it (zero 3)
backward   gathered again; gradients are summed over all ranks, each rank keeps its own part
update     each rank updates its own part

Zero 2 keeps gathered parameters from the forward to the backward pass; zero 1 keeps whole
gradients too, and sums them once a training step. With `shard: 1` nothing is cut: gradients are
all-reduced once a training step, which is DDP. All of that is one call of torch's `fully_shard`
(FSDP2: Zhao et al. 2023, arXiv 2304.11277); ZeRO is Rajbhandari et al. 2020, arXiv 1910.02054,
hybrid sharding is their section 7 on two levels.

The loss of a rank is already divided by the count of targets over all ranks, so gradients are
summed, not averaged; weights and gradients are float32, so sums over ranks are too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from stages.parallel.layout import Layout


def spread_model(model: nn.Module, layout: Layout, device: torch.device) -> None:
    """Spread `model`, which has `blocks`, over the ranks of the default process group, in place.

    Names of modules and parameters stay as they are. Each block is gathered separately, and what
    is outside of blocks (embedding, last norm, output layer) together.
    """
    if layout.data > 1:
        mesh = init_device_mesh(
            device.type, (layout.data, layout.shard), mesh_dim_names=("data", "shard")
        )
    else:
        mesh = init_device_mesh(device.type, (layout.shard,), mesh_dim_names=("shard",))
    drop = layout.shard > 1 and layout.zero == 3
    blocks: Any = model.blocks
    for block in blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=drop)
    fully_shard(model, mesh=mesh, reshard_after_forward=False)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


def sum_gradients_once(layout: Layout) -> bool:
    """Whether gradients are summed over ranks after the last micro-batch alone."""
    return layout.shard == 1 or layout.zero == 1


def set_last_micro_batch(model: nn.Module, layout: Layout, *, last: bool) -> None:
    """Before a backward pass: whether it is the last of the training step."""
    if isinstance(model, FSDPModule):
        model.set_is_last_backward(last)
        if sum_gradients_once(layout):
            model.set_requires_gradient_sync(last)
