"""Losses of preference pairs against TRL's values, the papers' formulas and DPO's gradient."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from artifacts_schema.errors import UsageError
from stages.pairs.losses import (
    LOSSES,
    AnswerPairs,
    LossSettings,
    loss_of_reference,
    mean_kl,
    preference_losses,
    sequence_log_probabilities,
)
from stages.preference.config import PreferenceConfig


def test_sequences_sum_over_their_tokens_and_padding_counts_nowhere():
    losses = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
    sequences = torch.tensor([[0, 0, 2], [1, 1, -1]])
    assert sequence_log_probabilities(losses, sequences, 3).tolist() == [-3.0, -24.0, -4.0]


PAIRS = AnswerPairs(
    chosen_P=torch.tensor([-2.5, -1.2], dtype=torch.float64),
    rejected_P=torch.tensor([-2.0, -3.0], dtype=torch.float64),
    reference_chosen_P=torch.tensor([-3.1, -1.1], dtype=torch.float64),
    reference_rejected_P=torch.tensor([-1.6, -2.8], dtype=torch.float64),
    chosen_tokens_P=torch.tensor([4.0, 3.0], dtype=torch.float64),
    rejected_tokens_P=torch.tensor([2.0, 4.0], dtype=torch.float64),
)
"""Two pairs; log-ratio differences 1.0 and 0.1."""

MEANS = {
    ("sigmoid", 0.1): 0.666278,
    ("sigmoid", 0.5): 0.571268,
    ("cdpo", 0.5): 0.598768,
    ("robust", 0.1): 0.659403,
    ("robust", 0.5): 0.536893,
    ("hinge", 0.1): 0.945000,
    ("hinge", 0.5): 0.725000,
    ("ipo_mean", 0.1): 23.228054,
    ("ipo_mean", 0.5): 0.694722,
    ("sigmoid_mean", 0.1): 0.684057,
    ("sigmoid_mean", 0.5): 0.649230,
    ("apo_zero", 0.1): 0.986253,
    ("apo_zero", 0.5): 0.931621,
    ("apo_down", 0.1): 0.992508,
    ("apo_down", 0.5): 0.963494,
    ("bco_pair", 0.1): 1.359151,
    ("bco_pair", 0.5): 1.257675,
    ("cpo", 0.1): 0.662826,
}
"""Means over the two pairs by TRL 1.16 (cdpo: the formula by hand; label_smoothing 0.1)."""


@pytest.mark.parametrize(("name", "beta"), MEANS)
def test_losses_equal_the_values_of_trl(name, beta):
    noise = 0.1 if name in ("cdpo", "robust") else 0.0
    losses = preference_losses(name, PAIRS, LossSettings(beta, label_smoothing=noise))
    assert losses.loss_P.mean().item() == pytest.approx(MEANS[name, beta], abs=1e-6, rel=1e-7)


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("sigmoid", LossSettings(0.1), (0.644397, 0.688160)),
        ("sigmoid", LossSettings(0.5), (0.474077, 0.668460)),
        ("sigmoid_mean", LossSettings(5.0), (0.160224, 0.652348)),  # open-instruct's dpo_norm
        ("simpo", LossSettings(2.0, gamma=0.5), (0.575939, 0.598139)),
        ("cpo", LossSettings(0.1), (0.718460, 0.607192)),
        ("orpo", LossSettings(0.1), (0.040899, 0.036486)),
        ("ipo_sum", LossSettings(0.5), (0.0, 0.81)),  # (1.0 - 1)², (0.1 - 1)²
    ],
)
def test_losses_of_each_pair(name, settings, expected):
    losses = preference_losses(name, PAIRS, settings)
    assert losses.loss_P.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("beta", "weight", "kl", "mean"),
    [
        (0.1, 1.0, 0.2, 0.493127),
        (0.5, 1.0, 0.2, 0.465830),
        (0.1, 1.5, 0.2, 0.615002),
        (0.5, 1.5, 0.2, 0.575295),
        (0.1, 1.0, -0.3, 0.493126),
        (0.5, 1.0, -0.3, 0.465810),
        (0.1, 1.5, -0.3, 0.616252),
        (0.5, 1.5, -0.3, 0.581459),
    ],
)
def test_kto_of_two_desirable_and_two_undesirable_answers(beta, weight, kl, mean):
    """TRL's values; a negative estimate counts as 0."""
    pairs = replace(PAIRS, kl=mean_kl(torch.tensor(kl, dtype=torch.float64)))
    settings = LossSettings(beta, undesirable_weight=weight)
    losses = preference_losses("kto", pairs, settings)
    assert losses.loss_P.mean().item() == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(("beta", "gamma", "mean"), [(2.0, 1.0, 0.840147), (2.5, 1.4, 0.970306)])
