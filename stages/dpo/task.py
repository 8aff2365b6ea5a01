"""Direct preference optimization as a task of the training loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from artifacts_schema.kinds import Column
from stages.dpo.pairs import Pairs
from stages.dpo.reference import (
    AnswerLogProbabilities,
    answer_log_probabilities,
    packed_pairs,
)
from stages.training.examples import ExampleClock
from stages.training.monitor import HeldOut
from stages.training.preference import PreferenceLosses, dpo_losses
from stages.training.runtime import Runtime
from stages.training.task import Share, Task


class DpoTask(Task):
    """Mean DPO loss over the pairs of a step; a micro-batch holds whole pairs."""

    columns = (
        Column("pairs", "int64", "Preference pairs of the step."),
        Column("chosen_reward", "float64", "Mean reward of the chosen answers."),
        Column("rejected_reward", "float64", "Mean reward of the rejected answers."),
        Column("reward_margin", "float64", "Mean reward of chosen over rejected answers."),
        Column(
            "reward_accuracy", "float64", "Share of pairs whose chosen answer is rewarded more."
        ),
    )

    def __init__(
        self,
        data: Pairs,
        reference: AnswerLogProbabilities,
        clock: ExampleClock,
        runtime: Runtime,
        context: int,
        beta: float,
    ) -> None:
        self.data, self.reference, self.clock = data, reference, clock
        self.runtime, self.context, self.beta = runtime, context, beta

    def batch(self, training_step: int) -> NDArray[np.int64]:
        """The step's pairs, by number."""
        return self.data.train[self.clock.batch(training_step)]

    def shares(self, model: nn.Module, batch: NDArray[np.int64]) -> Iterator[Share]:
        """The step's pairs, `micro_batch` of them at a time."""
        for part in self._parts(batch):
            losses, tokens = self._losses(model, part)
            yield Share(
                losses.loss_P.sum() / len(batch),
                tokens,
                {
                    "pairs": torch.tensor(len(part), device=losses.margin_P.device),
                    "chosen": losses.chosen_reward_P.sum(),
                    "rejected": losses.rejected_reward_P.sum(),
                    "margin": losses.margin_P.sum(),
                    "right": (losses.margin_P > 0).sum(),
                },
            )

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """Rewards, their margin and accuracy over the step."""
        pairs = round(sums["pairs"][0])
        return {
            "pairs": pairs,
            "chosen_reward": sums["chosen"][0] / pairs,
            "rejected_reward": sums["rejected"][0] / pairs,
            "reward_margin": sums["margin"][0] / pairs,
            "reward_accuracy": sums["right"][0] / pairs,
        }

    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """Mean DPO loss over the held-out pairs."""
        pairs = self.data.held_out
        if not len(pairs):
            return []
        total = sum(
            self._losses(model, part)[0].loss_P.double().sum().item() for part in self._parts(pairs)
        )
        return [HeldOut("all", total / len(pairs), None)]

    def _parts(self, chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        size = self.runtime.micro_batch
        return [chosen[start : start + size] for start in range(0, len(chosen), size)]

    def _losses(self, model: nn.Module, part: NDArray[np.int64]) -> tuple[PreferenceLosses, int]:
        rows = packed_pairs([self.data.pairs[index] for index in part.tolist()], self.context)
        policy = answer_log_probabilities(model, rows, len(part), self.runtime)
        index, device = torch.from_numpy(part), policy.chosen_P.device
        losses = dpo_losses(
            policy.chosen_P,
            policy.rejected_P,
            self.reference.chosen_P[index].to(device),
            self.reference.rejected_P[index].to(device),
            self.beta,
        )
        return losses, rows.tokens
