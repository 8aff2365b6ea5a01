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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from stages.model.branches import BranchAttention, Branches, Stem
from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE, Ranks
from stages.scoring.prefixes import Row, rows_apart, share_prefixes


@dataclass(frozen=True)
class Request:
    """Score `continuation` after `context`; neither is empty."""

    context: tuple[int, ...]
    continuation: tuple[int, ...]


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Ids of each text, as `encode_text` has them."""
    before = tokenizer.encode_special_tokens
    tokenizer.encode_special_tokens = True
    try:
        encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    finally:
        tokenizer.encode_special_tokens = before
    return [list(one.ids) for one in encodings]


def encode_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of `text` alone; what looks like a special token in it is read as ordinary characters."""
    (ids,) = encode_texts(tokenizer, [text])
    return ids


def continuation_request(
    tokenizer: Tokenizer, prompt: str, continuation: str, *, prefix: int
) -> Request:
    """The request that scores `continuation` after token `prefix` and `prompt`, which may be empty.

    Where a token spans the border ("ab" + "c" = "abc"), the two are encoded apart: lm-eval
    would score only what is left after that token, perhaps nothing, and nothing wins.
    """
    (request,) = continuation_requests(tokenizer, prompt, [continuation], prefix=prefix)
    return request


def continuation_requests(
    tokenizer: Tokenizer, prompt: str, continuations: Sequence[str], *, prefix: int
) -> list[Request]:
    """The same for several continuations of one prompt, which is encoded once."""
    bare = prompt.rstrip()
    moved = [prompt[len(bare) :] + continuation for continuation in continuations]
    context, *wholes = encode_texts(tokenizer, [bare, *(bare + one for one in moved)])
    requests = []
    for one, whole in zip(moved, wholes, strict=True):
        joins = whole[: len(context)] == context
        rest = whole[len(context) :] if joins else encode_text(tokenizer, one)
        requests.append(Request((prefix, *context), tuple(rest)))
    return requests


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


@dataclass(frozen=True)
class Scored:
    """Log-probability of each token of a continuation, and whether each is the likeliest one."""

    log_likelihoods: NDArray[np.float64]
    is_greedy: bool


def token_log_likelihoods(
    model: Decoder,
    requests: Sequence[Request],
    *,
    batch_tokens: int = 4096,
    ranks: Ranks = ALONE,
    check_stop: Callable[[], None] = lambda: None,
) -> list[NDArray[np.float64]]:
    """Log-probability of each token of each request's continuation; see `score_requests`."""
    scored = score_requests(
        model, requests, batch_tokens=batch_tokens, ranks=ranks, check_stop=check_stop
    )
    return [one.log_likelihoods for one in scored]


def score_requests(
    model: Decoder,
    requests: Sequence[Request],
    *,
    batch_tokens: int = 4096,
    ranks: Ranks = ALONE,
    check_stop: Callable[[], None] = lambda: None,
    share: bool = True,
) -> list[Scored]:
    """What the model makes of each request's continuation, in their order.

    A context that does not fit is cut at its left end. ValueError for an empty continuation or one
    that alone exceeds the model's context. What requests begin with alike is computed once, unless
    `share` is false: then each has a row of its own. Rows of like length share a batch, of at most
    `batch_tokens` on each rank; right padding cannot be seen by a causal model. `check_stop` is
    called before each batch, and may raise.
    """
    cut = [_fit(request, model.config.context) for request in requests]
    inputs, sizes = [ids[:-1] for ids, _ in cut], [scored for _, scored in cut]
    targets = [np.array(ids[-scored:]) for ids, scored in cut]
    results: list[Scored] = [Scored(np.empty(0), False)] * len(requests)
    attention = BranchAttention()
    groups = rows_apart(inputs, sizes)
    if share:
        groups = share_prefixes(inputs, sizes, token_cost=4 * model.config.width)
    with attention.of(model):
        for group in groups:
            stem = None
            if len(group.stem):
                check_stop()
                stem = _record_stem(model, attention, group.stem)
            lengths = [len(row.tokens) for row in group.rows]
            for batch in _batches(lengths, batch_tokens, ranks.layout.rows):
                check_stop()
                rows = [group.rows[index] for index in batch]
                for number, scored in _score_rows(model, attention, rows, targets, stem, ranks):
                    results[number] = scored
    return results


@torch.no_grad()
def _record_stem(model: Decoder, attention: BranchAttention, tokens: NDArray[np.int64]) -> Stem:
    """Keys and values of `tokens`; on every rank all of them."""
    device = next(model.parameters()).device
    with attention.recording(len(tokens)) as stem:
        model(torch.from_numpy(tokens)[None].to(device), output=lambda x_BLD, _: x_BLD[:, :0])
    return stem


