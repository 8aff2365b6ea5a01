"""The reference of a run on packed pairs: log-probabilities under the weights that it starts with.

They are computed once, by the kernels and the precision of the run, and kept in its work.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stages.engine import Context
from stages.pairs.reference import compute_once
from stages.pretrain.pairs_task import PackedAnswers, PairNumbers, PairReference
from stages.pretrain.task import HeldOutSet
from stages.training.permutation import Indices
from stages.training.rows import Rows, measured_batches
from stages.training.runtime import Runtime
from stages.training.token_shards import TokenShards


def start_references(
    context: Context, model: nn.Module, shards: TokenShards, held_out: HeldOutSet, runtime: Runtime
) -> tuple[PairReference, PairReference | None]:
    """Of all pairs to train on, and of the held-out pairs that are measured; None without these.

    To be called on all ranks, with the model as it is before the first step.
    """
    numbers = PairNumbers(shards)
    held_out_numbers = None if held_out.shards is None else PairNumbers(held_out.shards)

    def compute() -> dict[str, Tensor]:
        train = _compute(context, model, shards, numbers, all_sequences(shards), runtime)
        tensors = {"train": train}
        if held_out.shards is not None and held_out_numbers is not None:
            chosen = [
                (held_out.sources_B[rows], held_out.sequences_B[rows])
                for rows in (
                    np.flatnonzero(held_out.sources_B == source)
                    for source in range(len(held_out.sources))
                )
            ]
            tensors["held_out"] = _compute(
                context, model, held_out.shards, held_out_numbers, chosen, runtime
            )
        return tensors

    kept = compute_once(context, runtime.ranks, compute)
    of_held_out = None
    if held_out_numbers is not None:
        of_held_out = PairReference(held_out_numbers, kept["held_out"].numpy())
    return PairReference(numbers, kept["train"].numpy()), of_held_out


def all_sequences(shards: TokenShards) -> list[tuple[Indices, Indices]]:
    """Source and number of every sequence, by source."""
    return [
        (np.full(count, source, dtype=np.int64), np.arange(count, dtype=np.int64))
        for source, count in enumerate(shards.sequences[name] for name in shards.sources)
    ]


@torch.no_grad()
def _compute(
    context: Context,
    model: nn.Module,
    shards: TokenShards,
    numbers: PairNumbers,
    sequences: list[tuple[Indices, Indices]],
    runtime: Runtime,
) -> Tensor:
    """[2, N] Of the pairs of some sequences; 0 for others. Each rank computes some batches."""
    model.eval()
    ranks = runtime.ranks
    answers_2N = torch.zeros((2, len(numbers)), dtype=torch.float32, device=runtime.device)
    batches = list(_batches(sequences, runtime.micro_batch))
    for number, counts in measured_batches(len(batches), ranks):
        if ranks.any(context.stopping):
            context.check_stop()
        sources_B, sequences_B = batches[number]
        batch = shards.batch(sources_B, sequences_B)
        rows = Rows(batch.tokens_BL, batch.targets_BL, batch.documents_BL)
        computed_2P = PackedAnswers.from_rows(rows).log_probabilities(runtime.losses(model, rows))
        if counts:
            places_P: NDArray[np.int64] = numbers.of_rows(sources_B, sequences_B)
            answers_2N[:, torch.from_numpy(places_P).to(runtime.device)] = computed_2P
        context.progress(number, len(batches), unit="reference batches")
    return ranks.sum(answers_2N).cpu()


def _batches(
    sequences: list[tuple[Indices, Indices]], size: int
) -> Iterator[tuple[Indices, Indices]]:
    for sources_B, sequences_B in sequences:
        for start in range(0, len(sources_B), size):
            part = slice(start, start + size)
            yield sources_B[part], sequences_B[part]
