"""Supervised fine-tuning as a task of the training loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from stages.sft.conversations import Conversations
from stages.training.by_source import BySource, HeldOutSums
from stages.training.examples import ExampleClock
from stages.training.groups import Groups
from stages.training.monitor import HeldOut
from stages.training.rows import Rows, pack_rows
from stages.training.runtime import Runtime
from stages.training.task import Share, Task


class SftTask(Task):
    """Mean cross-entropy over the assistant tokens of a step's conversations."""

    def __init__(
        self, data: Conversations, clock: ExampleClock, runtime: Runtime, context: int
    ) -> None:
        self.data, self.clock, self.runtime, self.context = data, clock, runtime, context
        self.groups = Groups.by_source(data.sources)
        self.by_source = BySource(self.groups)
        self.columns = self.by_source.columns()

    def batch(self, training_step: int) -> tuple[NDArray[np.int64], Rows]:
        """The step's conversations, and the rows that they are packed into."""
        chosen = self.data.train[self.clock.batch(training_step)]
        return chosen, self._packed(chosen)

    def shares(self, model: nn.Module, batch: tuple[NDArray[np.int64], Rows]) -> Iterator[Share]:
        """The step's conversations in micro-batches of rows."""
        chosen, rows = batch
        for part in rows.split(self.runtime.micro_batch):
            trained = self.runtime.train(model, part, targets=rows.targets)
            sources_BL = self._sources(part, chosen)
            yield Share(
                trained.loss,
                part.tokens,
                self.by_source.sums(trained.losses_BL, part, sources_BL),
            )

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """Loss, targets and tokens by source."""
        return self.by_source.measures(sums)

    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """Loss over the assistant tokens of the held-out conversations."""
        if not len(self.data.held_out):
            return []
        total = HeldOutSums(self.groups)
        for part in self._packed(self.data.held_out).split(self.runtime.micro_batch):
            losses_BL = self.runtime.losses(model, part)
            total.add(losses_BL, part, self._sources(part, self.data.held_out))
        return total.measured()

    def _packed(self, chosen: NDArray[np.int64]) -> Rows:
        return pack_rows([self.data.examples[index] for index in chosen.tolist()], self.context)

    def _sources(self, rows: Rows, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Source of each token; padding (document -1) takes that of the last document."""
        return self.data.source_of[chosen][rows.documents_BL]