@torch.no_grad()
def _score_rows(
    model: Decoder,
    attention: BranchAttention,
    rows: Sequence[Row],
    targets: Sequence[NDArray[np.int64]],
    stem: Stem | None,
    ranks: Ranks,
) -> Iterator[tuple[int, Scored]]:
    """The number and the scores of each sequence in the rows of one batch."""
    device = next(model.parameters()).device
    width = max(len(row.tokens) for row in rows)
    tokens_BL, positions_BL, ends_BL = (np.zeros((len(rows), width), np.int64) for _ in range(3))
    ends_BL[:] = np.arange(1, width + 1)  # Padding sees itself, and nothing sees it.
    for index, row in enumerate(rows):
        tokens_BL[index, : len(row.tokens)] = row.tokens
        positions_BL[index, : len(row.tokens)] = row.positions
        ends_BL[index, : len(row.tokens)] = row.ends
    pieces = [(index, *place) for index, row in enumerate(rows) for place in row.places]
    own = _share(len(rows), ranks)
    places_N = [(index - own.start) * width + places for index, _, places in pieces]
    mine = [own.start <= index < own.stop for index, _, _ in pieces]
    scores_2S = np.zeros((2, sum(map(len, places_N))))
    own_S = np.repeat(mine, [len(places) for places in places_N])
    wanted_S = torch.from_numpy(np.concatenate(places_N)[own_S]).to(device)
    targets_S = torch.from_numpy(
        np.concatenate([targets[number] for _, number, _ in pieces])[own_S]
    ).to(device)

    def measure(x_BLD: Tensor, matrix_VD: Tensor) -> Tensor:
        x_TD = x_BLD.flatten(0, 1)
        return _target_scores(model, x_TD, matrix_VD, wanted_S, targets_S)

    arrays = ((tokens_BL, 0), (positions_BL, 0), (ends_BL, width))
    tokens, positions, ends = (
        _own_rows(torch.from_numpy(one), filler, ranks).to(device) for one, filler in arrays
    )
    branched = stem is not None or any(row.branches for row in rows)
    with attention.over(Branches(ends, positions, stem) if branched else None):
        measured: Tensor = model(tokens, positions if branched else None, output=measure)
    scores_2S[:, own_S] = measured.double().cpu().numpy()
    ranks.sum(torch.from_numpy(scores_2S))  # In place; other ranks' rows are 0 until then.
    edges = np.cumsum([0, *map(len, places_N)])
    for (_, number, _), start, stop in zip(pieces, edges[:-1], edges[1:], strict=True):
        values, greedy = scores_2S[:, start:stop]
        yield number, Scored(values.copy(), bool(greedy.all()))


def _target_scores(
    model: Decoder, x_TD: Tensor, matrix_VD: Tensor, places_S: Tensor, targets_S: Tensor
) -> Tensor:
    """[2, S]: log-probability of each target after the token at its place, and whether it is the
    likeliest. Logits of a place are computed once, however many targets it has."""
    places_N, order_S = places_S.unique(return_inverse=True)
    scores_2S = x_TD.new_zeros((2, len(places_S)), dtype=torch.float64)
    for start in range(0, len(places_N), _ROWS_OF_LOGITS):
        chunk_N = places_N[start : start + _ROWS_OF_LOGITS]
        logits_NV = _wide(model.logits(x_TD[chunk_N], matrix_VD))
        in_chunk = (order_S >= start) & (order_S < start + len(chunk_N))
        row_M, target_M = order_S[in_chunk] - start, targets_S[in_chunk]
        normaliser_N, best_N = logits_NV.logsumexp(-1), logits_NV.argmax(-1)
        scores_2S[0, in_chunk] = (logits_NV[row_M, target_M] - normaliser_N[row_M]).double()
        scores_2S[1, in_chunk] = (best_N[row_M] == target_M).double()
    return scores_2S


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
                F.cross_entropy(_wide(model.logits(x, matrix_VD)), targets, reduction="none")
                for x, targets in parts
            ]
        )

    nll_N: Tensor = model(tokens_BL, documents_BL=documents_BL, output=losses)
    own_nll_BL[wanted_BL[: len(own_nll_BL)].cpu().numpy()] = nll_N.double().cpu().numpy()
    ranks.sum(torch.from_numpy(nll_BL))  # In place; other ranks' rows are 0 until then.
    return nll_BL


def _wide(logits: Tensor) -> Tensor:
    """In float32 at least."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


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
