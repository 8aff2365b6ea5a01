"""Log-likelihoods under a decoder, in nats, by token or summed in float64.

Forward passes are on the device of the model's weights, in float32; matrix products in the type of
an autocast around them, if there is one. On several ranks all call the same functions with the same
arguments: each computes its share of the rows, and all get every result.

Requests follow the conventions of EleutherAI/lm-evaluation-harness. A prompt and its
continuation are encoded as one text, and the continuation is what follows the tokens of the
prompt alone; white space at the end of a prompt goes to the continuation first, since byte-level
tokenizers bind a space to the word after it (lm_eval/api/model.py, `_encode_pair`). Every
request begins with a token that begins a text (`SpecialTokens.context`, as lm-eval's prefix
token), so that the first word is predicted too. The baseline that any language model must beat
gives each token its share in the training text.

B batch, L length, D width, V vocabulary, N scored tokens of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE, Ranks


@dataclass(frozen=True)
class Request:
    """Score `continuation` after `context`; neither is empty."""

    context: tuple[int, ...]
    continuation: tuple[int, ...]


def encode_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of `text` alone; what looks like a special token in it is read as ordinary characters."""
    before = tokenizer.encode_special_tokens
    tokenizer.encode_special_tokens = True
    try:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)
    finally:
        tokenizer.encode_special_tokens = before


def continuation_request(
    tokenizer: Tokenizer, prompt: str, continuation: str, *, prefix: int
) -> Request:
    """The request that scores `continuation` after token `prefix` and `prompt`, which may be empty.

    Where a token spans the border ("ab" + "c" = "abc"), the two are encoded apart: lm-eval
    would score only what is left after that token, perhaps nothing, and nothing wins.
    """
    bare = prompt.rstrip()
    continuation = prompt[len(bare) :] + continuation
    context = encode_text(tokenizer, bare)
    whole = encode_text(tokenizer, bare + continuation)
    if whole[: len(context)] == context:
        rest = whole[len(context) :]
    else:
        rest = encode_text(tokenizer, continuation)
    return Request((prefix, *context), tuple(rest))


def rolling_requests(ids: list[int], context: int) -> list[Request]:
    """Windows of `context` tokens that score ids[1:] once, the last with as much context as fits.

    lm_eval/utils.py, `get_rolling_token_windows` with a context length of one.
    """
    requests = []
    scored = 1
    while scored < len(ids):
        end = min(scored + context, len(ids))
        seen = ids[max(0, end - context - 1) : scored]
        requests.append(Request(tuple(seen), tuple(ids[scored:end])))
        scored = end
    return requests


_ROWS_OF_LOGITS = 1024
"""Positions whose logits are in memory at once."""


def log_likelihoods(
    model: Decoder,
    requests: Sequence[Request],
    *,
    batch_tokens: int = 4096,
    ranks: Ranks = ALONE,
    check_stop: Callable[[], None] = lambda: None,
) -> NDArray[np.float64]:
    """Summed log-probability of each request's continuation; see `token_log_likelihoods`."""
    scores = token_log_likelihoods(
        model, requests, batch_tokens=batch_tokens, ranks=ranks, check_stop=check_stop
    )
    return np.array([math.fsum(one) for one in scores], dtype=np.float64)


def token_log_likelihoods(
    model: Decoder,
    requests: Sequence[Request],
    *,
    batch_tokens: int = 4096,
    ranks: Ranks = ALONE,
    check_stop: Callable[[], None] = lambda: None,
) -> list[NDArray[np.float64]]:
    """Log-probability of each token of each request's continuation, in the order given.

    A context that does not fit is cut at its left end. ValueError for an empty continuation or one
    that alone exceeds the model's context. Requests of like length share a batch, of at most
    `batch_tokens` on each rank; right padding cannot be seen by a causal model. `check_stop` is
    called before each batch, and may raise.
    """
    cut = [_fit(request, model.config.context) for request in requests]
    scores: list[NDArray[np.float64]] = [np.empty(0)] * len(requests)
    for batch in _batches([len(ids) - 1 for ids, _ in cut], batch_tokens, ranks.layout.rows):
        check_stop()
        width = max(len(cut[index][0]) - 1 for index in batch)
        tokens_BL = torch.zeros(len(batch), width, dtype=torch.int64)
        targets_BL = torch.full((len(batch), width), -1, dtype=torch.int64)
        for row, index in enumerate(batch):
            ids, scored = cut[index]
            tokens_BL[row, : len(ids) - 1] = torch.tensor(ids[:-1])
            targets_BL[row, len(ids) - 1 - scored : len(ids) - 1] = torch.tensor(ids[-scored:])
        nll_BL = target_nll(model, tokens_BL, targets_BL, ranks=ranks)
        for row, index in enumerate(batch):
            ids, scored = cut[index]
            scores[index] = -nll_BL[row, len(ids) - 1 - scored : len(ids) - 1]
    return scores


