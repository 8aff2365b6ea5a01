"""Muon: momentum whose every update is orthogonalised (Jordan et al. 2024).

An update of a hidden matrix is replaced by the nearest matrix with equal singular values, found by
a few Newton-Schulz iterations: https://kellerjordan.github.io/posts/muon/. Matrices of one shape
are stacked, so that a whole model takes a few batched products; a stack of experts is one of
matrices already.

N matrices, R rows, C columns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from stages.training.config import MuonConfig

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the odd quintic whose iteration carries singular values fastest to the region of one."""

_EPSILON = 1e-7
_STACKED = 1 << 27
"""Elements that are orthogonalised at once: 512 MB in float32, so memory stays bounded."""


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised, with decoupled weight decay.

    Parameters are matrices, or stacks of matrices in their last two dimensions. A group's `lr` is
    scaled by shape, see `shape_scale`.
    """

    def __init__(self, groups: Iterable[Mapping[str, Any]], settings: MuonConfig) -> None:
        super().__init__([dict(group) for group in groups], {"lr": 0.0, "weight_decay": 0.0})
        self.settings = settings

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every parameter from its gradient."""
        for group in self.param_groups:
            for stack in _stacks(group["params"]):
                self._update(stack, group["lr"], group["weight_decay"])

    def _update(self, stack: list[Tensor], rate: float, weight_decay: float) -> None:
        settings, shape = self.settings, stack[0].shape[-2:]
        gradients = [parameter.grad for parameter in stack if parameter.grad is not None]
        momenta = [self._momentum(parameter) for parameter in stack]
        torch._foreach_lerp_(momenta, gradients, 1 - settings.momentum)
        ahead = (
            torch._foreach_lerp(gradients, momenta, settings.momentum)
            if settings.nesterov
            else momenta
        )
        update_NRC = orthogonalised(
            torch.cat([one.reshape(-1, *shape) for one in ahead]), settings.iterations
        ).float()
        sizes = [parameter[..., 0, 0].numel() for parameter in stack]
        updates = [
            one.view_as(parameter)
            for one, parameter in zip(update_NRC.split(sizes), stack, strict=True)
        ]
        torch._foreach_mul_(stack, 1 - rate * weight_decay)
        torch._foreach_add_(stack, updates, alpha=-rate * shape_scale(shape, settings.scale))

    def _momentum(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        return state["momentum"]


def orthogonalised(matrices_NRC: Tensor, iterations: int) -> Tensor:
    """Each matrix with its singular values brought near one (about 0.7 to 1.2), in bfloat16.

    A matrix of zeros stays one.
    """
    tall = matrices_NRC.shape[-2] > matrices_NRC.shape[-1]
    x = matrices_NRC.bfloat16()
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=_EPSILON)
    first, third, fifth = COEFFICIENTS
    for _ in range(iterations):
        gram = x @ x.mT
        odd = torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth)
        x = torch.baddbmm(x, odd, x, beta=first)
    return x.mT if tall else x


def shape_scale(shape: torch.Size | tuple[int, int], scale: str) -> float:
    """What the learning rate of a matrix with these (rows, columns) is multiplied by.

    `match_rms`: 0.2 √max(rows, columns), so that the root mean square of an update is that of
    AdamW (Liu et al. 2025, Moonlight, arXiv 2502.16982, section 2.2). `spectral`:
    √max(1, rows / columns), as in Jordan's own code.
    """
    rows, columns = shape
    if scale == "match_rms":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1.0, rows / columns))


def _stacks(parameters: list[Tensor]) -> Iterator[list[Tensor]]:
    """Parameters whose matrices are alike, in stacks of bounded size."""
    alike: dict[tuple[int, ...], list[Tensor]] = defaultdict(list)
    for parameter in parameters:
        alike[tuple(parameter.shape[-2:])].append(parameter)
    for same in alike.values():
        stack: list[Tensor] = []
        for parameter in same:
            if stack and sum(p.numel() for p in (*stack, parameter)) > _STACKED:
                yield stack
                stack = []
            stack.append(parameter)
        yield stack
