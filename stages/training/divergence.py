"""Divergence: a loss that climbs for long, no step of it far above the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

LEAST_RISE = 0.2
"""Share of the lowest median that a rise is at least, however little the run had gained."""


@dataclass(frozen=True)
class Climb:
    """How far the median loss of a window lies above the lowest one so far, nats."""

    lowest: float
    now: float
    allowed: float


@dataclass
class Divergence:
    """The first loss of a run, and the lowest median of a window in this phase.

    A phase may be harder than the one before, so each has its own lowest; how much a run has gained
    is counted from its first loss, or that of a phase where it is higher.
    """

    first: float | None = None
    lowest: float | None = None

    def find(self, losses: Sequence[float], window: int, share: float | None) -> Climb | None:
        """What is wrong with the last losses, or None: also where there are fewer than `window`.

        A median may lie above the lowest by `share` of what the run gained from its first loss to
        that one, and by a fifth of the lowest at least.
        """
        if self.lowest is None:  # Nothing of this phase was judged yet: it may begin higher.
            self.first = max(losses[0], self.first or losses[0])
        if share is None or len(losses) < window:
            return None
        assert self.first is not None
        now = median(losses)
        self.lowest = min(now, self.first if self.lowest is None else self.lowest)
        allowed = max(share * (self.first - self.lowest), LEAST_RISE * abs(self.lowest))
        climb = Climb(self.lowest, now, allowed)
        return climb if now - self.lowest > allowed else None

    def new_phase(self) -> None:
        """Forget the lowest."""
        self.lowest = None
