"""How the next token is chosen from the logits of a model.

Shapes: B batch, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

TIE = 1e-4
"""Nats between the two best tokens below which another batch may take the other one."""


class Chosen(NamedTuple):
    """The next token of each row, its log-probability, and whether another one is as good."""

    tokens_B: Tensor
    log_probabilities_B: Tensor
    ties_B: Tensor


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen from the logits; ValueError for a value out of range.

    Temperature 0 takes the likeliest. Otherwise logits are divided by `temperature`, and a token is
    drawn from those with at least `min_p` of the probability of the likeliest (Nguyen et al. 2024,
    arXiv 2407.01082), of these from the `top_k` likeliest, and of these from the likeliest that
    together have probability `top_p` (nucleus sampling, Holtzman et al. 2020, arXiv 1904.09751):
    vLLM's order. Tokens as likely as the last that stays stay too.
    """

    temperature: float = 0.7
    top_p: float = 0.95
    seed: int = 0
    top_k: int | None = None
    min_p: float = 0.0

    def __post_init__(self) -> None:
        allowed = {
            "temperature": 0 <= self.temperature < math.inf,
            "top_p": 0 <= self.top_p <= 1,
            "seed": 0 <= self.seed < 2**64,
            "top_k": self.top_k is None or self.top_k >= 1,
            "min_p": 0 <= self.min_p <= 1,
        }
        for name, is_allowed in allowed.items():
            if not is_allowed:
                raise ValueError(f"{name} is {getattr(self, name)}")

    def probabilities(self, logits_BV: Tensor) -> Tensor:
        """Probability of each token, float64 [..., V]; 0 of those that are never drawn."""
        if self.temperature == 0:
            best_B = logits_BV.argmax(dim=-1)
            return torch.nn.functional.one_hot(best_B, logits_BV.shape[-1]).double()
        kept_BV = torch.softmax(logits_BV.double() / self.temperature, dim=-1)
        if self.min_p > 0:
            kept_BV = _from(kept_BV, self.min_p * kept_BV.amax(dim=-1, keepdim=True))
        if self.top_k is not None and self.top_k < kept_BV.shape[-1]:
            kept_BV = _from(kept_BV, kept_BV.topk(self.top_k, dim=-1).values[..., -1:])
        if self.top_p < 1:
            ordered_BV = _descending(kept_BV / kept_BV.sum(dim=-1, keepdim=True))
            before_BV = ordered_BV.cumsum(dim=-1) - ordered_BV
            # The likeliest stays even for a `top_p` of 0.
            last_B1 = (before_BV < self.top_p).sum(dim=-1, keepdim=True).clamp(min=1) - 1
            total_B1 = kept_BV.sum(dim=-1, keepdim=True)
            kept_BV = _from(kept_BV / total_B1, ordered_BV.gather(-1, last_B1))
        return kept_BV / kept_BV.sum(dim=-1, keepdim=True)

    def choose(self, logits_BV: Tensor, uniform_B: Tensor) -> Chosen:
        """The token of each row at this place of its cumulated probabilities.

        The log-probability is that of the model: of the logits as they are.
        """
        logits_BV = logits_BV if logits_BV.dtype == torch.float64 else logits_BV.float()
        if self.temperature == 0:
            tokens_B, lead_B = _best(logits_BV)
            ties_B = lead_B <= TIE
        else:
            cumulated_BV = self.probabilities(logits_BV).cumsum(dim=-1)
            places_B1 = uniform_B.to(cumulated_BV)[:, None] * cumulated_BV[:, -1:]
            tokens_B = torch.searchsorted(cumulated_BV, places_B1, right=True)[:, 0]
            ties_B = torch.zeros_like(tokens_B, dtype=torch.bool)
        scores_BV = logits_BV.log_softmax(dim=-1)
        return Chosen(tokens_B, scores_BV.gather(1, tokens_B[:, None])[:, 0], ties_B)

    def uniform(self, number: int, sample: int, count: int) -> NDArray[np.float64]:
        """The numbers in [0, 1) by which the tokens of a text are drawn.

        Of a counter-based generator (Philox, Salmon et al. 2011), one stream for each text.
        """
        key = np.array([self.seed, number << 32 | sample], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key)).random(count)


def _from(probabilities_BV: Tensor, least_B1: Tensor) -> Tensor:
    """Those of at least `least_B1`, and 0."""
    return torch.where(probabilities_BV >= least_B1, probabilities_BV, 0.0)


def _best(logits_BV: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest token of each row, the first of equals, and its lead in nats over the next.

    On a CPU by numpy, whose argmax takes a tenth of the time of torch's.
    """
    if logits_BV.device.type == "cpu":
        best_B1 = torch.from_numpy(logits_BV.numpy().argmax(axis=-1, keepdims=True))
    else:
        best_B1 = logits_BV.argmax(dim=-1, keepdim=True)
    others_BV = logits_BV.scatter(1, best_B1, float("-inf"))
    return best_B1[:, 0], logits_BV.gather(1, best_B1)[:, 0] - others_BV.amax(dim=-1)


def _descending(values_BV: Tensor) -> Tensor:
    """Each row sorted. On a CPU by numpy, whose sort takes a ninth of the time of torch's."""
    if values_BV.device.type == "cpu":
        return torch.from_numpy(np.sort(values_BV.numpy())).flip(-1)
    return values_BV.sort(dim=-1, descending=True).values
