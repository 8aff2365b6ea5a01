"""Prompt tuning as a task of the training loop: the batches, their loss, the held-out loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from stages.prompt_tuning.conversations import Conversations
from stages.training.examples import ExampleClock, pack_rows
from stages.training.monitor import HeldOut
from stages.training.rows import HeldOutSums, Rows, SourceMetrics
from stages.training.runtime import Runtime
from stages.training.task import MicroBatch, Suspect, Task


class PromptTask(Task):
    """Mean cross-entropy over what the conversations of a step learn."""

    def __init__(
        self,
        train: Conversations,
        held_out: Conversations,
        clock: ExampleClock,
        runtime: Runtime,
        context: int,
    ) -> None:
        self.train, self.held, self.clock = train, held_out, clock
        self.runtime, self.context = runtime, context
        self.by_source = SourceMetrics(train.groups, train.token_bytes)
        self.columns = self.by_source.columns()

    def batch(self, training_step: int) -> NDArray[np.int64]:
        """The step's conversations, by number."""
        return self.clock.batch(training_step)

    def micro_batches(self, model: nn.Module, batch: NDArray[np.int64]) -> Iterator[MicroBatch]:
        """The step's conversations, `micro_batch` of them at a time."""
        targets = sum(self.train.examples[index].targets for index in batch.tolist())
        for part, rows in self._parts(self.train, batch):
            losses_BL = self.runtime.losses(model, rows)
            groups_BL = self.train.groups_of(part, rows.documents_BL)
            sums = self.by_source.sums(losses_BL, rows, groups_BL)
            yield MicroBatch(losses_BL.sum() / targets, rows.tokens, sums)

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """Loss and targets by source."""
        return self.by_source.measures(sums)

    @torch.no_grad()
    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """The loss on held-out conversations, of all and by source."""
        if not len(self.held):
            return []
        sums = HeldOutSums(self.held.groups, self.held.token_bytes)
        for part, rows in self._parts(self.held, np.arange(len(self.held))):
            losses_BL = self.runtime.losses(model, rows)
            sums.add(losses_BL, rows, self.held.groups_of(part, rows.documents_BL))
        return sums.measured()

    def documents(self, training_step: int, rows: Sequence[int] = ()) -> Sequence[Suspect]:
        """The conversations that a training step reads; which of its rows, nobody asks."""
        return [
            Suspect(self.train.groups.sources[self.train.sources_N[index]], self.train.ids[index])
            for index in self.batch(training_step).tolist()
        ]

    def _parts(
        self, conversations: Conversations, chosen: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], Rows]]:
        size = self.runtime.micro_batch
        for start in range(0, len(chosen), size):
            part = chosen[start : start + size]
            examples = [conversations.examples[index] for index in part.tolist()]
            yield part, pack_rows(examples, self.context)
