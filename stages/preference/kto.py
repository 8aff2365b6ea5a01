"""KTO: answers judged one by one, against the model's drift on answers to other prompts.

A row is a pair, or one answer with a label (`NO_ANSWER` is its other side). To each row belongs a
mismatched sequence, its prompt before the answer of another row: over those of a step the KL of the
loss is estimated, as TRL does. Pairs are measured as pairs; once some row is a single answer, all
answers are measured by themselves.

P rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from artifacts_schema.errors import InputError, UsageError
from stages.pairs.losses import LossSettings, PreferenceLosses, mean_kl
from stages.preference.task import PreferenceTask, pack_pairs, sum_log_probabilities
from stages.training.examples import Example, ExampleSet
from stages.training.rows import on_device


def with_mismatches(data: ExampleSet, context: int) -> ExampleSet:
    """Each row with a third sequence: its prompt, and the answer of the next row of another prompt.

    In at most `context` tokens; after the last row comes the first one, so a row has one partner in
    every run. Of a pair the chosen answer is taken. UsageError where all rows have one prompt.
    """
    answers = [next(one for one in row if one.targets) for row in data.rows]
    prompts = [_prompt(one) for one in answers]
    rows = [
        (*row, _mismatch(own, answers[other], context))
        for row, own, other in zip(data.rows, answers, _following(prompts), strict=True)
    ]
    return replace(data, rows=rows)


def _prompt(answer: Example) -> bytes:
    return answer.ids[: int(np.argmax(answer.trained))].tobytes()


def _following(prompts: Sequence[bytes]) -> list[int]:
    """Of each prompt the number of the next one that differs, around the end."""
    count = len(prompts)
    if len(set(prompts)) < 2:
        raise UsageError("kto needs answers to two prompts at least", where="loss")
    following = [0] * count
    following[-1] = next(one for one in range(count) if prompts[one] != prompts[-1])
    for one in range(count - 2, -1, -1):
        following[one] = one + 1 if prompts[one + 1] != prompts[one] else following[one + 1]
    return following


def _mismatch(own: Example, other: Example, context: int) -> Example:
    """The prompt of `own`, cut so that a token of an answer fits, then the answer of `other`."""
    prompt = min(int(np.argmax(own.trained)), context)
    begin = int(np.argmax(other.trained))
    ids = np.concatenate([own.ids[:prompt], other.ids[begin:]])
    learnt = np.concatenate([np.zeros(prompt, dtype=bool), other.trained[begin:]])
    return Example(ids, learnt).cut(context)


@dataclass(frozen=True)
class AnswerCounts:
    """Answers to learn from, by class."""

    desirable: int
    undesirable: int

    @classmethod
    def from_data(cls, data: ExampleSet) -> AnswerCounts:
        """Of the rows to train on. InputError where all are of one class."""
        sides = [[bool(one.targets) for one in data.rows[n][:2]] for n in data.train.tolist()]
        counts = cls(*np.array(sides, dtype=np.int64).sum(axis=0).tolist())
        for name, other in (("desirable", "undesirable"), ("undesirable", "desirable")):
            if not getattr(counts, name):
                raise InputError(
                    f"kto with one class: all {getattr(counts, other):,} answers are {other}",
                    where="preferences",
                    hint="add answers of the other label; good answers alone are for sft",
                )
        return counts

    def ratio(self, settings: LossSettings) -> float:
        """Desirable to undesirable answers, each by its weight."""
        weighted = self.desirable * settings.desirable_weight
        return weighted / (self.undesirable * settings.undesirable_weight)

    def advice(self, settings: LossSettings) -> str | None:
        """What to do about a ratio beyond 1 to 4/3, as KTO's authors advise and TRL 1.16 warns."""
        ratio = self.ratio(settings)
        if 1 <= ratio <= 4 / 3:
            return None
        return (
            f"desirable and undesirable answers are weighted {ratio:.3g} to 1, and KTO's authors "
            f"advise 1 to 1.33: desirable_weight {settings.desirable_weight / ratio:.3g} to "
            f"{settings.desirable_weight / ratio * 4 / 3:.3g}"
        )

    def loss_of_reference(self, settings: LossSettings) -> float:
        """The mean loss of a policy that is its own reference: half of each answer's weight."""
        desirable = self.desirable * settings.desirable_weight
        undesirable = self.undesirable * settings.undesirable_weight
        return (desirable + undesirable) / (2 * (self.desirable + self.undesirable))


class KtoTask(PreferenceTask):
    """Mean loss over the answers of a step, each beside the KL over the step's rows."""

    @property
    def paired(self) -> bool:
        """Whether every row has both answers."""
        return bool((self.targets_N2 > 0).all())

    def answers(self, rows: NDArray[np.int64]) -> int:
        """How many answers these rows have."""
        return int((self.targets_N2[rows] > 0).sum())

    @torch.no_grad()
    def prepare(self, model: nn.Module, batch: NDArray[np.int64]) -> Tensor:
        """The estimate of KL(pi, ref) over all rows of `batch`, on all ranks."""
        reference = None if self.reference is None else self.reference.mismatched_P
        assert reference is not None, "kto's reference has mismatched answers"
        ranks, device = self.runtime.ranks, self.runtime.device
        total = torch.zeros((), dtype=torch.float32, device=device)
        for part in self.parts(batch):
            alone = [self.data.rows[index][2:] for index in part.tolist()]
            rows = pack_pairs(alone, self.context, self.runtime.parallel.pieces)
            (policy_P,) = sum_log_probabilities(model, rows, len(part), 1, self.runtime)
            kept_P = on_device(reference[torch.from_numpy(part)], device)
            total += (policy_P - kept_P).sum()
        mean = ranks.sum(total[None])[0] / len(batch)
        return mean_kl(mean)

    def weight(self, batch: NDArray[np.int64]) -> float:
        """Pairs, where each single answer is half of one."""
        return self.answers(batch) / 2

    def sums(
        self, losses: PreferenceLosses, part: NDArray[np.int64], prepared: Any
    ) -> dict[str, Tensor]:
        """Of pairs as ever; else by answer, right where its reward is on its side of the KL's."""
        if self.paired:
            return super().sums(losses, part, prepared)
        present_P2 = on_device(self.targets_N2[part] > 0, losses.loss_P.device)
        rewards_P2 = torch.stack((losses.chosen_reward_P, losses.rejected_reward_P), dim=1)
        level = self.objective.settings.beta * prepared
        over_P2 = (rewards_P2 - level) * torch.tensor([1, -1], device=rewards_P2.device)
        chosen, rejected = (rewards_P2 * present_P2).sum(dim=0)
        desirable, undesirable = present_P2.sum(dim=0)
        return {
            "pairs": desirable + undesirable,
            "chosen": chosen,
            "rejected": rejected,
            "desirable": desirable,
            "undesirable": undesirable,
            "right": ((over_P2 > 0) & present_P2).sum(),
        }

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """As of pairs; of single answers NaN where a step lacks a class."""
        if self.paired:
            return super().measures(sums)
        chosen, rejected = (
            sums[reward][0] / sums[count][0] if sums[count][0] else math.nan
            for reward, count in (("chosen", "desirable"), ("rejected", "undesirable"))
        )
        answers = round(sums["pairs"][0])
        return {
            "pairs": answers,
            "chosen_reward": chosen,
            "rejected_reward": rejected,
            "reward_margin": chosen - rejected,
            "reward_accuracy": sums["right"][0] / answers,
        }
