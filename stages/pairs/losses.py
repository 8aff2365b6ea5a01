"""Losses of preference pairs: pure functions of the log-probabilities of whole answers.

A log-probability is a sum over the answer's tokens; a loss that averages over them has `mean` in
its name, or says so. `delta` of a pair is how much more the policy prefers the chosen answer than
the reference does: (log pi(chosen) - log ref(chosen)) - (log pi(rejected) - log ref(rejected)).

Shapes: P pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from stages.pairs.config import WITHOUT_REFERENCE, LossName


@dataclass(frozen=True)
class AnswerPairs:
    """Log-probabilities of both answers under the policy and the reference, and their tokens.

    The reference's are None for a loss without one.
    """

    chosen_P: Tensor
    rejected_P: Tensor
    reference_chosen_P: Tensor | None
    reference_rejected_P: Tensor | None
    chosen_tokens_P: Tensor
    rejected_tokens_P: Tensor
    kl: Tensor | float = 0.0
    """kto: estimate of KL(pi, ref), at least 0, without a gradient."""

    @property
    def ratios(self) -> tuple[Tensor, Tensor]:
        """Of the chosen and the rejected answers: log pi - log ref."""
        assert self.reference_chosen_P is not None, "the loss has a reference"
        assert self.reference_rejected_P is not None, "the loss has a reference"
        return self.chosen_P - self.reference_chosen_P, self.rejected_P - self.reference_rejected_P

    @property
    def delta(self) -> Tensor:
        """See the head of the module."""
        chosen_P, rejected_P = self.ratios
        return chosen_P - rejected_P

    @property
    def mean_delta(self) -> Tensor:
        """The same of means over the tokens of each answer."""
        chosen_P, rejected_P = self.ratios
        return chosen_P / self.chosen_tokens_P - rejected_P / self.rejected_tokens_P

    @property
    def means(self) -> tuple[Tensor, Tensor]:
        """Of both answers: the policy's mean log-probability of a token."""
        return self.chosen_P / self.chosen_tokens_P, self.rejected_P / self.rejected_tokens_P


@dataclass(frozen=True)
class LossSettings:
    """What the losses read; see `PreferenceConfig`."""

    beta: float
    gamma: float = 0.0
    label_smoothing: float = 0.0
    desirable_weight: float = 1.0
    undesirable_weight: float = 1.0


@dataclass(frozen=True)
class PreferenceLosses:
    """Of each pair: loss, rewards of both answers, and how much higher the chosen's is; `[P]`."""

    loss_P: Tensor
    chosen_reward_P: Tensor
    rejected_reward_P: Tensor
    margin_P: Tensor


