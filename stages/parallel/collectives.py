"""Collectives that gradients flow through: gather and scatter along a dimension, sum, exchange.

Each is the other's gradient (Korthikanti et al. 2022, arXiv 2205.05198, section 4.2): what is
gathered forward is summed and scattered backward. Sums are in the type of the tensor.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function


def gather(x: Tensor, group: dist.ProcessGroup, dim: int) -> Tensor:
    """The parts of all ranks along `dim`, in their order; backward each gets the sum of its own."""
    result: Tensor = _Gather.apply(x, group, dim)  # type: ignore[no-untyped-call]
    return result


def scatter_sum(x: Tensor, group: dist.ProcessGroup, dim: int) -> Tensor:
    """This rank's part along `dim` of the sum over ranks; backward the parts are gathered."""
    result: Tensor = _ScatterSum.apply(x, group, dim)  # type: ignore[no-untyped-call]
    return result


def sum_both_ways(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """The sum over ranks, each of which goes on with other channels; so is the gradient."""
    result: Tensor = _Sum.apply(x, group)  # type: ignore[no-untyped-call]
    return result


def exchange(x: Tensor, sent: list[int], received: list[int], group: dist.ProcessGroup) -> Tensor:
    """Rows of all ranks: the first `sent[0]` go to the first rank, …; `received` come of each."""
    result: Tensor = _Exchange.apply(x, sent, received, group)  # type: ignore[no-untyped-call]
    return result


def _gathered(x: Tensor, group: dist.ProcessGroup, dim: int) -> Tensor:
    x = x.contiguous()
    parts = x.new_empty((group.size() * x.shape[0], *x.shape[1:]))
    dist.all_gather_into_tensor(parts, x, group=group)
    return parts.unflatten(0, (group.size(), -1)).movedim(0, dim).flatten(dim, dim + 1)


def _scattered(x: Tensor, group: dist.ProcessGroup, dim: int) -> Tensor:
    parts = x.unflatten(dim, (group.size(), -1)).movedim(dim, 0).contiguous()
    result = torch.empty_like(parts[0])
    dist.reduce_scatter_tensor(result, parts.flatten(0, 1), group=group)
    return result


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup, dim: int) -> Tensor:
        ctx.group, ctx.dim = group, dim
        return _gathered(x, group, dim)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _scattered(grads[0], ctx.group, ctx.dim), None, None


class _ScatterSum(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup, dim: int) -> Tensor:
        ctx.group, ctx.dim = group, dim
        return _scattered(x, group, dim)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _gathered(grads[0], ctx.group, ctx.dim), None, None


class _Sum(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        by_x = grads[0].clone()
        dist.all_reduce(by_x, group=ctx.group)
        return by_x, None


class _Exchange(Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, sent: list[int], received: list[int], group: dist.ProcessGroup
    ) -> Tensor:
        ctx.sent, ctx.received, ctx.group = sent, received, group
        return _exchanged(x, sent, received, group)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _exchanged(grads[0], ctx.received, ctx.sent, ctx.group), None, None, None


def _exchanged(x: Tensor, sent: list[int], received: list[int], group: dist.ProcessGroup) -> Tensor:
    result = x.new_empty((sum(received), *x.shape[1:]))
    dist.all_to_all_single(result, x.contiguous(), received, sent, group=group)
    return result
