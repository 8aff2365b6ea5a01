"""From rows to losses: a forward pass, then the output layer on the tokens that have a target.

B rows, L tokens, N = B · L, M of them with a target; D width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function

from stages.training.config import Precision
from stages.training.linear_cross_entropy import (
    Differentiated,
    OutputLayer,
    differentiated,
    linear_cross_entropy,
    mean_cross_entropy,
)
from stages.training.on_device import on_device
from stages.training.pieces import IGNORED
from stages.training.precision import autocast
from stages.training.rows import Rows


@dataclass(frozen=True)
class Arithmetic:
    """Where a model computes, and in which precision.

    `logits` says how many of them may be in memory at once (None: what suits the device);
    `compiled`, that torch.compile fuses softmax, loss and gradient of a chunk of them.
    """

    device: torch.device
    precision: Precision
    logits: int | None = None
    compiled: bool = False


@dataclass(frozen=True)
class TrainedRows:
    """What `train_on_rows` gives; `loss` alone can be differentiated, once.

    `loss` is `cross_entropy` and `z_loss` together, each a sum over tokens that is divided by the
    step's count of targets; `losses_BL` are the cross-entropies of the tokens.
    """

    loss: Tensor
    losses_BL: Tensor
    cross_entropy: Tensor
    z_loss: Tensor


def losses_of_rows(model: nn.Module, rows: Rows, how: Arithmetic) -> Tensor:
    """Token losses, `[B, L]` float32 on the device, 0 without a target; differentiable."""
    chosen = _Chosen.of(rows, how.device)
    x_ND, layer = _forward(model, rows, how)
    losses_M = linear_cross_entropy(chosen.select(x_ND), layer, chosen.targets_M)
    return chosen.spread(losses_M).view(rows.targets_BL.shape)


def train_on_rows(
    model: nn.Module, rows: Rows, how: Arithmetic, *, targets: int, z_loss: float = 0.0
) -> TrainedRows:
    """What these rows contribute to a step that learns `targets` tokens over all micro-batches."""
    chosen = _Chosen.of(rows, how.device)
    x_ND, layer = _forward(model, rows, how)
    divisor = max(targets, 1)
    found = mean_cross_entropy(
        chosen.select(x_ND), layer, chosen.targets_M, divisor=divisor, z_loss=z_loss
    )
    return TrainedRows(
        found.loss,
        chosen.spread(found.losses_M).view(rows.targets_BL.shape),
        found.losses_M.sum() / divisor,
        z_loss * found.log_z_M.square().sum() / divisor,
    )


def _forward(model: Any, rows: Rows, how: Arithmetic) -> tuple[Tensor, OutputLayer]:
    """[N, D] The states of a `stages.model.decoder.Decoder`, and its output layer."""
    given = {"documents_BL": rows.documents_BL, "prefix_BL": rows.prefix_BL}
    tensors = {n: on_device(a, how.device) for n, a in given.items() if a is not None}
    with autocast(how.device, how.precision):
        x_BLD = model.hidden(on_device(rows.tokens_BL, how.device), **tensors)
        reduced = torch.is_autocast_enabled(how.device.type)
        dtype = torch.get_autocast_dtype(how.device.type) if reduced else x_BLD.dtype
    matrix = model.embedding if model.head is None else model.head
    layer = OutputLayer(
        matrix.weight,
        dtype,
        softcap=model.config.logit_softcap,
        logits=how.logits,
        differentiated=_compiled() if how.compiled else differentiated,
        filled=rows.targets_BL.size if how.compiled else None,
    )
    return x_BLD.flatten(0, 1), layer


@cache
def _compiled() -> Differentiated:
    """One piece of code a shape: with a dynamic one its bits would depend on the first it saw."""
    return torch.compile(differentiated, dynamic=False, fullgraph=True)


@dataclass(frozen=True)
class _Chosen:
    """The tokens that have a target, found before anything is on the device.

    `index_M` are their places among all, `inverse_N` leads back: M for a token without a target.
    """

    index_M: Tensor
    inverse_N: Tensor
    targets_M: Tensor

    @classmethod
    def of(cls, rows: Rows, device: torch.device) -> _Chosen:
        targets_N = rows.targets_BL.ravel()
        index_M = np.flatnonzero(targets_N != IGNORED)
        inverse_N = np.full(targets_N.size, len(index_M), dtype=np.int64)
        inverse_N[index_M] = np.arange(len(index_M))
        arrays = (index_M, inverse_N, targets_N[index_M])
        return cls(*(on_device(array, device) for array in arrays))

    def select(self, x_ND: Tensor) -> Tensor:
        """[M, D] The rows that have a target."""
        x_MD: Tensor = _Selected.apply(x_ND, self)  # type: ignore[no-untyped-call]
        return x_MD

    def spread(self, values_M: Tensor) -> Tensor:
        """[N, …] The values at their places, 0 elsewhere."""
        nothing = values_M.new_zeros((1, *values_M.shape[1:]))
        return torch.cat((values_M, nothing)).index_select(0, self.inverse_N)


class _Selected(Function):
    """Rows of a matrix by number; backwards it reads by number too, where autograd would add."""

    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, chosen: _Chosen) -> Tensor:
        ctx.chosen = chosen
        return x_ND.index_select(0, chosen.index_M)

    @staticmethod
    def backward(ctx: Any, by_x_MD: Tensor) -> tuple[Tensor, None]:
        return ctx.chosen.spread(by_x_MD), None
