"""Ranks that make different forward passes with one model, of which each may hold a part.

Where parameters are in parts, a pass gathers them from all ranks, so every rank must make as many
passes as the others. Ranks that write texts need different numbers: before a pass each says so, and
one that has nothing to do makes a pass over one token whenever another makes one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from artifacts_schema.errors import Stopped
from stages.model.decoder import Decoder
from stages.parallel.ranks import Ranks


@dataclass(frozen=True)
class Lockstep:
    """What each rank calls: `take` before every pass of its own, then `wait` until all are done.

    Both raise Stopped on all ranks as soon as one is asked to stop (`is_stopping`).
    """

    ranks: Ranks
    model: Decoder
    is_stopping: Callable[[], bool]

    def take(self) -> None:
        """Before a forward pass."""
        self._tell(busy=True)

    def wait(self) -> None:
        """Until no rank makes a pass any more."""
        is_cut = self.ranks.layout.shard > 1
        while self._tell(busy=False):
            if is_cut:
                self._pass_over_one_token()

    def _tell(self, *, busy: bool) -> bool:
        """Whether any rank is about to make a pass."""
        flags = self.ranks.sum_all(torch.tensor([int(busy), int(self.is_stopping())]))
        any_busy, any_stopping = flags.tolist()
        if any_stopping:
            raise Stopped()
        return bool(any_busy)

    @torch.inference_mode()
    def _pass_over_one_token(self) -> None:
        token_BL = torch.zeros(1, 1, dtype=torch.int64, device=self.ranks.device)
        self.model(token_BL, token_BL)