@torch.no_grad()
def target_nll(
    model: Decoder,
    tokens_BL: Tensor,
    targets_BL: Tensor,
    documents_BL: Tensor | None = None,
    *,
    ranks: Ranks = ALONE,
) -> NDArray[np.float64]:
    """Negative log-likelihood of every target [batch, length]; 0 where the target is negative.

    Arguments may be on the host: they are copied to the device of the model. One forward pass on
    each rank, also on one that has only padding.
    """
    device = next(model.parameters()).device
    nll_BL = np.zeros(tuple(targets_BL.shape), dtype=np.float64)
    own_nll_BL = nll_BL[_share(len(nll_BL), ranks)]
    tokens_BL, targets_BL = (
        _own_rows(tokens_BL, 0, ranks).to(device),
        _own_rows(targets_BL, -1, ranks).to(device),
    )
    if documents_BL is not None:
        documents_BL = _own_rows(documents_BL, -1, ranks).to(device)
    wanted_BL = targets_BL >= 0
    targets_N = targets_BL[wanted_BL]

    def losses(x_BLD: Tensor, matrix_VD: Tensor) -> Tensor:
        parts = zip(
            x_BLD[wanted_BL].split(_ROWS_OF_LOGITS), targets_N.split(_ROWS_OF_LOGITS), strict=True
        )
        return torch.cat(
            [
                F.cross_entropy(model.logits(x, matrix_VD).float(), targets, reduction="none")
                for x, targets in parts
            ]
        )

    nll_N: Tensor = model(tokens_BL, documents_BL=documents_BL, output=losses)
    own_nll_BL[wanted_BL[: len(own_nll_BL)].cpu().numpy()] = nll_N.double().cpu().numpy()
    ranks.sum(torch.from_numpy(nll_BL))  # In place; other ranks' rows are 0 until then.
    return nll_BL


def _share(rows: int, ranks: Ranks) -> slice:
    """Which rows of a batch are this rank's; perhaps fewer than others', or none."""
    most = -(-rows // ranks.layout.rows)
    return slice(ranks.row * most, (ranks.row + 1) * most)


def _own_rows(rows_BL: Tensor, filler: int, ranks: Ranks) -> Tensor:
    """This rank's rows, and rows of `filler` up to as many as any rank has."""
    own_BL = rows_BL[_share(len(rows_BL), ranks)]
    most = -(-len(rows_BL) // ranks.layout.rows)
    return F.pad(own_BL, (0, 0, 0, most - len(own_BL)), value=filler)


def _fit(request: Request, context: int) -> tuple[list[int], int]:
    """Ids of the request, cut on the left to what the model can see, and how many are scored."""
    scored = len(request.continuation)
    if not request.context or not 1 <= scored <= context:
        raise ValueError(f"a continuation of {scored} tokens cannot be scored in {context}")
    return [*request.context, *request.continuation][-(context + 1) :], scored


def _batches(lengths: Sequence[int], batch_tokens: int, shares: int) -> Iterator[list[int]]:
    """Indexes of like length, longest first, at most `batch_tokens` with padding in each share."""
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    start = 0
    while start < len(order):
        rows = shares * max(1, batch_tokens // lengths[order[start]])
        yield order[start : start + rows]
        start += rows


def unigram_nll(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Negative log-probability of each token, nats, with add-one (Laplace) smoothing.

    -log((count + 1) / (total + vocabulary)), special tokens included on both sides.
    """
    counts = counts.astype(np.float64)
    nll: NDArray[np.float64] = np.log(counts.sum() + len(counts)) - np.log(counts + 1)
    return nll
