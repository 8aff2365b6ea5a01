"""Learning from preference pairs as a task of the training loop.

Both answers of a pair (`pairs.py`) are packed as two documents, 2p the chosen and 2p + 1 the
rejected one of pair p.
Log-probabilities of the answers under the reference model are computed once for a run, each batch
by one of its ranks.

B rows, L tokens, P pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from artifacts_schema.errors import InputError, UsageError
from stages.engine import Context, Input
from stages.pairs.losses import (
    AnswerPairs,
    Objective,
    PreferenceLosses,
    preference_losses,
    sequence_log_probabilities,
)
from stages.pairs.reference import compute_once
from stages.preference.pairs_task import PairsTask
from stages.training.examples import Example, ExampleClock, ExampleSet, pack_rows
from stages.training.rows import Rows, measured_batches, on_device
from stages.training.runtime import Runtime


@dataclass(frozen=True)
class AnswerLogProbabilities:
    """Of the chosen and the rejected answers, and for kto of mismatched ones, `[P]` each."""

    chosen_P: Tensor
    rejected_P: Tensor
    mismatched_P: Tensor | None = None


def pack_pairs(pairs: Sequence[tuple[Example, ...]], context: int, pieces: int = 1) -> Rows:
    """All answers of every pair in rows of at most `context` tokens; see `pack_rows`."""
    return pack_rows([answer for pair in pairs for answer in pair], context, pieces)


def answer_log_probabilities(
    model: nn.Module, rows: Rows, pairs: int, runtime: Runtime
) -> AnswerLogProbabilities:
    """Under `model`, of the answers in `rows` as `pack_pairs` arranged them, two of each pair; to
    be called on all ranks, each with rows of its own."""
    return AnswerLogProbabilities(*sum_log_probabilities(model, rows, pairs, 2, runtime))


def sum_log_probabilities(
    model: nn.Module, rows: Rows, pairs: int, each: int, runtime: Runtime
) -> Tensor:
    """[each, P] of so many answers of each pair."""
    losses_BL = runtime.losses(model, rows)
    sequences_BL = on_device(rows.documents_BL, losses_BL.device)
    return sequence_log_probabilities(losses_BL, sequences_BL, each * pairs).view(pairs, each).T


def reference_log_probabilities(
    context: Context, model: nn.Module, data: ExampleSet, runtime: Runtime
) -> AnswerLogProbabilities:
    """Of all pairs under `model` as it is now: read from work, or computed and kept there.

    To be called on all ranks; rank 0 reads and keeps them.
    """

    def compute() -> dict[str, Tensor]:
        computed = _compute(context, model, data, runtime)
        tensors = {"chosen": computed.chosen_P, "rejected": computed.rejected_P}
        if computed.mismatched_P is not None:
            tensors["mismatched"] = computed.mismatched_P
        return tensors

    kept = compute_once(context, runtime.ranks, compute)
    return AnswerLogProbabilities(kept["chosen"], kept["rejected"], kept.get("mismatched"))


def _belongs_to(context: Context) -> dict[str, Any]:
    """What log-probabilities of a reference belong to: where one differs, others would come out."""
    start = context.one("checkpoint")
    return {
        "checkpoint": start.digest,
        "preferences": [one.digest for one in context.many("preferences")],
        "context": start.read_json("model.json")["context"],
        "date": context.config.date,
        "too_long": context.config.too_long,
        "precision": context.config.precision,
    }


def write_reference(context: Context, reference: AnswerLogProbabilities, data: ExampleSet) -> None:
    """Write the output `reference`."""
    table = pa.table(
        {
            "preference_id": pa.array(data.ids, pa.string()),
            "chosen": pa.array(reference.chosen_P.numpy(), pa.float32()),
            "rejected": pa.array(reference.rejected_P.numpy(), pa.float32()),
        }
    )
    context.write_table("reference", "pairs.parquet", table)
    context.write_json("reference", "reference.json", _belongs_to(context))


def read_reference(
    context: Context, made: Input, data: ExampleSet, objective: Objective
) -> AnswerLogProbabilities:
    """Of all pairs of `data`, in their order, from an artifact of the stage `reference`.

    UsageError for a loss without a reference; InputError where they belong to other weights, other
    pairs, or were read in another way.
    """
    if not objective.has_reference:
        raise UsageError(f"{objective.name} compares with no reference", where="inputs.reference")
    if objective.has_mismatches:
        raise UsageError(
            "kto reads mismatched answers too, which a reference does not hold",
            where="inputs.reference",
            hint="leave it out: the run computes its own",
        )
    theirs, ours = made.read_json("reference.json"), _belongs_to(context)
    for name, value in ours.items():
        if theirs.get(name) != value:
            short_values = (str(one)[:60] for one in (theirs.get(name), value))
            raise InputError(
                "was made for another {}: {}, here it is {}".format(name, *short_values),
                where=f"reference {made.key[:12]}",
                hint="make it again for this checkpoint, these pairs and these settings",
            )
    table = made.read_table("pairs.parquet")
    if table["preference_id"].to_pylist() != data.ids:
        raise InputError(
            "has other pairs, or in another order",
            where=f"reference {made.key[:12]}",
            hint="make it again by this version",
        )
    chosen_P, rejected_P = (
        torch.from_numpy(table[name].to_numpy().copy()) for name in ("chosen", "rejected")
    )
    return AnswerLogProbabilities(chosen_P, rejected_P)


@torch.no_grad()
def _compute(
    context: Context, model: nn.Module, data: ExampleSet, runtime: Runtime
) -> AnswerLogProbabilities:
    """Each rank computes some batches; the sum over ranks, 0 elsewhere, has all."""
    model.eval()
    length: int = model.config.context  # type: ignore[union-attr, assignment]
    size, ranks = runtime.micro_batch, runtime.ranks
    each = len(data.rows[0])
    answers_NP = torch.zeros((each, len(data.rows)), dtype=torch.float32, device=runtime.device)
    for number, counts in measured_batches(-(-len(data.rows) // size), ranks):
        if ranks.any(context.stopping):
            context.check_stop()
        part = slice(number * size, (number + 1) * size)
        pairs = data.rows[part]
        rows = pack_pairs(pairs, length, runtime.parallel.pieces)
        computed_NP = sum_log_probabilities(model, rows, len(pairs), each, runtime)
        if counts:
            answers_NP[:, part] = computed_NP
        context.progress(part.start, len(data.rows), unit="reference pairs")
    return AnswerLogProbabilities(*(one.clone() for one in ranks.sum(answers_NP).cpu()))


class PreferenceTask(PairsTask):
    """Mean loss over the pairs of a step.

    Where the cross-entropy of chosen answers is added, it is a mean over the tokens of the step.
    """

    def __init__(
        self,
        data: ExampleSet,
        reference: AnswerLogProbabilities | None,
        clock: ExampleClock,
        runtime: Runtime,
        context: int,
        objective: Objective,
    ) -> None:
        super().__init__(data, clock, runtime, context)
        self.reference, self.objective = reference, objective
        targets = [[answer.targets for answer in pair[:2]] for pair in data.rows]
        self.targets_N2 = np.array(targets, dtype=np.int64).reshape(-1, 2)
        """[pairs, 2] learnt tokens of the chosen and of the rejected answer."""

    def weight(self, batch: NDArray[np.int64]) -> float:
        """By what the summed losses of `batch` are divided."""
        return len(batch)

    def losses(
        self,
        model: nn.Module,
        part: NDArray[np.int64],
        batch: NDArray[np.int64],
        prepared: Any,
    ) -> tuple[PreferenceLosses, Tensor, int]:
        """See `PairsTask.losses`; `prepared` is kto's KL."""
        pairs = [self.data.rows[index][:2] for index in part.tolist()]
        rows = pack_pairs(pairs, self.context, self.runtime.parallel.pieces)
        policy = answer_log_probabilities(model, rows, len(part), self.runtime)
        device = policy.chosen_P.device
        reference: tuple[Tensor | None, Tensor | None] = (None, None)
        if self.reference is not None:
            kept = (self.reference.chosen_P, self.reference.rejected_P)
            chosen_P, rejected_P = (on_device(one[torch.from_numpy(part)], device) for one in kept)
            reference = (chosen_P, rejected_P)
        targets_P2 = on_device(self.targets_N2[part], device).to(policy.chosen_P.dtype)
        losses = preference_losses(
            self.objective.name,
            AnswerPairs(
                policy.chosen_P,
                policy.rejected_P,
                *reference,
                targets_P2[:, 0],
                targets_P2[:, 1],
                0.0 if prepared is None else prepared,
            ),
            self.objective.settings,
        )
        loss = losses.loss_P.sum() / self.weight(batch)
        tokens = int(self.targets_N2[batch, 0].sum())
        if self.objective.sft_weight and tokens:
            loss = loss - self.objective.sft_weight * policy.chosen_P.sum() / tokens
        return losses, loss, rows.tokens
