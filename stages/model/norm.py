"""The norm of all layers."""

from __future__ import annotations

from torch import Tensor, nn


class RMSNorm(nn.RMSNorm):
    """Root mean square norm (Zhang & Sennrich 2019), in the type of its weights.

    Under autocast these are float32 and what a matrix gives is bfloat16; torch's own norm of two
    types is neither fused nor silent.
    """

    def forward(self, x: Tensor) -> Tensor:
        """`x` over its last dimension, in the type of the weights."""
        return super().forward(x.to(self.weight.dtype))
