"""Log-probabilities of answers, and those of the reference model, computed once for a run.

P pairs; each is packed as two documents, 2p its chosen and 2p + 1 its rejected answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from stages.dpo.pairs import Pair, Pairs
from stages.training import sealed
from stages.training.preference import sequence_log_probabilities
from stages.training.rows import Rows, pack_rows
from stages.training.runtime import Runtime

if TYPE_CHECKING:
    from stages.engine import Context

_FILE = "reference.safetensors"


@dataclass(frozen=True)
class AnswerLogProbabilities:
    """Of the chosen and the rejected answers, `[P]` each."""

    chosen_P: Tensor
    rejected_P: Tensor


def packed_pairs(pairs: Sequence[Pair], context: int) -> Rows:
    """Both answers of every pair in rows of at most `context` tokens."""
    return pack_rows([one for pair in pairs for one in (pair.chosen, pair.rejected)], context)


def answer_log_probabilities(
    model: nn.Module, rows: Rows, pairs: int, runtime: Runtime
) -> AnswerLogProbabilities:
    """Under `model`, of the answers in `rows` as `packed_pairs` laid them."""
    losses_BL = runtime.losses(model, rows)
    sequences_BL = torch.from_numpy(rows.documents_BL).to(losses_BL.device)
    answers = sequence_log_probabilities(losses_BL, sequences_BL, 2 * pairs)
    return AnswerLogProbabilities(answers[0::2], answers[1::2])


def reference_log_probabilities(
    context: Context, model: nn.Module, data: Pairs, runtime: Runtime
) -> AnswerLogProbabilities:
    """Of all pairs under `model` as it is now: read from work, or computed and kept there."""
    folder = context.work / "reference"
    try:
        sealed.unseal(folder)
    except sealed.Unsealed:
        if not context.state.fetch(folder.name):
            computed = _computed(context, model, data, runtime)
            tensors = {"chosen": computed.chosen_P, "rejected": computed.rejected_P}
            sealed.seal(folder, {_FILE: lambda path: save_file(tensors, path)}, {})
            context.state.publish(folder.name, folder)
            return computed
    tensors = load_file(folder / _FILE)
    return AnswerLogProbabilities(tensors["chosen"], tensors["rejected"])


@torch.no_grad()
def _computed(
    context: Context, model: nn.Module, data: Pairs, runtime: Runtime
) -> AnswerLogProbabilities:
    model.eval()
    length: int = model.config.context  # type: ignore[union-attr, assignment]
    parts: list[AnswerLogProbabilities] = []
    for start in range(0, len(data.pairs), runtime.micro_batch):
        context.check_stop()
        pairs = data.pairs[start : start + runtime.micro_batch]
        rows = packed_pairs(pairs, length)
        parts.append(answer_log_probabilities(model, rows, len(pairs), runtime))
        context.progress(start, len(data.pairs), unit="reference pairs")
    return AnswerLogProbabilities(
        torch.cat([part.chosen_P.cpu() for part in parts]),
        torch.cat([part.rejected_P.cpu() for part in parts]),
    )
