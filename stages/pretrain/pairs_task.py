"""Learning from packed preference pairs as a task of the training loop.

The conversations 2p and 2p + 1 of a row are the chosen and the rejected answer of a pair, each
after its prompt (`pack_preferences`). A step's loss is the mean over its pairs, however many its
rows hold. Pairs are numbered through sources, sequences and rows; the log-probabilities of a
reference are kept by that number.

Shapes: B rows, L tokens, P pairs, N all pairs of some token shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from artifacts_schema.errors import CorruptArtifact
from stages.pairs.losses import (
    AnswerPairs,
    Objective,
    PreferenceLosses,
    preference_losses,
    sequence_log_probabilities,
)
from stages.pairs.measures import COLUMNS, HELD_OUT_COLUMNS, measure_sums, sum_losses
from stages.parallel.ranks import Ranks
from stages.pretrain.task import HeldOutSet, PretrainTask, RopeByPhase, Sequences
from stages.training.monitor import HeldOut
from stages.training.permutation import Indices
from stages.training.rows import Rows, measured_batches, on_device
from stages.training.runtime import Runtime
from stages.training.sample_clock import SampleClock, rank_rows
from stages.training.task import MicroBatch
from stages.training.token_shards import IGNORED, PADDED, TokenShards


class PairNumbers:
    """The numbers of the pairs of some token shards."""

    def __init__(self, shards: TokenShards) -> None:
        self._shards = shards

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """[sequences + 1] The first pair of each, through sources and sequences in order."""
        return np.append(0, np.cumsum(self._shards.document_counts()))

    def __len__(self) -> int:
        return int(self._first[-1])

    def of_rows(self, sources_B: Indices, sequences_B: Indices) -> NDArray[np.int64]:
        """[P] The pairs of these sequences, row by row and from left to right."""
        rows_B = self._shards.row_numbers(sources_B, sequences_B)
        parts = [np.arange(self._first[row], self._first[row + 1]) for row in rows_B.tolist()]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


@dataclass(frozen=True)
class PairReference:
    """Log-probabilities of the answers under the reference, `[2, N]`: chosen, rejected."""

    numbers: PairNumbers
    answers_2N: NDArray[np.float32]

    def of_rows(self, sources_B: Indices, sequences_B: Indices) -> NDArray[np.float32]:
        """[2, P] Those of the pairs of these sequences."""
        return self.answers_2N[:, self.numbers.of_rows(sources_B, sequences_B)]


@dataclass(frozen=True)
class PackedAnswers:
    """The answers of some rows: the number of each token's answer (-1: padding), and targets."""

    answers_BL: NDArray[np.int64]
    targets_2P: NDArray[np.int64]
    pairs_B: NDArray[np.int64]
    """Pairs of each row."""

    @classmethod
    def from_rows(cls, rows: Rows) -> PackedAnswers:
        """CorruptArtifact for a row with an answer that has no other one."""
        documents_BL = rows.documents_BL.astype(np.int64)
        counts_B = documents_BL.max(axis=1) + 1
        if (counts_B % 2).any():
            raise CorruptArtifact(
                f"a sequence holds {int(counts_B[counts_B % 2 > 0][0])} answers, pairs have two",
                where="token shards",
                hint="pack again",
            )
        before_B = np.cumsum(counts_B) - counts_B
        answers_BL = np.where(documents_BL == PADDED, -1, documents_BL + before_B[:, None])
        learnt = answers_BL[rows.targets_BL != IGNORED]
        targets = np.bincount(learnt, minlength=int(counts_B.sum()))
        return cls(answers_BL, targets.reshape(-1, 2).T, counts_B // 2)

    def log_probabilities(self, losses_BL: Tensor) -> Tensor:
        """[2, P] Of each answer, from the losses of tokens; differentiable."""
        answers_BL = on_device(self.answers_BL, losses_BL.device)
        sums = sequence_log_probabilities(losses_BL, answers_BL, self.targets_2P.size)
        return sums.view(-1, 2).T


@dataclass(frozen=True)
class PairSequences(Sequences):
    """A rank's sequences of a training step, and what the reference says of their pairs."""

    reference_2P: NDArray[np.float32] | None = None

    def of_context(self, ranks: Ranks) -> Sequences:
        """As they are: no ranks share an answer (`PackedPreference.check_layout`)."""
        return self


class PairTask(PretrainTask):
    """Mean loss over the pairs in the batch of the sample clock.

    Where the cross-entropy of chosen answers is added, it is a mean over the tokens of the step.
    For a loss with a reference, but without `reference`, the policy is its own: that is right for
    the weights that a run starts with, and so for trying a batch.
    """

    held_out_columns = HELD_OUT_COLUMNS

    def __init__(
        self,
        shards: TokenShards,
        clock: SampleClock,
        held_out: HeldOutSet,
        runtime: Runtime,
        loss: Objective,
        rope: RopeByPhase | None = None,
        reference: PairReference | None = None,
        held_out_reference: PairReference | None = None,
    ) -> None:
        super().__init__(shards, clock, held_out, runtime, rope=rope)
        self.loss, self.reference, self.held_out_reference = loss, reference, held_out_reference
        self.columns = (*self.by_source.columns(), *COLUMNS)

    def batch(self, training_step: int) -> Sequences | None:
        """The step's sequences, with their pairs under the reference."""
        sequences = super().batch(training_step)
        if sequences is None or self.reference is None:
            return sequences
        draw, ranks = self.clock.batch(training_step), self.runtime.ranks
        own = rank_rows(len(draw.sources), ranks.row, ranks.layout.rows)
        return PairSequences(
            **{one.name: getattr(sequences, one.name) for one in fields(sequences)},
            reference_2P=self.reference.of_rows(draw.sources[own], draw.sequences[own]),
        )

    def micro_batches(self, model: nn.Module, batch: Sequences) -> Iterator[MicroBatch]:
        """The step's sequences in micro-batches; the loss is a mean over all their pairs."""
        if self.rope is not None:
            self.rope.at(model, batch.training_step)
        parts = list(batch.split(self.runtime.micro_batch))
        answers = [PackedAnswers.from_rows(rows) for rows, _ in parts]
        pairs, tokens = (
            self.runtime.ranks.sum_number(sum(int(number) for number in numbers))
            for numbers in (
                (one.pairs_B.sum() for one in answers),
                (one.targets_2P[0].sum() for one in answers),
            )
        )
        reference_2P = getattr(batch, "reference_2P", None)
        done = 0
        for number, ((rows, groups_BL), own) in enumerate(zip(parts, answers, strict=True)):
            self.runtime.prepare_backward(model, last=number == len(parts) - 1)
            losses_BL = self.runtime.losses(model, rows)
            policy_2P = own.log_probabilities(losses_BL)
            theirs_2P = None
            if reference_2P is not None:
                theirs_2P = reference_2P[:, done : done + len(own.targets_2P[0])]
            done += len(own.targets_2P[0])
            losses = self.pair_losses(policy_2P, own, theirs_2P)
            loss = losses.loss_P.sum() / max(pairs, 1)
            if self.loss.sft_weight and tokens:
                loss = loss - self.loss.sft_weight * policy_2P[0].sum() / tokens
            sums = self.by_source.sums(losses_BL, rows, groups_BL) | sum_losses(losses)
            yield MicroBatch(loss, rows.tokens, sums)

    def pair_losses(
        self, policy_2P: Tensor, answers: PackedAnswers, reference_2P: NDArray[np.float32] | None
    ) -> PreferenceLosses:
        """The loss of each pair, of the log-probabilities of its answers."""
        device = policy_2P.device
        theirs: tuple[Tensor | None, Tensor | None] = (None, None)
        if self.loss.has_reference:
            if reference_2P is None:
                kept_2P = policy_2P.detach()
            else:
                kept_2P = on_device(np.ascontiguousarray(reference_2P), device)
            theirs = (kept_2P[0], kept_2P[1])
        tokens_2P = on_device(answers.targets_2P.astype(np.float32), device)
        pairs = AnswerPairs(policy_2P[0], policy_2P[1], *theirs, tokens_2P[0], tokens_2P[1])
        return preference_losses(self.loss.name, pairs, self.loss.settings)

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """Rewards, their margin and accuracy; losses, targets and tokens by source."""
        return {**super().measures(sums), **measure_sums(sums)}

    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """The loss over the held-out pairs of all and of each source, and how many are right."""
        held_out, ranks, size = self.held_out_set, self.runtime.ranks, self.runtime.micro_batch
        sums_S5 = np.zeros((len(held_out.sources), len(_HELD_OUT_SUMS)))
        for number, counts in measured_batches(-(-len(held_out.sources_B) // size), ranks):
            first = number * size
            rows = held_out.rows(first, size)
            answers = PackedAnswers.from_rows(rows)
            policy_2P = answers.log_probabilities(self.runtime.losses(model, rows))
            part = slice(first, first + size)
            sources_B, reference_2P = held_out.sources_B[part], None
            if self.held_out_reference is not None:
                reference_2P = self.held_out_reference.of_rows(
                    sources_B, held_out.sequences_B[part]
                )
            losses = self.pair_losses(policy_2P, answers, reference_2P)
            if counts:
                sources_P = np.repeat(sources_B, answers.pairs_B)
                np.add.at(sums_S5, sources_P, _held_out_sums(losses, policy_2P[0], answers))
        sums_S5 = ranks.sum(torch.from_numpy(sums_S5).to(ranks.device)).cpu().numpy()
        if not sums_S5.size or not sums_S5[:, 0].sum():
            return []
        by_source = zip(held_out.sources, sums_S5, strict=True)
        return [
            self._held_out("all", sums_S5.sum(axis=0)),
            *(self._held_out(name, sums_5) for name, sums_5 in by_source if sums_5[0]),
        ]

    def _held_out(self, name: str, sums_5: NDArray[np.float64]) -> HeldOut:
        pairs, right, loss, chosen, tokens = sums_5.tolist()
        loss /= pairs
        if self.loss.sft_weight and tokens:
            loss -= self.loss.sft_weight * chosen / tokens
        return HeldOut(name, loss, None, counts={"pairs": round(pairs), "right": round(right)})


_HELD_OUT_SUMS = ("pairs", "right", "loss", "chosen", "tokens")


def _held_out_sums(
    losses: PreferenceLosses, chosen_P: Tensor, answers: PackedAnswers
) -> NDArray[np.float64]:
    """[P, 5] What each pair adds to `_HELD_OUT_SUMS`."""
    columns = (
        torch.ones_like(losses.margin_P),
        losses.margin_P > 0,
        losses.loss_P,
        chosen_P,
        torch.from_numpy(answers.targets_2P[0]),
    )
    return torch.stack([one.detach().double().cpu() for one in columns], dim=1).numpy()
