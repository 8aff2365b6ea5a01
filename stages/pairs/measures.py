"""What is measured of pairs: columns of a training run, and the sums that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from artifacts_schema.kinds import Column
from stages.pairs.losses import PreferenceLosses

COLUMNS = (
    Column("pairs", "int64", "Preference pairs, or single answers, of the step."),
    Column("chosen_reward", "float64", "Mean reward of the chosen answers."),
    Column("rejected_reward", "float64", "Mean reward of the rejected answers."),
    Column("reward_margin", "float64", "Mean reward of chosen over rejected answers."),
    Column(
        "reward_accuracy",
        "float64",
        "Share of pairs whose chosen answer is rewarded more; of single answers, the share "
        "whose reward is on the right side of beta times the KL.",
    ),
)

HELD_OUT_COLUMNS = (
    Column("pairs", "int64", "Preference pairs, or single answers, that were measured."),
    Column("right", "int64", "Of these: as `reward_accuracy` counts them."),
)


def sum_losses(losses: PreferenceLosses) -> dict[str, Tensor]:
    """What `measure_sums` reads, to be added up over micro-batches and ranks."""
    return {
        "pairs": torch.tensor(len(losses.margin_P)),
        "chosen": losses.chosen_reward_P.sum(),
        "rejected": losses.rejected_reward_P.sum(),
        "margin": losses.margin_P.sum(),
        "right": (losses.margin_P > 0).sum(),
    }


def measure_sums(sums: Mapping[str, list[float]]) -> dict[str, Any]:
    """Rewards, their margin and accuracy over a step: the values of `COLUMNS`."""
    pairs = round(sums["pairs"][0])
    return {
        "pairs": pairs,
        "chosen_reward": sums["chosen"][0] / pairs,
        "rejected_reward": sums["rejected"][0] / pairs,
        "reward_margin": sums["margin"][0] / pairs,
        "reward_accuracy": sums["right"][0] / pairs,
    }
