"""Expert parallelism: ranks with different tokens share the experts of each layer.

Each rank has E / R whole experts. A token's states travel to the rank of each of its experts and
back (Lepikhin et al. 2021, GShard, arXiv 2006.16668, section 3.2):

    route ── order by expert ── exchange ── order by expert ── experts ── back ── weigh and add

No token is dropped and nothing is padded: ranks first tell each other how many rows they send,
which waits for the device once a layer. Rows are only moved, both ways, so equal inputs give equal
bits. The gradient of an expert has the tokens of all R ranks in it; what is left to sum is over the
`copies` of the experts.

Shapes: S pairs of a token and its expert on this rank, T such pairs that it receives, D width, E
experts, R ranks.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from stages.parallel.boxes import cut
from stages.parallel.collectives import exchange
from stages.parallel.tensor_parallel import cut_dimension

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from stages.model.experts import ExpertStack


def cut_experts(model: Any, mesh: DeviceMesh) -> None:
    """Give each rank its part of the experts of a `Decoder`, in place.

    `mesh` has the dimensions expert and tensor; along the second, inner channels are cut.
    """
    from torch.distributed.tensor import Shard

    from stages.model.experts import ExpertStack

    group = mesh["expert"].get_group()
    for name, module in model.named_modules():
        if not isinstance(module, ExpertStack):
            continue
        for own, weight in list(module.named_parameters(recurse=False)):
            if mesh["tensor"].size() > 1:
                inner = cut_dimension(f"{name}.{own}", model.config)
                assert inner is not None
                part = cut(weight, mesh["expert", "tensor"], [Shard(0), Shard(inner)])
            else:
                part = cut(weight, mesh["expert"], [Shard(0)])
            module.register_parameter(own, part)
        module.forward = partial(_at_their_ranks, module, group)  # type: ignore[method-assign]


def _at_their_ranks(
    stack: ExpertStack, group: dist.ProcessGroup, x_SD: Tensor, expert_S: Tensor
) -> Tensor:
    """Each row through its expert, wherever that is; `expert_S` is sorted."""
    from stages.model.experts import ExpertStack, collect, dispatch

    ranks, experts = group.size(), len(stack.gate)
    sent_RE = torch.bincount(expert_S, minlength=experts).view(ranks, -1)
    received_RE = torch.empty_like(sent_RE)
    dist.all_to_all_single(received_RE, sent_RE, group=group)
    sent, received = torch.stack((sent_RE.sum(1), received_RE.sum(1))).tolist()

    device = x_SD.device.type
    if torch.is_autocast_enabled(device):
        x_SD = x_SD.to(torch.get_autocast_dtype(device))
    x_TD = exchange(x_SD, sent, received, group)
    # By rank, then by expert, as they come; experts take them by expert, then by rank.
    own = torch.arange(experts // ranks, device=x_SD.device).repeat(ranks)
    own_T = own.repeat_interleave(received_RE.flatten(), output_size=sum(received))
    order_T = own_T.argsort(stable=True)
    place_T = order_T.argsort()
    y_TD = ExpertStack.forward(stack, dispatch(x_TD, order_T, place_T, copies=1), own_T[order_T])
    return exchange(collect(y_TD, order_T, place_T), received, sent, group)
