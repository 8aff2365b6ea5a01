"""What a kind of training (pretraining, SFT, DPO) adds to the loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from artifacts_schema.kinds import Column
from stages.training.monitor import HeldOut
from stages.training.suspects import Suspect


@dataclass(frozen=True)
class Share:
    """What one micro-batch contributes to a training step.

    `loss` is its part of the step's loss (already divided by the count over the whole step), which
    is differentiated; `tokens` are those it read, padding not counted; `sums` are statistics that
    add up over micro-batches. `sums["loss"]`, where a task gives it, is what is told as the step's
    loss: that without penalties.
    """

    loss: Tensor
    tokens: int
    sums: Mapping[str, Tensor] = field(default_factory=dict)


class Task(ABC):
    """What a training step sees and what its loss is."""

    columns: tuple[Column, ...] = ()
    """Its columns of `metrics.parquet`."""

    def batch(self, training_step: int) -> Any:
        """What a training step (from 1) reads, a function of its number; by default the number.

        None for a step that is left out: it reads nothing and updates nothing. It is called ahead
        of the step, in another thread, and so computes nothing with the model.
        """
        return training_step

    @abstractmethod
    def shares(self, model: nn.Module, batch: Any) -> Iterator[Share]:
        """The micro-batches of a training step, of what `batch` gave for it."""

    @abstractmethod
    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """The values of `columns` from the step's summed statistics (flattened)."""

    @abstractmethod
    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """Losses on held-out data; empty where there is none."""

    def row_losses(self, model: nn.Module, batch: Any) -> Sequence[float]:
        """Mean loss of each row of a training step; none where the task can not tell them apart.

        Asked without gradients, of a step in trouble.
        """
        return ()

    def documents(self, training_step: int, rows: Sequence[int] = ()) -> Sequence[Suspect]:
        """The documents that a training step reads, of these rows alone if any are given.

        None where the task knows of none.
        """
        return ()


class Total:
    """Sums over the micro-batches of a training step, kept on the device until the step is over."""

    def __init__(self) -> None:
        self.tokens = 0
        self.sums: dict[str, Tensor] = {}

    def add(self, share: Share) -> None:
        """Take in a micro-batch."""
        self.tokens += share.tokens
        for name, value in {"loss": share.loss, **share.sums}.items():
            value = value.detach().to(share.loss.device, torch.float64).flatten()
            self.sums[name] = self.sums[name] + value if name in self.sums else value

    def floats(self, grad_norm: Tensor) -> dict[str, list[float]]:
        """All sums and the gradient norm, in one transfer."""
        self.sums["grad_norm"] = grad_norm.detach().double().flatten()
        names = list(self.sums)
        values = torch.cat([self.sums[name] for name in names]).tolist()
        result: dict[str, list[float]] = {}
        for name in names:
            size = self.sums[name].numel()
            result[name], values = values[:size], values[size:]
        return result
