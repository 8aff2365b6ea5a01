"""Mixture of experts: many SwiGLUs, of which each token takes a few, and some that all take.

Scores are sigmoids and choice is limited to groups of experts (DeepSeek-V3, arXiv 2412.19437,
section 2.1.2). Load is balanced without an auxiliary loss (Wang et al. 2024, arXiv 2408.15664):
a bias is added to the scores for the choice alone, and after each training step raised for
experts that had fewer tokens than the mean, lowered for those that had more.

Tokens are copied in the order of experts, deterministically both ways. Indexing with repeated
rows is summed in the backward pass in an order that CUDA does not fix; here both directions only
gather, and copies of one token are summed along a dimension of their own.

Shapes: N tokens, D width, E experts, X chosen experts of a token, S = N · X pairs of token and
expert, F inner channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stages.model.config import Experts
from stages.model.layers import SwiGLU
from stages.parallel.boxes import own_part


def dispatch(x_ND: Tensor, order_S: Tensor, place_S: Tensor, *, copies: int) -> Tensor:
    """Row s is the token of pair `order_S[s]`; pair p is copy p % copies of token p // copies.

    `place_S` is the inverse of `order_S`.
    """
    return _Dispatch.apply(x_ND, order_S, place_S, copies)


def collect(y_SD: Tensor, order_S: Tensor, place_S: Tensor) -> Tensor:
    """The rows back in the order of pairs."""
    return _Collect.apply(y_SD, order_S, place_S)


class _Dispatch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, order_S: Tensor, place_S: Tensor, copies: int) -> Tensor:
        ctx.save_for_backward(place_S)
        ctx.copies = copies
        return x_ND[order_S // copies]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (place_S,) = ctx.saved_tensors
        return grads[0][place_S].unflatten(0, (-1, ctx.copies)).sum(dim=1), None, None, None


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y_SD: Tensor, order_S: Tensor, place_S: Tensor) -> Tensor:
        ctx.save_for_backward(order_S)
        return y_SD[place_S]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (order_S,) = ctx.saved_tensors
        return grads[0][order_S], None, None


class MixtureOfExperts(nn.Module):
    """The feed-forward layer in place of one SwiGLU."""

    def __init__(self, width: int, config: Experts) -> None:
        super().__init__()
        self.router = Router(width, config)
        self.experts = ExpertStack(width, config)
        self.shared = SwiGLU(width, config.shared * config.width) if config.shared else None

    def forward(self, x_BLD: Tensor, padding_BL: Tensor | None = None) -> Tensor:
        """[..., width] to [..., width]; `padding_BL` marks tokens that do not count as load."""
        x_ND = x_BLD.flatten(0, -2)
        padding_N = None if padding_BL is None else padding_BL.flatten()
        weights_NX, chosen_NX = self.router(x_ND, padding_N)
        order_S = chosen_NX.flatten().argsort(stable=True)  # by expert, then by token
        place_S = order_S.argsort()
        x_SD = dispatch(x_ND, order_S, place_S, copies=chosen_NX.shape[1])
        y_SD = self.experts(x_SD, chosen_NX.flatten()[order_S])
        y_NXD = collect(y_SD, order_S, place_S).view(*chosen_NX.shape, -1)
        y_ND = (y_NXD * weights_NX[..., None].type_as(y_NXD)).sum(dim=1)
        if self.shared is not None:
            y_ND = y_ND + self.shared(x_ND)
        return y_ND.view_as(x_BLD)


class Router(nn.Module):
    """Which experts a token goes to, and how much each counts; in float32 whatever the rest is."""

    bias: Tensor
    tokens: Tensor

    def __init__(self, width: int, config: Experts) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(config.experts, width))
        self.register_buffer("bias", torch.zeros(config.experts))
        # Tokens that each expert had since the last update. On no meta device: a model that is
        # read from files has its weights and no state of a training step.
        tokens = torch.zeros(config.experts, dtype=torch.int64, device="cpu")
        self.register_buffer("tokens", tokens, persistent=False)

    def forward(self, x_ND: Tensor, padding_N: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Weights and numbers of each token's experts, both [tokens, chosen]."""
        config = self.config
        with torch.autocast(x_ND.device.type, enabled=False):
            scores_NE = F.linear(x_ND.float(), own_part(self.weight).float()).sigmoid()
        preferred_NE = mask_other_groups(scores_NE.detach() + self.bias, config)
        chosen_NX = preferred_NE.topk(config.chosen, dim=-1, sorted=False).indices
        weights_NX = scores_NE.gather(1, chosen_NX)
        if config.normalise:
            weights_NX = weights_NX / (weights_NX.sum(dim=-1, keepdim=True) + 1e-20)
        if torch.is_grad_enabled():
            # In place: a new tensor as attribute cannot be traced inside a checkpointed region.
            self.tokens.add_(count_expert_tokens(chosen_NX, config.experts, padding_N))
        return weights_NX * config.scale, chosen_NX


