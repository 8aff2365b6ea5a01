import math

import pytest
import torch

from stages.training.data import IGNORED
from stages.training.objectives import (
    dpo_losses,
    sequence_log_probabilities,
    token_losses,
)


def test_uniform_logits_cost_the_log_of_the_vocabulary():
    losses = token_losses(torch.zeros(1, 3, 7), torch.tensor([[0, IGNORED, 6]]))
    assert losses[0].tolist() == pytest.approx([math.log(7), 0.0, math.log(7)])


def test_losses_are_float32_whatever_the_logits_are():
    logits = torch.randn(2, 4, 9, generator=torch.Generator().manual_seed(0)).bfloat16()
    targets = torch.zeros(2, 4, dtype=torch.long)
    losses = token_losses(logits, targets)
    assert losses.dtype == torch.float32
    expected = -torch.log_softmax(logits.float(), -1)[..., 0]
    torch.testing.assert_close(losses, expected)


def test_global_token_mean_does_not_depend_on_micro_batches():
    """Losses [2, 1, 3] and [4]: the token mean is 2.5; the mean of micro-batch means would be 3."""
    shares = [torch.tensor([2.0, 1.0, 3.0]).sum() / 4, torch.tensor([4.0]).sum() / 4]
    assert sum(shares).item() == 2.5


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
