"""Where a run begins that no earlier process has begun: anew, or behind a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stages.training.averages import Averages
from stages.training.guard import Guard
from stages.training.loop import Progress
from stages.training.optimizer import Optimizer

if TYPE_CHECKING:
    from torch import Tensor, nn

_WHERE = "the input checkpoint"


@dataclass(frozen=True)
class Origin:
    """How far the run is, and the states that it takes over; what is None begins anew."""

    progress: Progress = field(default_factory=Progress)
    optimizer: Mapping[str, Tensor] | None = None
    averages: Mapping[str, Tensor] | None = None
    guard: Mapping[str, Any] | None = None

    def give(
        self, model: nn.Module, optimizer: Optimizer, averages: Averages, guard: Guard
    ) -> None:
        """Let each have its state; CorruptArtifact for tensors that do not fit the model."""
        if self.optimizer:
            optimizer.load(self.optimizer, where=_WHERE)
        if self.averages:
            averages.load(self.averages, model, where=_WHERE)
        if self.guard:
            guard.restore(self.guard)