class ExpertStack(nn.Module):
    """All routed experts of a layer: SwiGLUs whose matrices are stacked, [experts, out, in]."""

    def __init__(self, width: int, config: Experts) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.empty(config.experts, config.width, width))
        self.up = nn.Parameter(torch.empty(config.experts, config.width, width))
        self.down = nn.Parameter(torch.empty(config.experts, width, config.width))

    def forward(self, x_SD: Tensor, expert_S: Tensor) -> Tensor:
        """Each row through its expert; `expert_S` is sorted."""
        gate, up, down = (own_part(weight) for weight in (self.gate, self.up, self.down))
        experts_E = torch.arange(len(gate), device=x_SD.device)
        ends_E = torch.searchsorted(expert_S, experts_E, right=True).int()
        inner_SF = F.silu(grouped_linear(x_SD, gate, ends_E))
        inner_SF = inner_SF * grouped_linear(x_SD, up, ends_E)
        return grouped_linear(inner_SF, down, ends_E)


def mask_other_groups(preferred_NE: Tensor, config: Experts) -> Tensor:
    """The scores of experts in each token's best groups, minus infinity for all others.

    A group is as good as its two best experts together.
    """
    if config.chosen_groups == config.groups:
        return preferred_NE
    by_group_NGe = preferred_NE.unflatten(-1, (config.groups, -1))
    group_NG = by_group_NGe.topk(2, dim=-1).values.sum(dim=-1)
    best_NG = group_NG.topk(config.chosen_groups, dim=-1, sorted=False).indices
    outside_NG = torch.ones_like(group_NG, dtype=torch.bool).scatter(1, best_NG, False)
    return by_group_NGe.masked_fill(outside_NG[..., None], float("-inf")).flatten(1)


def count_expert_tokens(chosen_NX: Tensor, experts: int, padding_N: Tensor | None = None) -> Tensor:
    """How many tokens, without padding, go to each expert, [experts] of int64."""
    if padding_N is not None:
        chosen_NX = chosen_NX.masked_fill(padding_N[:, None], -1)
    each_E = torch.arange(experts, device=chosen_NX.device)
    return (chosen_NX.flatten()[:, None] == each_E).sum(dim=0)


def grouped_linear(x_SD: Tensor, weight_EFD: Tensor, ends_E: Tensor) -> Tensor:
    """Rows up to `ends_E[0]` times the first matrix, from there to `ends_E[1]` the second, …

    In one grouped product where torch has it, else in one for each expert; both give the same.
    """
    device = x_SD.device.type
    if torch.is_autocast_enabled(device):
        half = torch.get_autocast_dtype(device)
        x_SD, weight_EFD = x_SD.to(half), weight_EFD.to(half)
    if has_grouped_product(x_SD, weight_EFD):
        return F.grouped_mm(x_SD, weight_EFD.transpose(1, 2), offs=ends_E)
    return linear_per_expert(x_SD, weight_EFD, ends_E)


def has_grouped_product(x_SD: Tensor, weight_EFD: Tensor) -> bool:
    """Whether `torch.nn.functional.grouped_mm` takes these: bfloat16, rows of whole 16 bytes.

    On a CPU it takes float32 too, but not where torch.compile traces it (torch 2.13).
    """
    eager_on_cpu = x_SD.device.type == "cpu" and not torch.compiler.is_compiling()
    if x_SD.dtype != torch.bfloat16 and not (eager_on_cpu and x_SD.dtype == torch.float32):
        return False
    return all(size * x_SD.element_size() % 16 == 0 for size in weight_EFD.shape[1:])


@torch.compiler.disable  # type: ignore[untyped-decorator]
def linear_per_expert(x_SD: Tensor, weight_EFD: Tensor, ends_E: Tensor) -> Tensor:
    """The same, one expert after another; it waits for the device to know where they end."""
    ends = ends_E.tolist()
    rows = [x_SD[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return torch.cat([F.linear(x, weight) for x, weight in zip(rows, weight_EFD, strict=True)])


@torch.no_grad()
def update_balance(
    model: nn.Module, sum_over_ranks: Callable[[Tensor], Tensor] = lambda tokens_E: tokens_E
) -> None:
    """Move the bias of every router by `bias_rate`, by the tokens since the last call; forget them.

    To be called after each optimizer step, as Wang et al. 2024, algorithm 1: the tokens are those
    of all its micro-batches, counted where gradients are on. A forward pass that is done again for
    the backward pass (activation checkpointing) counts all of a layer's tokens again, which moves
    no expert to the other side of the mean. Without experts it does nothing. Tokens are those of
    all ranks: biases that each rank moved by its own would differ, and nothing would show it.
    """
    for router in _routers(model):
        tokens_E = sum_over_ranks(router.tokens)
        # The sign of mean - tokens, in whole numbers.
        too_few_E = (tokens_E.sum() - len(tokens_E) * tokens_E).sign()
        router.bias += router.config.bias_rate * too_few_E
        tokens_E.zero_()


@torch.no_grad()
def reset_counts(model: nn.Module) -> None:
    """Forget the tokens since the last update: for a training step whose update is skipped."""
    for router in _routers(model):
        router.tokens.zero_()


def _routers(model: nn.Module) -> Iterator[Router]:
    return (module for module in model.modules() if isinstance(module, Router))