def test_simpo_at_other_margins(beta, gamma, mean):
    losses = preference_losses("simpo", PAIRS, LossSettings(beta, gamma))
    assert losses.loss_P.mean().item() == pytest.approx(mean, abs=1e-6)


def test_orpo_with_the_cross_entropy_of_the_chosen_is_that_of_the_paper():
    """Mean over the seven chosen tokens .528571; the sum is TRL's 0.567264."""
    term = preference_losses("orpo", PAIRS, LossSettings(0.1)).loss_P.mean()
    cross_entropy = -PAIRS.chosen_P.sum() / PAIRS.chosen_tokens_P.sum()
    assert cross_entropy.item() == pytest.approx(0.528571, abs=1e-6)
    assert (term + cross_entropy).item() == pytest.approx(0.567264, abs=1e-6)


def test_rewards_are_beta_times_the_log_ratio():
    losses = preference_losses("sigmoid", PAIRS, LossSettings(0.5))
    assert losses.margin_P.tolist() == pytest.approx([0.5, 0.05])
    assert losses.chosen_reward_P.tolist() == pytest.approx([0.3, -0.05])
    assert losses.rejected_reward_P.tolist() == pytest.approx([-0.2, -0.1])


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_falls_as_the_chosen_rises_beside_the_rejected_and_rewards_have_no_gradient(
    name,
):
    chosen, rejected = (one.clone().requires_grad_() for one in (PAIRS.chosen_P, PAIRS.rejected_P))
    noise = 0.1 if name in ("cdpo", "robust") else 0.0
    pairs = replace(PAIRS, chosen_P=chosen, rejected_P=rejected)
    losses = preference_losses(name, pairs, LossSettings(0.3, label_smoothing=noise))
    losses.loss_P.sum().backward()
    assert not losses.margin_P.requires_grad
    assert (rejected.grad > 0).all()
    # APO-down lowers both answers, the rejected one more: D'Oosterlinck et al. 2024, figure 2.
    assert name == "apo_down" or (chosen.grad < 0).all()


def test_a_policy_equal_to_its_reference_has_known_losses():
    known = {"sigmoid": math.log(2), "sigmoid_mean": math.log(2), "hinge": 1.0, "apo_zero": 1.0}
    known |= {"bco_pair": 2 * math.log(2), "ipo_sum": 2.777778, "ipo_mean": 2.777778}
    for name, value in known.items():
        assert loss_of_reference(name, LossSettings(0.3)) == pytest.approx(value, abs=1e-6)


def test_dpo_pushes_the_chosen_up_and_the_rejected_down_as_its_gradient_says():
    """Rafailov et al. 2023, section 4: the gradient is beta * sigmoid(-margin), + and -."""
    chosen = PAIRS.chosen_P.clone().requires_grad_()
    rejected = PAIRS.rejected_P.clone().requires_grad_()
    pairs = replace(PAIRS, chosen_P=chosen, rejected_P=rejected)
    preference_losses("sigmoid", pairs, LossSettings(0.5)).loss_P.sum().backward()
    weight = 0.5 * torch.sigmoid(-0.5 * torch.tensor([1.0, 0.1], dtype=torch.float64))
    torch.testing.assert_close(chosen.grad, -weight)
    torch.testing.assert_close(rejected.grad, weight)


@pytest.mark.parametrize(
    "fields",
    [
        {"loss": "sigmoid", "gamma": 0.5},
        {"loss": "hinge", "label_smoothing": 0.1},
        {"loss": "cdpo"},
        {"loss": "robust", "label_smoothing": 0.5},
        {"loss": "sigmoid", "undesirable_weight": 2.0},
    ],
)
def test_a_field_that_the_loss_does_not_read_is_refused(fields):
    with pytest.raises(UsageError):
        PreferenceConfig.parse(fields, where="config")
    assert PreferenceConfig(loss="orpo").sft == 1.0
    assert PreferenceConfig(loss="orpo", sft_weight=0.0).sft == 0.0
    assert PreferenceConfig(loss="simpo").sft == 0.0
