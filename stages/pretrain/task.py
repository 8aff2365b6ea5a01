"""Pretraining as a task of the training loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from stages.pretrain.held_out import HeldOutSet
from stages.training import by_source
from stages.training.clock import SampleClock
from stages.training.data import Batch, TokenShards, clock_batch
from stages.training.loop import Share, Task
from stages.training.monitor import HeldOut
from stages.training.rows import Rows
from stages.training.runtime import Runtime


class PretrainTask(Task):
    """Mean next-token cross-entropy over the batch that the sample clock names."""

    def __init__(
        self, shards: TokenShards, clock: SampleClock, held_out: HeldOutSet, runtime: Runtime
    ) -> None:
        self.shards, self.clock, self.held_out_set = shards, clock, held_out
        self.runtime = runtime
        self.token_bytes = held_out.token_bytes()
        self.columns = by_source.columns(shards.sources)

    def batch(self, training_step: int) -> Batch | None:
        """The step's sequences, from the shards; None if the run skips it."""
        if self.clock.skipped(training_step):
            return None
        return clock_batch(self.shards, self.clock, training_step)

    def shares(self, model: nn.Module, batch: Batch) -> Iterator[Share]:
        """The step's sequences in micro-batches."""
        rows = Rows(batch.tokens_BL, batch.targets_BL, batch.documents_BL)
        size = self.runtime.micro_batch
        for number, part in enumerate(rows.split(size)):
            losses_BL = self.runtime.losses(model, part)
            sources_B = batch.sources_B[number * size : (number + 1) * size]
            yield Share(
                losses_BL.sum() / max(rows.targets, 1),
                part.tokens,
                by_source.sums(losses_BL, part, sources_B[:, None], len(self.shards.sources)),
            )

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """Loss, targets and tokens by source."""
        return by_source.measures(self.shards.sources, sums)

    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """Loss and bits per byte on the held-out sequences."""
        total = by_source.HeldOutSums(self.held_out_set.sources, self.token_bytes)
        for rows, sources_B in self.held_out_set.batches(self.runtime.micro_batch):
            total.add(self.runtime.losses(model, rows), rows, sources_B[:, None])
        return total.measured()
