"""Losses of preference pairs as functions of log-probabilities.

B rows, L tokens, P pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


def sequence_log_probabilities(losses_BL: Tensor, sequences_BL: Tensor, count: int) -> Tensor:
    """Log-probability of each sequence, `[count]`: the sum over its tokens of minus their loss.

    `sequences_BL` numbers the sequence of each token, -1 for padding.
    """
    index = torch.where(sequences_BL < 0, count, sequences_BL).flatten()
    sums = torch.zeros(count + 1, dtype=losses_BL.dtype, device=losses_BL.device)
    return -sums.index_add(0, index, losses_BL.flatten())[:count]


@dataclass(frozen=True)
class PreferenceLosses:
    """Of each pair: loss, rewards of both answers, and how much higher the chosen's is; `[P]`."""

    loss_P: Tensor
    chosen_reward_P: Tensor
    rejected_reward_P: Tensor
    margin_P: Tensor


def dpo_losses(
    chosen_P: Tensor,
    rejected_P: Tensor,
    reference_chosen_P: Tensor,
    reference_rejected_P: Tensor,
    beta: float,
) -> PreferenceLosses:
    """Direct preference optimization, Rafailov et al. 2023 (arXiv 2305.18290), equation 7.

    All arguments are log-probabilities of whole answers under the policy and the reference. Rewards
    are the implicit ones, `beta * (log pi - log pi_ref)`.
    """
    chosen_P, rejected_P = chosen_P - reference_chosen_P, rejected_P - reference_rejected_P
    margin_P = beta * (chosen_P - rejected_P)
    return PreferenceLosses(-F.logsigmoid(margin_P), beta * chosen_P, beta * rejected_P, margin_P)
