"""Log-likelihoods under a decoder, in nats, float32 forward passes summed in float64.

B batch, L length, D width, V vocabulary, N scored tokens of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from stages.scoring.requests import Request, continuation_request

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.model.decoder import Decoder

_ROWS_OF_LOGITS = 1024
"""Positions whose logits are in memory at once."""


def log_likelihoods(
    model: Decoder, requests: Sequence[Request], *, batch_tokens: int = 4096
) -> NDArray[np.float64]:
    """Summed log-probability of each request's continuation, in the order given.

    A context that does not fit is cut at its left end. ValueError for an empty continuation or one
    that alone exceeds the model's context. Requests of like length share a batch; right padding
    cannot be seen by a causal model.
    """
    cut = [_fit(request, model.config.context) for request in requests]
    sums = np.zeros(len(requests), dtype=np.float64)
    for batch in _batches([len(ids) - 1 for ids, _ in cut], batch_tokens):
        width = max(len(cut[index][0]) - 1 for index in batch)
        tokens_BL = torch.zeros(len(batch), width, dtype=torch.int64)
        targets_BL = torch.full((len(batch), width), -1, dtype=torch.int64)
        for row, index in enumerate(batch):
            ids, scored = cut[index]
            tokens_BL[row, : len(ids) - 1] = torch.tensor(ids[:-1])
            targets_BL[row, len(ids) - 1 - scored : len(ids) - 1] = torch.tensor(ids[-scored:])
        sums[batch] = -target_nll(model, tokens_BL, targets_BL).sum(axis=1)
    return sums


def choice_scores(
    model: Decoder, tokenizer: Tokenizer, prompt: str, choices: Sequence[str], *, prefix: int
) -> NDArray[np.float64]:
    """Log-probability of each choice as it stands after token `prefix` and `prompt`."""
    return log_likelihoods(
        model,
        [continuation_request(tokenizer, prompt, choice, prefix=prefix) for choice in choices],
    )


@torch.no_grad()
def target_nll(
    model: Decoder, tokens_BL: Tensor, targets_BL: Tensor, documents_BL: Tensor | None = None
) -> NDArray[np.float64]:
    """Negative log-likelihood of every target [batch, length]; 0 where the target is negative."""
    x_BLD = model.hidden(tokens_BL, documents_BL=documents_BL)
    wanted_BL = targets_BL >= 0
    x_ND, targets_N = x_BLD[wanted_BL], targets_BL[wanted_BL]
    nll_N = [
        F.cross_entropy(model.unembed(x).float(), targets, reduction="none")
        for x, targets in zip(
            x_ND.split(_ROWS_OF_LOGITS), targets_N.split(_ROWS_OF_LOGITS), strict=True
        )
    ]
    nll_BL = np.zeros(tuple(targets_BL.shape), dtype=np.float64)
    nll_BL[wanted_BL.cpu().numpy()] = torch.cat(nll_N).double().cpu().numpy()
    return nll_BL


def text_nll(
    model: Decoder, tokens_BL: Tensor, documents_BL: Tensor | None = None
) -> NDArray[np.float64]:
    """Negative log-likelihood of each token given those before it in its piece, [batch, length].

    0 for the first token of a piece, which nothing predicts, and for padding (-1).
    """
    targets_BL = tokens_BL[:, 1:].clone()
    if documents_BL is not None:
        inside = (documents_BL[:, 1:] == documents_BL[:, :-1]) & (documents_BL[:, 1:] >= 0)
        targets_BL[~inside] = -1
        documents_BL = documents_BL[:, :-1]
    nll = target_nll(model, tokens_BL[:, :-1], targets_BL, documents_BL)
    return np.pad(nll, ((0, 0), (1, 0)))


def _fit(request: Request, context: int) -> tuple[list[int], int]:
    """Ids of the request, cut on the left to what the model can see, and how many are scored."""
    scored = len(request.continuation)
    if not request.context or not 1 <= scored <= context:
        raise ValueError(f"a continuation of {scored} tokens cannot be scored in {context}")
    return [*request.context, *request.continuation][-(context + 1) :], scored


def _batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indexes of like length, longest first, at most `batch_tokens` with padding."""
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    start = 0
    while start < len(order):
        rows = max(1, batch_tokens // lengths[order[start]])
        yield order[start : start + rows]
        start += rows
