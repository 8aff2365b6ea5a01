"""Silent stalls: a run that goes on, though nothing is learnt.

A loss or gradient norm that stays the same to its last bit over different data, a gradient of zero,
or weights that no update moves: each comes from a broken program (a detached loss, a frozen model,
an optimizer with other parameters), and none of them raises anything by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass
class Stalls:
    """Since how many training steps nothing has changed."""

    loss: float | None = None
    grad_norm: float | None = None
    same_loss: int = 0
    same_grad_norm: int = 0
    fingerprint: int | None = None
    updates: int = 0

    def find(self, loss: float, grad_norm: float, most: int) -> str | None:
        """What has not changed over `most` training steps, this one the last of them."""
        self.same_loss = self.same_loss + 1 if loss == self.loss else 1
        self.same_grad_norm = self.same_grad_norm + 1 if grad_norm == self.grad_norm else 1
        self.loss, self.grad_norm = loss, grad_norm
        if self.same_grad_norm >= most:
            return f"the gradient norm has been exactly {grad_norm:g} for {most} training steps"
        if self.same_loss >= most:
            return f"the loss has been exactly {loss:g} for {most} training steps"
        return None

    def unmoved(self, model: nn.Module, rate: float, most: int) -> str | None:
        """After an update at `rate`: whether the last `most` have moved no weight.

        The weights are looked at once in `most` updates; those at a rate of 0 do not count.
        """
        if rate <= 0:
            return None
        self.updates += 1
        if self.updates < most and self.fingerprint is not None:
            return None
        before, self.fingerprint, self.updates = self.fingerprint, fingerprint(model), 0
        if before != self.fingerprint:
            return None
        return f"no weight has moved in {most} training steps, though the learning rate is {rate:g}"


def fingerprint(model: nn.Module) -> int:
    """The sum of all parameters' bits, read as whole numbers: another one for other weights."""
    sums = [
        one.detach().contiguous().view(_BITS[one.element_size()]).sum(dtype=torch.int64)
        for one in model.parameters()
    ]
    return int(torch.stack(sums).sum()) if sums else 0
