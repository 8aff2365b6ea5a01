"""Text that a decoder writes, token by token, over a cache of keys and values.

For people who wait for each word (`ingot chat`, `ingot complete`), and for evaluations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from stages.model.cache import CachedAttention, KeyValueCache
from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE, Ranks


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen from the logits.

    Temperature 0 takes the likeliest. Otherwise a token is drawn from the likeliest ones that
    together have probability `top_p` (nucleus sampling, Holtzman et al. 2020, arXiv 1904.09751),
    after logits were divided by `temperature`.
    """

    temperature: float = 0.7
    top_p: float = 0.95
    seed: int = 0

    def probabilities(self, logits_V: Tensor) -> Tensor:
        """Probability of each token, float64; those outside of the nucleus have 0."""
        logits_V = logits_V.double()
        if self.temperature == 0:
            return torch.nn.functional.one_hot(logits_V.argmax(), len(logits_V)).double()
        ordered = torch.softmax(logits_V / self.temperature, dim=-1).sort(descending=True)
        before_V = ordered.values.cumsum(-1) - ordered.values
        kept_V = torch.where(before_V < self.top_p, ordered.values, 0.0)
        kept_V[0] = ordered.values[0]  # The likeliest stays even for a `top_p` of 0.
        chosen_V = torch.zeros_like(logits_V).scatter(0, ordered.indices, kept_V)
        return chosen_V / chosen_V.sum()


class Generator:
    """Continues token ids with `model`, whose attention it replaces by one over a cache.

    The cache stays between calls: a prompt that begins like the text before (the next turn of a
    conversation) costs its new tokens alone. Texts longer than the model's context are seen from a
    later token on, by half a context at a time, so that most tokens still cost one token's work.
    """

    def __init__(self, model: Decoder) -> None:
        self.model = model.eval()
        self._attention = CachedAttention()
        model.attend_by(self._attention)
        self._cache = KeyValueCache()
        self._held: list[int] = []

    def generate(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        *,
        max_new_tokens: int,
        stop: Collection[int] = (),
        ranks: Ranks = ALONE,
    ) -> Iterator[int]:
        """Ids that follow `prompt`, each as soon as it is drawn, up to one of `stop`.

        All of several ranks make the same pass, and take the token of rank 0. ValueError for an
        empty prompt.
        """
        if not prompt:
            raise ValueError("the prompt is empty; begin it with <|begin_of_text|>")
        random = torch.Generator().manual_seed(sampling.seed)
        ids = list(prompt)
        for _ in range(max_new_tokens):
            probabilities_V = sampling.probabilities(self.next_logits(ids).cpu())
            chosen = int(torch.multinomial(probabilities_V, 1, generator=random))
            chosen = int(ranks.copy_first(torch.tensor(chosen)))
            if chosen in stop:
                return
            yield chosen
            ids.append(chosen)

    @torch.no_grad()
    def next_logits(self, ids: Sequence[int]) -> Tensor:
        """Logits [vocabulary] of the token after `ids`; only what the cache lacks is computed."""
        seen = list(ids[first_seen(len(ids), self.model.config.context) :])
        known = 0
        while known < min(len(seen) - 1, len(self._held)) and seen[known] == self._held[known]:
            known += 1
        self._cache.crop(known)
        self._held = seen[:known]
        device = self.model.embedding.weight.device
        tokens_BL = torch.tensor([seen[known:]], device=device)
        positions_BL = torch.arange(known, len(seen), device=device)[None]

        def last(x_BLD: Tensor, matrix_VD: Tensor) -> Tensor:
            return self.model.logits(x_BLD[0, -1], matrix_VD)

        with self._attention.over(self._cache):
            logits_V: Tensor = self.model(tokens_BL, positions_BL, output=last)
        self._held = seen
        return logits_V


def first_seen(length: int, context: int) -> int:
    """The first of `length` tokens that a model with this context still sees.

    0 while all fit, else the least multiple of half a context after which the rest fits.
    """
    if length <= context:
        return 0
    half = max(1, context // 2)
    return -((context - length) // half) * half
