"""The feed-forward layer."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from stages.model.linear import Linear


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x)): Shazeer 2020, "GLU Variants Improve Transformer", eq. 6."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate = Linear(width, inner)
        self.up = Linear(width, inner)
        self.down = Linear(inner, width)

    def forward(self, x_BLD: Tensor) -> Tensor:
        """[..., width] to [..., width]."""
        return self.down(F.silu(self.gate(x_BLD)) * self.up(x_BLD))
