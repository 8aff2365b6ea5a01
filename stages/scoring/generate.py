"""Text that a model writes, token by token."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from stages.model.decoder import Decoder


@torch.no_grad()
def generate(
    model: Decoder,
    prompt: Sequence[int],
    *,
    max_new_tokens: int,
    stop: Collection[int] = (),
    temperature: float = 0.0,
    seed: int = 0,
) -> list[int]:
    """Ids that follow `prompt`, without the one of `stop` that ended them.

    Temperature 0 takes the likeliest token (the first of equal ones); otherwise tokens are drawn
    from a generator seeded with `seed`. Every token is a full forward pass over the last tokens
    that fit the context: there is no key-value cache. ValueError for an empty prompt.
    """
    if not prompt:
        raise ValueError("the prompt is empty; begin it with <|begin_of_text|>")
    generator = torch.Generator().manual_seed(seed)
    ids = list(prompt)
    for _ in range(max_new_tokens):
        tokens_BL = torch.tensor([ids[-model.config.context :]])
        logits_V = model.unembed(model.hidden(tokens_BL)[0, -1]).double().cpu()
        if temperature == 0:
            chosen = int(logits_V.argmax())
        else:
            probabilities = torch.softmax(logits_V / temperature, dim=-1)
            chosen = int(torch.multinomial(probabilities, 1, generator=generator))
        if chosen in stop:
            break
        ids.append(chosen)
    return ids[len(prompt) :]
