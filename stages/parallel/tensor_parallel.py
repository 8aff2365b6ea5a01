"""Tensor parallelism with sequence parallelism: ranks share each matrix, and tokens in between.

Between matrices, in norms and the residual stream, each rank has 1 / T of the tokens:

    x_BlD ── gather ── x_BLD ─ first matrices ─ heads, inner channels ─ last matrix ─ sum, scatter

The first matrices (queries, keys, values; gate, up) are cut by output, so a rank computes whole
heads and its own inner channels; the last one is cut by input, so its results are parts of a sum
(Shoeybi et al. 2019, Megatron-LM, arXiv 1909.08053, section 3). Sum and scatter in one are no more
bytes than that sum alone (Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2).

Embedding and output layer are cut by vocabulary. Softmax over a cut vocabulary needs three numbers
a token from each rank: the highest logit, the sum of exponentials, the logit of the target. No rank
has all logits of a token.

Whatever is not cut (norms, routers, the compressing matrices of latent attention) is used by each
rank on other tokens or for other heads, so its gradients are parts of a sum: `boxes.own_part`.

Shapes: B batch, L length, l = L / T, D width, V vocabulary, M tokens with a target.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from stages.parallel.boxes import cut, is_spread, own_part
from stages.parallel.collectives import gather, scatter_sum, sum_both_ways

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

_CUT = {
    "embedding": 0, "head": 0,
    "attention.query": 0, "attention.key": 0, "attention.value": 0,
    "attention.query_up": 0, "attention.kv_up": 0, "attention.output": 1,
    "mlp.gate": 0, "mlp.up": 0, "mlp.down": 1,
    "mlp.shared.gate": 0, "mlp.shared.up": 0, "mlp.shared.down": 1,
    "mlp.experts.gate": 1, "mlp.experts.up": 1, "mlp.experts.down": 2,
}  # fmt: skip
"""The dimension that a parameter is cut along, by the end of its name, without `.weight`."""


@dataclass(frozen=True)
class CutVocabulary:
    """This rank's part of the vocabulary: entries from `first` on."""

    group: dist.ProcessGroup
    first: int
    size: int

    def differentiated(
        self, logits_MV: Tensor, targets_M: Tensor, z_loss: float, slope_MV: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`losses.differentiated` of logits in float32 that are capped, with the cap's slope.

        Loss and log Z of each token, the same on each rank, and the gradient of this rank's logits.
        """
        highest_M = logits_MV.amax(1)
        dist.all_reduce(highest_M, dist.ReduceOp.MAX, group=self.group)
        local_M = targets_M - self.first
        held_M = (local_M >= 0) & (local_M < self.size)
        local_M1 = local_M.clamp(0, self.size - 1)[:, None]
        at_target_M = logits_MV.gather(1, local_M1)[:, 0] - highest_M
        gradient_MV = logits_MV.sub_(highest_M[:, None]).exp_()
        sums_2M = torch.stack((gradient_MV.sum(1), torch.where(held_M, at_target_M, 0.0)))
        dist.all_reduce(sums_2M, group=self.group)
        sums_M, at_target_M = sums_2M
        losses_M, log_z_M = sums_M.log() - at_target_M, sums_M.log() + highest_M
        by_log_z_M = 1 + 2 * z_loss * log_z_M
        gradient_MV.mul_((by_log_z_M / sums_M)[:, None])
        by_target_M1 = (by_log_z_M * (-losses_M).exp() - 1)[:, None]
        by_target_M1 = torch.where(held_M[:, None], by_target_M1, gradient_MV.gather(1, local_M1))
        gradient_MV.scatter_(1, local_M1, by_target_M1)
        return losses_M, log_z_M, gradient_MV if slope_MV is None else gradient_MV * slope_MV


def cut_matrices(model: Any, mesh: DeviceMesh) -> None:
    """Give each rank of `mesh`, one of `tensor` ranks, its part of a `Decoder`, in place.

    Names of modules and parameters stay. The model computes what it did, with collectives; its
    output layer has a part of the vocabulary (`model.vocabulary`).
    """
    from torch.distributed.tensor import Replicate, Shard

    from stages.model.layers import GroupedAttention

    group, place = mesh.get_group(), mesh.get_local_rank()
    for module in model.blocks:
        for layer in (module.attention, module.mlp) if hasattr(module, "attention") else ():
            layer.register_forward_pre_hook(partial(_gather_input, group))
            layer.register_forward_hook(partial(_scatter_output, group))
            if isinstance(layer, GroupedAttention) and layer.norm_over == "width":
                for norm in (layer.query_norm, layer.key_norm):
                    norm.forward = partial(_norm_over_ranks, norm, group)  # type: ignore[method-assign]
    size = model.config.vocabulary_size // group.size()
    model.vocabulary = CutVocabulary(group, place * size, size)
    if model.embedding is not None:
        model.embedding.forward = partial(_embed, model.embedding, model.vocabulary)
    if model.norm is not None:
        model.norm.register_forward_hook(partial(_gather_output, group))
    for name, module in model.named_modules():
        for own, weight in list(module.named_parameters(recurse=False)):
            if not is_spread(weight):  # As those of experts that are cut already.
                dim = cut_dimension(f"{name}.{own}", model.config)
                placement = Replicate() if dim is None else Shard(dim)
                module.register_parameter(own, cut(weight, mesh, [placement]))


def cut_dimension(name: str, config: Any) -> int | None:
    """The dimension that a parameter is cut along over tensor ranks; None: each has all of it."""
    stem = name.removesuffix(".weight")
    if stem.endswith((".query_norm", ".key_norm")):
        return 0 if config.qk_norm == "width" and config.latent is None else None
    return next((dim for end, dim in _CUT.items() if stem == end or stem.endswith(f".{end}")), None)


def _gather_input(group: dist.ProcessGroup, module: nn.Module, inputs: tuple[Any, ...]) -> Any:
    return gather(_reduced(inputs[0]), group, 1), *inputs[1:]


def _scatter_output(
    group: dist.ProcessGroup, module: nn.Module, inputs: Any, output: Tensor
) -> Tensor:
    return scatter_sum(output, group, 1)


def _gather_output(
    group: dist.ProcessGroup, module: nn.Module, inputs: Any, output: Tensor
) -> Tensor:
    return gather(_reduced(output), group, 1)


def _reduced(x: Tensor) -> Tensor:
    """In the type that matrices take it in, before it is sent."""
    device = x.device.type
    return x.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else x


def _embed(embedding: nn.Embedding, vocabulary: CutVocabulary, tokens_BL: Tensor) -> Tensor:
    """The vectors of this rank's tokens [B, l, D], of which each rank has some entries."""
    local_BL = tokens_BL - vocabulary.first
    held_BL = (local_BL >= 0) & (local_BL < vocabulary.size)
    x_BLD = F.embedding(local_BL.clamp(0, vocabulary.size - 1), own_part(embedding.weight))
    return scatter_sum(x_BLD * held_BL[..., None], vocabulary.group, 1)


def _norm_over_ranks(norm: nn.RMSNorm, group: dist.ProcessGroup, x: Tensor) -> Tensor:
    """The norm over all channels, of which each rank has some."""
    weight = own_part(norm.weight)
    x = x.to(weight.dtype)
    squares = sum_both_ways(x.square().sum(-1, keepdim=True), group)
    eps = norm.eps if norm.eps is not None else torch.finfo(x.dtype).eps
    return x * torch.rsqrt(squares / (x.shape[-1] * group.size()) + eps) * weight
