"""Spikes of loss and gradient norm: how far a value lies above those before it.

Measured by median and median absolute deviation, which a spike among them does not move (Iglewicz &
Hoaglin 1993, "How to detect and handle outliers"), where mean and standard deviation, such as those
of OLMo 2's skipped steps (arXiv 2501.00656), grow with each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from stages.training.stability_config import StabilityConfig

MAD_TO_SIGMA = 1.4826
"""1 / Φ⁻¹(3/4): a normal distribution's standard deviation over its median absolute deviation."""


def robust_z(
    value: float, history: Sequence[float], *, least: float = 0.0, share: float = 0.0
) -> float:
    """Standard deviations of `value` above the median of `history`, negative below it.

    The standard deviation is at least `least`, and at least this `share` of the median's size, so
    that a run that hardly varies does not alarm; where it is 0 even so, nothing can be said: 0.
    """
    middle = median(history)
    spread = MAD_TO_SIGMA * median(abs(one - middle) for one in history)
    scale = max(spread, least, share * abs(middle))
    return (value - middle) / scale if scale else 0.0


@dataclass(frozen=True)
class Spike:
    """How far loss and gradient norm of a training step lie above those before it.

    The norm is measured by its logarithm: norms differ by factors, and a healthy run's are skewed
    to the right.
    """

    loss_z: float
    grad_norm_z: float


@dataclass
class Spikes:
    """Losses and gradient norms of the last training steps that were in order."""

    losses: list[float] = field(default_factory=list)
    grad_norms: list[float] = field(default_factory=list)

    def find(self, loss: float, grad_norm: float, settings: StabilityConfig) -> Spike | None:
        """What makes these a spike; None where they are in order, or there is little before them.

        Only what is too high is one.
        """
        if 2 * len(self.losses) < settings.window:
            return None
        spike = Spike(
            robust_z(loss, self.losses, share=settings.loss_floor),
            robust_z(
                _logarithm(grad_norm),
                [_logarithm(one) for one in self.grad_norms],
                least=settings.grad_norm_floor,
            ),
        )
        worst = max(spike.loss_z, spike.grad_norm_z)
        assert not math.isnan(worst), "only finite values are judged"
        return spike if worst > settings.threshold else None

    def add(self, loss: float, grad_norm: float, window: int) -> None:
        """Take in a training step that was in order."""
        for values, value in ((self.losses, loss), (self.grad_norms, grad_norm)):
            values.append(value)
            del values[:-window]


def _logarithm(norm: float) -> float:
    """Of a norm that may be 0, which counts as the least float32."""
    return math.log(max(norm, 1e-45))
