"""Data parallelism in all its forms: DDP, ZeRO-1, -2 and -3 (FSDP), and hybrid sharding.

Every rank reads other rows of the batch. A parameter is cut along its first dimension into `shard`
parts, each with its part of the optimizer state, on a mesh of `data` × `shard` ranks:

forward    all parts of a block are gathered before it, and dropped after it (zero 3)
backward   gathered again; gradients are summed over `shard` ranks, each rank keeps its own part
           (with several copies, parts are summed over them in the last micro-batch)
update     each rank updates its own part

Zero 2 keeps gathered parameters from the forward to the backward pass; zero 1 keeps whole
gradients too, and sums them once a training step. With `shard: 1` nothing is cut: gradients are
all-reduced once a training step, which is DDP. All of that is one call of torch's `fully_shard`
(FSDP2: Zhao et al. 2023, arXiv 2304.11277); ZeRO is Rajbhandari et al. 2020, arXiv 1910.02054,
hybrid sharding is their section 7 on two levels.

Ranks that share the tokens of a row see different tokens, as those with different rows do:
parameters are cut into `shard` × `context` parts. What is cut over tensor or expert ranks before is
cut further here, the part of each.

The loss of a rank is already divided by the count of targets over all ranks, so gradients are
summed, not averaged. Parts and sums are float32; what is gathered of a block has the type of its
matrix products, so a part is rounded before it is sent and not after.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from stages.parallel.boxes import local, whole
from stages.parallel.layout import Layout
from stages.parallel.mesh import meshes


def spread_model(
    model: nn.Module,
    layout: Layout,
    device: torch.device,
    *,
    trained: bool = True,
    products: torch.dtype = torch.float32,
) -> None:
    """Spread `model`, which has `blocks`, over the ranks of the default process group, in place.

    Names of modules and parameters stay as they are. Each block is gathered separately, and what
    is outside of blocks (embedding, last norm, output layer) together. Experts that are cut over
    ranks are spread over the ranks that have the same ones. A model that is `trained` needs what is
    outside of blocks again right after its forward pass, and keeps it. Blocks are gathered in the
    type of their `products`; parts, and sums of gradients, are float32.
    """
    half = None if products == torch.float32 else products
    policy = MixedPrecisionPolicy(half, torch.float32, cast_forward_inputs=False)
    mesh = meshes(layout, device.type)
    drop = layout.parts > 1 and layout.zero == 3
    blocks: Any = model.blocks
    for block in blocks:
        experts = getattr(getattr(block, "mlp", None), "experts", None)
        if layout.expert > 1 and experts is not None:
            copies = mesh.experts["copies"]
            fully_shard(experts, mesh=copies, reshard_after_forward=drop, mp_policy=policy)
        if any(True for _ in block.parameters()):  # Others are on another stage of a pipeline.
            fully_shard(block, mesh=mesh.shared, reshard_after_forward=drop, mp_policy=policy)
    fully_shard(model, mesh=mesh.shared, reshard_after_forward=drop and not trained)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


def sum_gradients_once(layout: Layout) -> bool:
    """Whether gradients are summed over ranks after the last micro-batch alone."""
    return layout.parts == 1 or layout.zero == 1


def set_last_micro_batch(
    model: Any, layout: Layout, *, last: bool, layers: range | None = None
) -> None:
    """Before a backward pass: whether it is the last of the training step.

    `layers` are those that it is of, all of the model's by default. Another group of layers of a
    pipeline's stage may have more to come: its gradients are not summed yet.
    """
    blocks: Any = model.blocks
    if not isinstance(model, FSDPModule):
        return
    model.set_is_last_backward(last)
    if layout.interleave > 1 and layers is not None:
        _gather_in_order(model, layers)
    if sum_gradients_once(layout):
        model.set_requires_gradient_sync(last and layers is None)
        if last and layers is not None:
            for layer in layers:
                blocks[layer].set_requires_gradient_sync(True)
            has_root = layers.start == 0 or layers.stop == len(blocks)  # What is outside of blocks.
            model.set_requires_gradient_sync(has_root, recurse=False)
    elif layout.data > 1:
        model.set_requires_all_reduce(last)


def _gather_in_order(model: Any, layers: range) -> None:
    """Have each block gathered while the one after it is differentiated, and nothing before them.

    By itself FSDP follows the order of all forward passes, those of other groups of layers too.
    """
    order = [model]
    for layer in reversed(layers):
        order += [one for one in model.blocks[layer].modules() if isinstance(one, FSDPModule)]
    for module, following in zip(order, [*order[1:], order[-1]], strict=True):
        module.set_modules_to_backward_prefetch([following])


def drop_gathered(model: nn.Module) -> None:
    """After a forward pass that no backward pass follows: forget what was gathered for it.

    Weights may change before the next one, which would go on with the gathered ones.
    """
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def global_norm(parameters: Iterable[Tensor], group: dist.ProcessGroup | None) -> Tensor:
    """The norm of all gradients, over all ranks; those of other ranks of `group` are added.

    Each gradient counts once, however many ranks have a copy.
    """
    by_mesh: dict[Any, list[Tensor]] = defaultdict(list)
    for parameter in parameters:
        if (gradient := parameter.grad) is not None:
            by_mesh[getattr(gradient, "device_mesh", None)].append(gradient)
    norms = [whole(nn.utils.get_total_norm(gradients)) for gradients in by_mesh.values()]
    if group is None and len(norms) == 1:
        return norms[0]
    squares = torch.stack(norms).square().sum()
    if group is not None:
        dist.all_reduce(squares, group=group)
    return squares.sqrt()


def clip_by_global_norm(parameters: Iterable[Tensor], limit: float, norm: Tensor) -> None:
    """Bring gradients whose norm is `norm` down to `limit`; as `torch.nn.utils` does."""
    factor = (limit / (norm + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_([local(p.grad) for p in parameters if p.grad is not None], factor)
