"""Pretraining as a task of the training loop: its batches, losses, held-out set, rotary positions.

Held-out sequences are spread over all sources, with a unigram baseline on them. A longer context
comes with another rotary base, or with a scaling, by phase.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import Column
from stages.engine import Input
from stages.model.config import RopeScaling
from stages.model.decoder import Decoder
from stages.parallel.ranks import Ranks
from stages.pretrain.config import ObjectiveConfig, PhaseConfig
from stages.pretrain.objectives import Objective
from stages.scoring.likelihood import unigram_nll
from stages.training.diagnosis import documents_of_step
from stages.training.distillation import Distillation, DistilledRows
from stages.training.embedding_noise import EmbeddingNoise
from stages.training.losses import TrainedRows
from stages.training.monitor import HeldOut
from stages.training.rows import (
    Groups,
    HeldOutSums,
    Rows,
    SourceMetrics,
    measured_batches,
    own_columns,
)
from stages.training.runtime import Runtime
from stages.training.sample_clock import SampleClock, clock_batch, rank_rows
from stages.training.schedule import Timeline
from stages.training.task import MicroBatch, Suspect, Task
from stages.training.token_shards import IGNORED, TokenShards, spread


@dataclass(frozen=True)
class HeldOutSet:
    """Some sequences of held-out shards: source and number of each; empty without shards."""

    shards: TokenShards | None
    sources_B: NDArray[np.int64]
    sequences_B: NDArray[np.int64]

    @classmethod
    def from_inputs(cls, inputs: Sequence[Input], most: int) -> HeldOutSet:
        """At most `most` sequences, each source by its size (at least one), evenly spaced in it.

        `most` is exceeded where there are more sources than that. InputError where sequences have
        several lengths: their losses would not be of one kind.
        """
        if not inputs:
            empty = np.zeros(0, dtype=np.int64)
            return cls(None, empty, empty)
        shards = TokenShards(inputs)
        lengths = sorted(set(shards.lengths.values()))
        if len(lengths) > 1:
            raise InputError(
                f"held-out sequences have {', '.join(map(str, lengths))} tokens",
                where="held_out",
                hint="give those of one length, as the last phase has",
            )
        sizes = [shards.sequences[source] for source in shards.sources]
        chosen = [
            spread(size, quota) for size, quota in zip(sizes, quotas(sizes, most), strict=True)
        ]
        return cls(
            shards,
            np.repeat(np.arange(len(sizes), dtype=np.int64), [len(one) for one in chosen]),
            np.concatenate([np.zeros(0, dtype=np.int64), *chosen]),
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources; `sources_B` are positions in it."""
        return self.shards.sources if self.shards else ()

    def token_bytes(self) -> NDArray[np.int64] | None:
        """UTF-8 bytes of each token, 0 for special ones."""
        return self.shards.token_bytes() if self.shards else None

    @cached_property
    def groups(self) -> Groups:
        """What is measured apart: sources, and languages in them."""
        return Groups.from_tokens(self.sources, self.shards.languages if self.shards else {})

    def batches(self, rows: int) -> Iterator[Rows]:
        """The sequences in order, at most `rows` at a time."""
        for start in range(0, len(self.sources_B), rows):
            yield self.rows(start, rows)

    def rows(self, first: int, most: int) -> Rows:
        """The sequences from `first` on, at most so many."""
        assert self.shards is not None, "without shards there are no sequences"
        part = slice(first, first + most)
        batch = self.shards.batch(self.sources_B[part], self.sequences_B[part])
        return Rows(batch.tokens_BL, batch.targets_BL, batch.documents_BL)

    def groups_of(self, first: int, rows: Rows) -> NDArray[np.int64]:
        """[B, L] or [B, 1] The group of each token of the sequences from `first` on.

        `rows` are these sequences, as the data has them or as an objective shows them.
        """
        assert self.shards is not None, "without shards there are no sequences"
        part = slice(first, first + len(rows))
        return self.groups.numbers(
            self.shards, self.sources_B[part], self.sequences_B[part], rows.documents_BL
        )

    def unigram(self, counts: NDArray[np.int64]) -> dict[str, dict[str, float]]:
        """Bits per byte of the token-unigram model with these counts: by source and by language.

        `unigram_bits_per_byte` of `all` and of each source, `unigram_bits_per_byte_by_language` of
        each language, where there are several. Add-one smoothed, p(token) = (count + 1) / (total +
        vocabulary); over the same targets as the model's bits per byte, those that are text.
        """
        nll = torch.from_numpy(unigram_nll(counts))
        total, first = HeldOutSums(self.groups, self.token_bytes()), 0
        for rows in self.batches(64):
            total.add(nll[np.maximum(rows.targets_BL, 0)], rows, self.groups_of(first, rows))
            first += len(rows)
        by_source: dict[str, float] = {}
        by_language: dict[str, float] = {}
        for one in total.measured():
            if one.bits_per_byte is not None and one.language is None:
                by_source[one.source] = one.bits_per_byte
            elif one.bits_per_byte is not None and one.language is not None:
                by_language[one.language] = one.bits_per_byte
        return {
            "unigram_bits_per_byte": by_source,
            "unigram_bits_per_byte_by_language": by_language,
        }


