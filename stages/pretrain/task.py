"""Pretraining as a task of the training loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from artifacts_schema.kinds import Column
from stages.pretrain.held_out import HeldOutSet
from stages.pretrain.rope import RopeByPhase
from stages.training.by_source import BySource, HeldOutSums
from stages.training.clock import SampleClock
from stages.training.data import TokenShards, clock_batch
from stages.training.groups import Groups
from stages.training.monitor import HeldOut
from stages.training.objective_config import ObjectiveConfig
from stages.training.objectives import Objective
from stages.training.pieces import IGNORED
from stages.training.rows import Rows
from stages.training.runtime import Runtime
from stages.training.suspects import Suspect, documents_of_step
from stages.training.task import Share, Task

_Z_LOSS = Column("z_loss", "float64", "Mean of the weighted log² Z, which `loss` does not hold.")


@dataclass(frozen=True)
class Sequences:
    """The sequences of a training step as the model sees them, and each token's group.

    `groups_BL` may be `[B, 1]` (see `Groups.numbers`).
    """

    training_step: int
    rows: Rows
    groups_BL: NDArray[np.int64]

    def split(self, size: int) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
        """Micro-batches of at most `size` sequences."""
        for number, part in enumerate(self.rows.split(size)):
            yield part, self.groups_BL[number * size : (number + 1) * size]


class PretrainTask(Task):
    """Mean cross-entropy over what the objective asks of the batch that the sample clock names."""

    def __init__(
        self,
        shards: TokenShards,
        clock: SampleClock,
        held_out: HeldOutSet,
        runtime: Runtime,
        objective: Objective | None = None,
        rope: RopeByPhase | None = None,
    ) -> None:
        self.shards, self.clock, self.held_out_set = shards, clock, held_out
        self.runtime, self.rope = runtime, rope
        self.objective = objective or Objective(ObjectiveConfig())
        self.z_loss = self.objective.config.z_loss
        self.groups = Groups.of(shards.sources, shards.languages)
        self.by_source = BySource(self.groups, shards.token_bytes())
        self.columns = (*self.by_source.columns(), *([_Z_LOSS] if self.z_loss else []))

    def batch(self, training_step: int) -> Sequences | None:
        """The step's sequences, from the shards; None if the run skips it."""
        if self.clock.skipped(training_step):
            return None
        batch = clock_batch(self.shards, self.clock, training_step)
        packed = Rows(batch.tokens_BL, batch.targets_BL, batch.documents_BL)
        rows = self.objective.rows(packed, training_step)
        groups_BL = self.groups.numbers(
            self.shards, batch.sources_B, batch.sequences_B, rows.documents_BL
        )
        return Sequences(training_step, rows, groups_BL)

    def shares(self, model: nn.Module, batch: Sequences) -> Iterator[Share]:
        """The step's sequences in micro-batches; the loss is a mean over all their targets."""
        if self.rope is not None:
            self.rope.at(model, batch.training_step)
        targets = batch.rows.targets
        for part, groups_BL in batch.split(self.runtime.micro_batch):
            trained = self.runtime.train(model, part, targets=targets, z_loss=self.z_loss)
            sums = self.by_source.sums(trained.losses_BL, part, groups_BL)
            if self.z_loss:
                sums |= {"loss": trained.cross_entropy, "z_loss": trained.z_loss}
            yield Share(trained.loss, part.tokens, sums)

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """Loss, bits per byte, targets and tokens by source and language; the z-loss."""
        values = self.by_source.measures(sums)
        return {**values, "z_loss": sums["z_loss"][0]} if self.z_loss else values

    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """Loss and bits per byte on the held-out sequences, under the same objective."""
        held_out = self.held_out_set
        total, first = HeldOutSums(held_out.groups, held_out.token_bytes()), 0
        for packed in held_out.batches(self.runtime.micro_batch):
            rows = self.objective.rows(packed, 0, first)
            losses_BL: Tensor = self.runtime.losses(model, rows)
            total.add(losses_BL, rows, held_out.groups_of(first, rows))
            first += len(rows)
        return total.measured()

    def row_losses(self, model: nn.Module, batch: Sequences) -> Sequence[float]:
        """Mean loss of each sequence of a step."""
        found: list[float] = []
        for part, _ in batch.split(self.runtime.micro_batch):
            sums_B = self.runtime.losses(model, part).double().sum(1).cpu().numpy()
            targets_B = (part.targets_BL != IGNORED).sum(1)
            found += (sums_B / np.maximum(targets_B, 1)).tolist()
        return found

    def documents(self, training_step: int, rows: Sequence[int] = ()) -> Sequence[Suspect]:
        """The documents that a training step reads, or these rows of it."""
        return documents_of_step(self.shards, self.clock, training_step, rows)
