"""Losses of preference pairs against TRL's values and the paper's gradient."""

import math

import pytest
import torch

from stages.dpo.task import dpo_losses, sequence_log_probabilities


def test_sequences_sum_over_their_tokens_and_padding_counts_nowhere():
    losses = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
    sequences = torch.tensor([[0, 0, 2], [1, 1, -1]])
    assert sequence_log_probabilities(losses, sequences, 3).tolist() == [-3.0, -24.0, -4.0]


PAIRS = {
    "chosen_P": torch.tensor([-2.5, -1.2]),
    "rejected_P": torch.tensor([-2.0, -3.0]),
    "reference_chosen_P": torch.tensor([-3.1, -1.1]),
    "reference_rejected_P": torch.tensor([-1.6, -2.8]),
}
"""Two pairs; log-ratio differences 1.0 and 0.1."""


@pytest.mark.parametrize(
    ("beta", "expected"), [(0.1, (0.644397, 0.688160)), (0.5, (0.474077, 0.668460))]
)
def test_dpo_equals_the_values_of_trl(beta, expected):
    """Values of TRL 1.16's sigmoid loss on these log-probabilities (see also the oracle test)."""
    losses = dpo_losses(**PAIRS, beta=beta)
    assert losses.loss_P.tolist() == pytest.approx(expected, abs=1e-6)
    assert losses.margin_P.tolist() == pytest.approx([beta * 1.0, beta * 0.1], abs=1e-6)
    assert losses.chosen_reward_P.tolist() == pytest.approx([beta * 0.6, beta * -0.1], abs=1e-6)
    assert losses.rejected_reward_P.tolist() == pytest.approx([beta * -0.4, beta * -0.2], abs=1e-6)


def test_dpo_of_a_policy_equal_to_its_reference_is_ln_2():
    same = torch.tensor([-3.0, -7.5])
    losses = dpo_losses(same, same - 1, same, same - 1, beta=0.3)
    assert losses.loss_P.tolist() == pytest.approx([math.log(2)] * 2)


def test_dpo_pushes_the_chosen_up_and_the_rejected_down_as_its_gradient_says():
    """Rafailov et al. 2023, section 4: the gradient is beta * sigmoid(-margin), + and -."""
    chosen = PAIRS["chosen_P"].clone().requires_grad_()
    rejected = PAIRS["rejected_P"].clone().requires_grad_()
    given = {**PAIRS, "chosen_P": chosen, "rejected_P": rejected}
    dpo_losses(**given, beta=0.5).loss_P.sum().backward()
    weight = 0.5 * torch.sigmoid(-0.5 * torch.tensor([1.0, 0.1]))
    torch.testing.assert_close(chosen.grad, -weight)
    torch.testing.assert_close(rejected.grad, weight)