def quotas(sizes: Sequence[int], most: int) -> list[int]:
    """How many of each to take: all if they are few, else about in proportion, one at the least."""
    total = sum(sizes)
    if total <= most:
        return list(sizes)
    return [min(size, max(1, size * most // total)) for size in sizes]


class RopeByPhase:
    """The base and scaling of each phase, as a function of the training step alone.

    What a phase does not say is that of the phase before, of the first one the model's own.
    """

    def __init__(self, model: Decoder, phases: Sequence[PhaseConfig], timeline: Timeline) -> None:
        self._timeline = timeline
        base, scaling = model.config.rope_base, model.config.rope_scaling
        self.by_phase: list[tuple[float, RopeScaling | None]] = []
        for phase in phases:
            base = phase.rope_base or base
            scaling = phase.rope_scaling or scaling
            self.by_phase.append((base, scaling))

    def at(self, model: Any, training_step: int) -> None:
        """Give `model` the rotary positions of a training step (from 1), if it has others.

        Before the first step the model has its own.
        """
        if training_step < 1:
            return
        base, scaling = self.by_phase[self._timeline.phase_of(training_step)]
        if (model.config.rope_base, model.config.rope_scaling) != (base, scaling):
            model.set_rope(base, scaling)


_DIVERGENCE = Column(
    "divergence", "float64", "Mean divergence from the teacher, nats; `loss` has it by its weight."
)
_Z_LOSS = Column("z_loss", "float64", "Mean of the weighted log² Z, which `loss` does not hold.")


@dataclass(frozen=True)
class Sequences:
    """A rank's sequences of a training step as the model sees them, whole, and each token's group.

    `groups_BL` may be `[B, 1]` (see `Groups.numbers`).
    """

    training_step: int
    rows: Rows
    groups_BL: NDArray[np.int64]
    filled: int = 0
    """Rows at the end without tokens or targets, so that every rank has the same number."""
    first: int = 0
    """Number of the first row in the step's batch, which all ranks share."""
    records_BL: NDArray[Any] | None = None
    """A teacher's, of each token."""

    def of_context(self, ranks: Ranks) -> Sequences:
        """The tokens of each sequence that this rank has, of those that share sequences."""
        groups_BL = own_columns(self.groups_BL, ranks)
        return replace(self, rows=self.rows.of_context(ranks), groups_BL=groups_BL)

    def split(self, size: int) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
        """Micro-batches of at most `size` sequences."""
        for number, part in enumerate(self.rows.split(size)):
            yield part, self.groups_BL[number * size : (number + 1) * size]


class PretrainTask(Task):
    """Mean cross-entropy over the targets of the objective in the batch of the sample clock."""

    def __init__(
        self,
        shards: TokenShards,
        clock: SampleClock,
        held_out: HeldOutSet,
        runtime: Runtime,
        objective: Objective | None = None,
        rope: RopeByPhase | None = None,
        noise: EmbeddingNoise | None = None,
        teacher: Distillation | None = None,
    ) -> None:
        self.shards, self.clock, self.held_out_set = shards, clock, held_out
        self.runtime, self.rope, self.noise, self.teacher = runtime, rope, noise, teacher
        self.objective = objective or Objective(ObjectiveConfig())
        self.z_loss = self.objective.config.z_loss
        self.prefixes = not self.objective.is_causal
        self.lengths = [phase.sequence_length for phase in clock.phases]
        self.groups = Groups.from_tokens(shards.sources, shards.languages)
        self.by_source = SourceMetrics(self.groups, shards.token_bytes())
        own = ([_Z_LOSS] if self.z_loss else []) + ([_DIVERGENCE] if teacher else [])
        self.columns = (*self.by_source.columns(), *own)

    def batch(self, training_step: int) -> Sequences | None:
        """The step's sequences, from the shards; None if the run skips it."""
        if self.clock.skipped(training_step):
            return None
        ranks, (_, _, total) = self.runtime.ranks, self.clock.rows(training_step)
        world = ranks.layout.rows
        own = rank_rows(total, ranks.row, world)
        batch = clock_batch(self.shards, self.clock, training_step, rank=ranks.row, world=world)
        rows = Rows(
            batch.tokens_BL, batch.targets_BL, batch.documents_BL, weights_BL=batch.weights_BL
        )
        if self.prefixes:
            rows = self.objective.rows(rows, training_step, own.start)
        groups_BL = self.groups.numbers(
            self.shards, batch.sources_B, batch.sequences_B, rows.documents_BL
        )
        records_BL = None
        if self.teacher is not None:
            records_BL = self.teacher.read(batch.sources_B, batch.sequences_B)
        filled = self.runtime.rows_of_step(total) - len(rows)
        if filled:
            rows = rows.padded(filled)
            groups_BL = np.pad(groups_BL, ((0, filled), (0, 0)))
        return Sequences(training_step, rows, groups_BL, filled, own.start, records_BL)

    def micro_batches(self, model: nn.Module, batch: Sequences) -> Iterator[MicroBatch]:
        """The step's sequences in micro-batches; the loss is a mean over all their targets, by
        weight."""
        if self.rope is not None:
            self.rope.at(model, batch.training_step)
        batch = batch.of_context(self.runtime.ranks)
        targets: float = self.runtime.ranks.sum_number(batch.rows.targets)
        if self.shards.is_weighted:
            targets = self.runtime.ranks.sum_float(batch.rows.weight)
        parts = list(batch.split(self.runtime.micro_batch))
        rows_of_parts = [rows for rows, _ in parts]
        noisy: AbstractContextManager[None] = nullcontext()
        if self.noise is not None:
            noisy = self.noise.applied(model, rows_of_parts, batch.training_step, batch.first)
        with noisy:
            for number, trained in self._passes(model, batch, rows_of_parts, targets):
                if number is None:
                    yield MicroBatch(trained.loss, 0)
                    continue
                part, groups_BL = parts[number]
                sums = self.by_source.sums(trained.losses_BL, part, groups_BL)
                if self.z_loss:
                    sums |= {"loss": trained.cross_entropy, "z_loss": trained.z_loss}
                if isinstance(trained, DistilledRows):
                    sums |= {"divergence": trained.divergence}
                yield MicroBatch(trained.loss, part.tokens, sums)

    def _passes(
        self, model: nn.Module, batch: Sequences, parts: Sequence[Rows], targets: float
    ) -> Iterator[tuple[int | None, TrainedRows]]:
        """See `Runtime.passes`; with a teacher its divergence is in the loss."""
        if self.teacher is None or batch.records_BL is None:
            yield from self.runtime.passes(model, parts, targets=targets, z_loss=self.z_loss)
            return
        size = self.runtime.micro_batch
        records = [batch.records_BL[n * size : (n + 1) * size] for n in range(len(parts))]
        yield from self.teacher.passes(self.runtime, model, parts, records, targets=int(targets))

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """Loss, bits per byte, targets and tokens by source and language; what else is learnt."""
        values = self.by_source.measures(sums)
        if self.teacher is not None:
            values["divergence"] = sums["divergence"][0]
        return {**values, "z_loss": sums["z_loss"][0]} if self.z_loss else values

    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """Loss and bits per byte on the held-out sequences, under the same objective."""
        held_out = self.held_out_set
        total = HeldOutSums(held_out.groups, held_out.token_bytes())
        ranks, size = self.runtime.ranks, self.runtime.micro_batch
        for number, counts in measured_batches(-(-len(held_out.sources_B) // size), ranks):
            first = number * size
            rows = self.objective.rows(held_out.rows(first, size), 0, first).of_context(ranks)
            losses_BL: Tensor = self.runtime.losses(model, rows)
            if counts:
                total.add(losses_BL, rows, held_out.groups_of(first, rows))
        total.sum_over(ranks)
        return total.measured()

    def sequence_losses(self, model: nn.Module, batch: Sequences) -> Sequence[float]:
        """Mean loss of each sequence of a step."""
        ranks = self.runtime.ranks
        batch = batch.of_context(ranks)
        rows = batch.rows
        sums_RB3 = np.zeros((ranks.layout.rows, len(rows), 3))
        losses = [
            self.runtime.losses(model, part).double().sum(1).cpu().numpy()
            for part, _ in batch.split(self.runtime.micro_batch)
        ]
        targets_B = (rows.targets_BL != IGNORED).sum(1)
        is_row_B = np.arange(len(rows)) < len(rows) - batch.filled
        sums_RB3[ranks.row] = np.stack((np.concatenate(losses), targets_B, is_row_B), axis=1)
        summed = ranks.sum(torch.from_numpy(sums_RB3).to(ranks.device)).cpu().numpy()
        loss_N, targets_N, is_row_N = summed.reshape(-1, 3).T
        return (loss_N / np.maximum(targets_N, 1))[is_row_N > 0].tolist()  # type: ignore[no-any-return]

    def documents(self, training_step: int, rows: Sequence[int] = ()) -> Sequence[Suspect]:
        """The documents that a training step reads, or these rows of it."""
        return documents_of_step(self.shards, self.clock, training_step, rows)
