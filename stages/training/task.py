"""The interface of a kind of training (pretraining, SFT, DPO): its batches and its loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor, nn

from artifacts_schema.kinds import Column
from stages.training.monitor import HeldOut
from stages.training.runtime import Runtime


class Suspect(NamedTuple):
    """A document that a training step read."""

    source: str
    doc_id: str


@dataclass(frozen=True)
class MicroBatch:
    """What one micro-batch contributes to a training step.

    `loss` is its part of the step's loss (already divided by the count over the whole step), which
    is differentiated; `tokens` are those it read, padding not counted; `sums` are statistics that
    add up over micro-batches; those that were counted on the host stay there, for each copy to a
    GPU would wait until it is idle. `sums["loss"]`, where a task gives it, is reported as the
    step's loss: that without penalties.
    """

    loss: Tensor
    tokens: int
    sums: Mapping[str, Tensor] = field(default_factory=dict)


class Task(ABC):
    """What a training step sees and what its loss is."""

    runtime: Runtime
    columns: tuple[Column, ...] = ()
    """Its columns of `metrics.parquet`."""
    held_out_columns: tuple[Column, ...] = ()
    """Its columns of `held_out.parquet`, whole numbers."""
    lengths: Sequence[int] = ()
    """Tokens of a sequence by phase; empty for as many as the model's context."""
    prefixes = False
    """Whether some tokens see later ones."""

    def batch(self, training_step: int) -> Any:
        """What a training step (from 1) reads, a function of its number; by default the number.

        None for a step that is excluded: it reads nothing and updates nothing. It is called ahead
        of the step, in another thread, and so computes nothing with the model.
        """
        return training_step

    @abstractmethod
    def micro_batches(self, model: nn.Module, batch: Any) -> Iterator[MicroBatch]:
        """The micro-batches of a training step; `batch` is the value of `self.batch`."""

    @abstractmethod
    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """The values of `columns` from the step's summed statistics (flattened)."""

    @abstractmethod
    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """Losses on held-out data; empty where there is none."""

    def sequence_losses(self, model: nn.Module, batch: Any) -> Sequence[float]:
        """Mean loss of each row of a training step; none where the task cannot tell them apart.

        Called without gradients, for a step with an anomaly.
        """
        return ()

    def documents(self, training_step: int, rows: Sequence[int] = ()) -> Sequence[Suspect]:
        """The documents that a training step reads, or these rows of it; empty if not known."""
        return ()
