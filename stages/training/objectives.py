"""Losses as functions of logits. The loss of a step is a sum over tokens or pairs, divided once by
the count over the whole batch, so that it does not depend on how the batch is cut into
micro-batches.

B rows, L tokens, V vocabulary, P pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from stages.training.data import IGNORED


def token_losses(logits_BLV: Tensor, targets_BL: Tensor) -> Tensor:
    """Cross-entropy of every token in nats, `[B, L]` float32; 0 where the target is ignored."""
    losses = F.cross_entropy(
        logits_BLV.float().flatten(0, 1),
        targets_BL.flatten(),
        ignore_index=IGNORED,
        reduction="none",
    )
    return losses.view_as(targets_BL)


def sequence_log_probabilities(losses_BL: Tensor, sequences_BL: Tensor, count: int) -> Tensor:
    """Log-probability of each sequence, `[count]`: the sum over its tokens of minus their loss.

    `sequences_BL` numbers the sequence of each token, -1 for padding.
    """
    index = torch.where(sequences_BL < 0, count, sequences_BL).flatten()
    sums = torch.zeros(count + 1, dtype=losses_BL.dtype, device=losses_BL.device)
    return -sums.index_add(0, index, losses_BL.flatten())[:count]


@dataclass(frozen=True)
class PreferenceLosses:
    """Of each pair: loss, and how much more the policy rewards the chosen answer, all `[P]`."""

    loss_P: Tensor
    margin_P: Tensor


def dpo_losses(
    chosen_P: Tensor,
    rejected_P: Tensor,
    reference_chosen_P: Tensor,
    reference_rejected_P: Tensor,
    beta: float,
) -> PreferenceLosses:
    """Direct preference optimization, Rafailov et al. 2023 (arXiv 2305.18290), equation 7.

    All arguments are log-probabilities of whole answers under the policy and the reference. The
    margin is the difference of the implicit rewards `beta * (log pi - log pi_ref)`.
    """
    margin_P = beta * ((chosen_P - reference_chosen_P) - (rejected_P - reference_rejected_P))
    return PreferenceLosses(-F.logsigmoid(margin_P), margin_P)
