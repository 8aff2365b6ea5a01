"""In which numbers a model computes: float32, or matrix products in bfloat16 or float16.

Weights, gradients and optimizer state are float32 in all three. Float16 has a narrow exponent, so
its loss is scaled up before the backward pass and gradients are scaled down after it (Micikevicius
et al. 2018, arXiv 1710.03740, section 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from stages.training.config import Precision

_REDUCED = {"bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(device: torch.device, precision: Precision) -> torch.autocast:
    """Inside it, matrix products are in the precision's type; in float32 nothing changes."""
    reduced = _REDUCED.get(precision)
    return torch.autocast(device.type, reduced or torch.bfloat16, enabled=reduced is not None)


class LossScaler:
    """The factor of float16's loss, as dynamic as torch.amp.GradScaler, but decided on the host.

    A power of two, so that scaling rounds nothing. It depends on which updates overflowed alone,
    and travels with the checkpoint.
    """

    FIRST, LEAST, MOST = 2.0**16, 1.0, 2.0**24
    GROWS_AFTER = 2000

    def __init__(self) -> None:
        self.scale, self.clean = self.FIRST, 0

    def updated(self) -> None:
        """An update was made; after enough of them in a row the scale doubles."""
        self.clean += 1
        if self.clean == self.GROWS_AFTER:
            self.scale, self.clean = min(2 * self.scale, self.MOST), 0

    def overflowed(self) -> bool:
        """Gradients were not finite: halve the scale. False where it is at its least already."""
        if self.scale <= self.LEAST:
            return False
        self.scale, self.clean = self.scale / 2, 0
        return True

    def tensors(self) -> dict[str, Tensor]:
        """The state, for a checkpoint."""
        return {
            "scale": torch.tensor(self.scale, dtype=torch.float64),
            "clean": torch.tensor(self.clean, dtype=torch.int64),
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over the state that `tensors` gave."""
        self.scale, self.clean = float(tensors["scale"]), int(tensors["clean"])