def sigmoid(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """DPO: Rafailov et al. 2023 (arXiv 2305.18290), equation 7."""
    return -F.logsigmoid(settings.beta * pairs.delta)


def cdpo(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """Conservative DPO: labels are wrong with probability `label_smoothing` (Mitchell 2023)."""
    logits_P, noise = settings.beta * pairs.delta, settings.label_smoothing
    return -(1 - noise) * F.logsigmoid(logits_P) - noise * F.logsigmoid(-logits_P)


def robust(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """The unbiased estimate under that noise: Chowdhury et al. 2024 (arXiv 2403.00409)."""
    logits_P, noise = settings.beta * pairs.delta, settings.label_smoothing
    biased_P = -(1 - noise) * F.logsigmoid(logits_P) + noise * F.logsigmoid(-logits_P)
    return biased_P / (1 - 2 * noise)


def hinge(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """SLiC's margin on DPO's logits: Liu et al. 2023 (arXiv 2309.06657)."""
    return F.relu(1 - settings.beta * pairs.delta)


def ipo_sum(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """IPO as printed: Azar et al. 2023 (arXiv 2310.12036), equation 17, of sums over tokens."""
    squared: Tensor = (pairs.delta - 1 / (2 * settings.beta)) ** 2
    return squared


def ipo_mean(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """IPO of means over tokens, as its authors advise (and TRL's `ipo` computes)."""
    squared: Tensor = (pairs.mean_delta - 1 / (2 * settings.beta)) ** 2
    return squared


def sigmoid_mean(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """DPO of means over tokens (TRL's `sigmoid_norm`, open-instruct's `dpo_norm`)."""
    return -F.logsigmoid(settings.beta * pairs.mean_delta)


def apo_zero(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """APO-zero, for chosen answers above the model: D'Oosterlinck et al. 2024, equation 7."""
    chosen_P, rejected_P = pairs.ratios
    beta = settings.beta
    return 1 - torch.sigmoid(beta * chosen_P) + torch.sigmoid(beta * rejected_P)


def apo_down(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """APO-down, for chosen answers below the model (arXiv 2408.06266), equation 8."""
    chosen_P, _ = pairs.ratios
    beta = settings.beta
    return torch.sigmoid(beta * chosen_P) + 1 - torch.sigmoid(beta * pairs.delta)


def bco_pair(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """Binary classifier optimization on pairs, without its reward shift: Jung et al. 2024."""
    chosen_P, rejected_P = pairs.ratios
    beta = settings.beta
    return -F.logsigmoid(beta * chosen_P) - F.logsigmoid(-beta * rejected_P)


def kto(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """KTO: Ethayarajh et al. 2024 (arXiv 2402.01306), equation 8; half the sum of both answers'.

    Each is judged by itself, a chosen one as desirable and a rejected one as undesirable, against
    the KL of `AnswerPairs`. An answer without tokens is none, and adds nothing.
    """
    chosen_P, rejected_P = pairs.ratios
    gain_P = 1 - torch.sigmoid(settings.beta * (chosen_P - pairs.kl))
    loss_P = 1 - torch.sigmoid(settings.beta * (pairs.kl - rejected_P))
    gain_P = settings.desirable_weight * gain_P * (pairs.chosen_tokens_P > 0)
    loss_P = settings.undesirable_weight * loss_P * (pairs.rejected_tokens_P > 0)
    return (gain_P + loss_P) / 2


def mean_kl(difference: Tensor) -> Tensor:
    """kto's KL(pi, ref): the mean of log pi - log ref over answers that were not given to their
    prompts, at least 0, without a gradient (section 4.1 of the same).
    """
    return difference.clamp(min=0).detach()


def simpo(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """SimPO, of means over tokens and without a reference: Meng et al. 2024 (arXiv 2405.14734).

    `gamma` is the target margin itself, equation 6; open-instruct states its ratio to beta.
    """
    chosen_P, rejected_P = pairs.means
    return -F.logsigmoid(settings.beta * (chosen_P - rejected_P) - settings.gamma)


def orpo(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """The odds-ratio term of ORPO, of means over tokens: Hong et al. 2024 (arXiv 2403.07691).

    The paper's loss adds the mean cross-entropy of chosen answers (`sft_weight` 1, its default).
    """
    chosen_P, rejected_P = pairs.means
    log_odds_P = chosen_P - rejected_P
    log_odds_P = log_odds_P - torch.log1p(-chosen_P.exp()) + torch.log1p(-rejected_P.exp())
    return -settings.beta * F.logsigmoid(log_odds_P)


def cpo(pairs: AnswerPairs, settings: LossSettings) -> Tensor:
    """The preference term of CPO: Xu et al. 2024 (arXiv 2401.08417), equation 3, of sums.

    The paper's loss adds the cross-entropy of chosen answers (`sft_weight` 1, its default).
    """
    return -F.logsigmoid(settings.beta * (pairs.chosen_P - pairs.rejected_P))


LOSSES: dict[LossName, Callable[[AnswerPairs, LossSettings], Tensor]] = {
    "sigmoid": sigmoid,
    "cdpo": cdpo,
    "robust": robust,
    "hinge": hinge,
    "ipo_sum": ipo_sum,
    "ipo_mean": ipo_mean,
    "sigmoid_mean": sigmoid_mean,
    "apo_zero": apo_zero,
    "apo_down": apo_down,
    "bco_pair": bco_pair,
    "kto": kto,
    "simpo": simpo,
    "orpo": orpo,
    "cpo": cpo,
}

_OF_MEANS = ("ipo_mean", "sigmoid_mean", "simpo", "orpo")


def preference_losses(
    name: LossName, pairs: AnswerPairs, settings: LossSettings
) -> PreferenceLosses:
    """The loss of each pair, and the rewards that it implies; rewards carry no gradient.

    A reward is beta times the answer's log-probability, less the reference's where the loss has
    one; a mean over its tokens where the loss is of means.
    """
    with torch.no_grad():
        rewards = (pairs.chosen_P, pairs.rejected_P)
        if pairs.reference_chosen_P is not None:
            rewards = pairs.ratios
        if name in _OF_MEANS:
            rewards = (rewards[0] / pairs.chosen_tokens_P, rewards[1] / pairs.rejected_tokens_P)
        chosen_P, rejected_P = (settings.beta * one for one in rewards)
    loss_P = LOSSES[name](pairs, settings)
    return PreferenceLosses(loss_P, chosen_P, rejected_P, chosen_P - rejected_P)


def loss_of_reference(name: LossName, settings: LossSettings) -> float:
    """The loss of a policy that is its own reference, of a loss that has one."""
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    pairs = AnswerPairs(zero, zero, zero, zero, one, one)
    return float(LOSSES[name](pairs, settings))


class LossConfig(Protocol):
    """A config that names a loss and has the fields of `LossSettings` that it reads."""

    @property
    def loss_name(self) -> LossName:
        """The loss."""

    @property
    def sft(self) -> float:
        """Weight of the mean cross-entropy of chosen answers."""

    def plain(self) -> dict[str, Any]:
        """Its fields."""


@dataclass(frozen=True)
class Objective:
    """The loss of a run: its name and settings, and the weight of the cross-entropy beside it."""

    name: LossName
    settings: LossSettings
    sft_weight: float = 0.0

    @classmethod
    def from_config(cls, config: LossConfig) -> Objective:
        """What a config says."""
        known = {one.name for one in fields(LossSettings)}
        plain = {name: value for name, value in config.plain().items() if name in known}
        settings = LossSettings(**plain)
        return cls(config.loss_name, settings, config.sft)

    @property
    def has_reference(self) -> bool:
        """Whether the loss compares with a reference model."""
        return self.name not in WITHOUT_REFERENCE

    @property
    def has_mismatches(self) -> bool:
        """Whether it reads answers beside prompts that they do not belong to."""
        return self.name == "kto"

    @property
    def of_reference(self) -> float | None:
        """The loss of the reference itself; None where there is none, or cross-entropy is added."""
        if not self.has_reference or self.sft_weight:
            return None
        return loss_of_reference(self.name, self.settings)

    def account(self) -> dict[str, Any]:
        """For `run.json`."""
        return {
            "name": self.name,
            **asdict(self.settings),
            "sft_weight": self.sft_weight,
            "of_reference": self.of_reference,
        }


def sequence_log_probabilities(losses_BL: Tensor, sequences_BL: Tensor, count: int) -> Tensor:
    """Log-probability of each sequence, `[count]`: the sum over its tokens of minus their loss.

    `sequences_BL` numbers the sequence of each token, -1 for padding.
    """
    index = torch.where(sequences_BL < 0, count, sequences_BL).flatten()
    sums = torch.zeros(count + 1, dtype=losses_BL.dtype, device=losses_BL.device)
    return -sums.index_add(0, index, losses_BL.flatten())[:count]


def bradley_terry(
    chosen_P: Tensor,
    rejected_P: Tensor,
    margins_P: Tensor | None = None,
    *,
    centring: float = 0.0,
) -> PreferenceLosses:
    """The loss of a reward model, of the scores of both answers: -log sigmoid(chosen - rejected).

    Bradley and Terry 1952; Ouyang et al. 2022 (arXiv 2203.02155), equation 1. A margin is taken off
    the difference: Touvron et al. 2023 (arXiv 2307.09288), equation 2. A loss without margins
    does not change where all scores do by the same amount; `centring` adds that much of
    (chosen + rejected)², which keeps their mean at 0: Eisenstein et al. 2023 (arXiv 2312.09244),
    section 2.
    """
    logits_P = chosen_P - rejected_P
    loss_P = -F.logsigmoid(logits_P if margins_P is None else logits_P - margins_P)
    if centring:
        loss_P = loss_P + centring * (chosen_P + rejected_P).square()
    chosen_P, rejected_P = chosen_P.detach(), rejected_P.detach()
    return PreferenceLosses(loss_P, chosen_P, rejected_P, chosen_P - rejected_P)
