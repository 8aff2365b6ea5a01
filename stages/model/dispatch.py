"""Tokens to their experts and back: copies in the order of experts, deterministic both ways.

Indexing with repeated rows is summed in the backward pass in an order that CUDA does not fix; here
both directions only gather, and copies of one token are summed along a dimension of their own.

Shapes: N tokens, D width, X chosen experts of a token, S = N · X pairs of token and expert.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def dispatch(x_ND: Tensor, order_S: Tensor, place_S: Tensor, *, copies: int) -> Tensor:
    """Row s is the token of pair `order_S[s]`; pair p is copy p % copies of token p // copies.

    `place_S` is the inverse of `order_S`.
    """
    return _Dispatch.apply(x_ND, order_S, place_S, copies)


def collect(y_SD: Tensor, order_S: Tensor, place_S: Tensor) -> Tensor:
    """The rows back in the order of pairs."""
    return _Collect.apply(y_SD, order_S, place_S)


class _Dispatch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, order_S: Tensor, place_S: Tensor, copies: int) -> Tensor:
        ctx.save_for_backward(place_S)
        ctx.copies = copies
        return x_ND[order_S // copies]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (place_S,) = ctx.saved_tensors
        return grads[0][place_S].unflatten(0, (-1, ctx.copies)).sum(dim=1), None, None, None


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y_SD: Tensor, order_S: Tensor, place_S: Tensor) -> Tensor:
        ctx.save_for_backward(order_S)
        return y_SD[place_S]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (order_S,) = ctx.saved_tensors
        return grads[0][order_S], None, None
