"""Learning from pairs as a task of the training loop: batches, measurements, held-out pairs.

What a pair's loss is, and how a model judges two answers, is a subclass's: `task.py` compares
log-probabilities, `reward_task.py` scores.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stages.pairs.losses import PreferenceLosses
from stages.pairs.measures import COLUMNS, HELD_OUT_COLUMNS, measure_sums, sum_losses
from stages.training.examples import ExampleClock, ExampleSet
from stages.training.monitor import HeldOut
from stages.training.runtime import Runtime
from stages.training.sample_clock import rank_rows
from stages.training.task import MicroBatch, Task


class PairsTask(Task):
    """Mean loss over the pairs of a step; a micro-batch holds whole pairs."""

    columns = COLUMNS
    held_out_columns = HELD_OUT_COLUMNS

    def __init__(
        self, data: ExampleSet, clock: ExampleClock, runtime: Runtime, context: int
    ) -> None:
        self.data, self.clock, self.runtime, self.context = data, clock, runtime, context

    @abstractmethod
    def losses(
        self,
        model: nn.Module,
        part: NDArray[np.int64],
        batch: NDArray[np.int64],
        prepared: Any,
    ) -> tuple[PreferenceLosses, Tensor, int]:
        """Losses of the pairs of `part`, their share of the loss of `batch`, and tokens read."""

    def prepare(self, model: nn.Module, batch: NDArray[np.int64]) -> Any:
        """What `losses` of all parts of `batch` need; by default nothing."""
        return None

    def batch(self, training_step: int) -> NDArray[np.int64]:
        """The step's pairs, by number."""
        return self.data.train[self.clock.batch(training_step)]

    def micro_batches(self, model: nn.Module, batch: NDArray[np.int64]) -> Iterator[MicroBatch]:
        """The step's pairs, `micro_batch` of them at a time; some of the pairs on each rank."""
        parts, prepared = self.parts(batch), self.prepare(model, batch)
        for number, part in enumerate(parts, start=1):
            self.runtime.prepare_backward(model, last=number == len(parts))
            losses, loss, tokens = self.losses(model, part, batch, prepared)
            yield MicroBatch(loss, tokens, self.sums(losses, part, prepared))

    def sums(
        self, losses: PreferenceLosses, part: NDArray[np.int64], prepared: Any
    ) -> dict[str, Tensor]:
        """What `measures` reads, summed over the pairs of `part`."""
        return sum_losses(losses)

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """Rewards, their margin and accuracy over the step."""
        return measure_sums(sums)

    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """The loss over the held-out pairs, and how many of them have the right order."""
        pairs = self.data.held_out
        if not len(pairs):
            return []
        prepared = self.prepare(model, pairs)
        total, counts = 0.0, {"pairs": 0, "right": 0}
        for part in self.parts(pairs):
            losses, loss, _ = self.losses(model, part, pairs, prepared)
            total += loss.double().item()
            sums = self.sums(losses, part, prepared)
            counts = {name: count + int(sums[name]) for name, count in counts.items()}
        ranks = self.runtime.ranks
        summed = torch.tensor([total, *counts.values()], dtype=torch.float64, device=ranks.device)
        total, *numbers = ranks.sum(summed).tolist()
        measured = {name: round(number) for name, number in zip(counts, numbers, strict=True)}
        return [HeldOut("all", total, None, counts=measured)]

    def parts(self, chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """This rank's pairs, `micro_batch` at a time; as many parts on every rank, some empty."""
        size, ranks = self.runtime.micro_batch, self.runtime.ranks
        own = chosen[rank_rows(len(chosen), ranks.row, ranks.layout.rows)]
        most = -(-len(chosen) // ranks.layout.rows)
        return [own[start : start + size] for start in range(0, most, size)]
