"""The tokens of a batch that have a target, and rows of a matrix at their places.

N tokens, of which M have a target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from stages.training.rows import Rows, on_device
from stages.training.token_shards import IGNORED


@dataclass(frozen=True)
class TargetTokens:
    """The tokens that have a target, found before anything is on the device.

    `index_M` are their places among all, `inverse_N` leads back: M for a token without a target.
    """

    index_M: Tensor
    inverse_N: Tensor
    targets_M: Tensor
    weights_M: Tensor | None = None

    @classmethod
    def from_rows(cls, rows: Rows, device: torch.device) -> TargetTokens:
        targets_N = rows.targets_BL.ravel()
        index_M = np.flatnonzero(targets_N != IGNORED)
        inverse_N = np.full(targets_N.size, len(index_M), dtype=np.int64)
        inverse_N[index_M] = np.arange(len(index_M))
        arrays = (index_M, inverse_N, targets_N[index_M])
        weights_M = None
        if rows.weights_BL is not None:
            weights_M = on_device(rows.weights_BL.ravel()[index_M], device)
        index, inverse, targets = (on_device(array, device) for array in arrays)
        return cls(index, inverse, targets, weights_M)

    def select(self, x_ND: Tensor) -> Tensor:
        """[M, D] The rows that have a target."""
        x_MD: Tensor = _SelectRows.apply(x_ND, self)  # type: ignore[no-untyped-call]
        return x_MD

    def spread(self, values_M: Tensor) -> Tensor:
        """[N, …] The values at their places, 0 elsewhere."""
        nothing = values_M.new_zeros((1, *values_M.shape[1:]))
        return torch.cat((values_M, nothing)).index_select(0, self.inverse_N)


class _SelectRows(Function):
    """Rows of a matrix by number; backwards it reads by number too, where autograd would add."""

    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, chosen: TargetTokens) -> Tensor:
        ctx.chosen = chosen
        return x_ND.index_select(0, chosen.index_M)

    @staticmethod
    def backward(ctx: Any, by_x_MD: Tensor) -> tuple[Tensor, None]:
        return ctx.chosen.spread(by_x_MD), None
