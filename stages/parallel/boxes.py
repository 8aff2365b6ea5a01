"""Tensors that are spread over ranks, as boxes: what a rank holds, and where it is in the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn


class Box(NamedTuple):
    """A part of a tensor: `shape` elements from `offset` on in each dimension."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def slices(self) -> tuple[slice, ...]:
        """The part as an index of the whole."""
        return tuple(slice(o, o + n) for o, n in zip(self.offset, self.shape, strict=True))

    def overlap(self, other: Box) -> Box | None:
        """What both have; None if that is nothing."""
        first = tuple(max(a, b) for a, b in zip(self.offset, other.offset, strict=True))
        ends = zip(self.offset, self.shape, other.offset, other.shape, strict=True)
        last = tuple(min(a + n, b + m) for a, n, b, m in ends)
        shape = tuple(end - begin for begin, end in zip(first, last, strict=True))
        return Box(first, shape) if all(size > 0 for size in shape) else None

    def within(self, outer: Box) -> tuple[slice, ...]:
        """This part as an index of `outer`, which holds it."""
        moved = tuple(a - b for a, b in zip(self.offset, outer.offset, strict=True))
        return Box(moved, self.shape).slices


def whole_box(shape: Sequence[int]) -> Box:
    """All of a tensor."""
    return Box((0,) * len(shape), tuple(shape))


def is_spread(tensor: Tensor) -> bool:
    """Whether a tensor is a DTensor: each rank holds a part of it, or a copy."""
    return hasattr(tensor, "device_mesh")


def local(tensor: Tensor) -> Tensor:
    """What this rank holds; it shares memory with `tensor`."""
    tensor = tensor.detach()
    return tensor.to_local() if is_spread(tensor) else tensor  # type: ignore[attr-defined, no-any-return]


def cut(weight: Tensor, mesh: Any, placements: Sequence[Any]) -> nn.Parameter:
    """A parameter of which this rank has its part on `mesh`: with values, or on the meta device.

    Dimensions that are cut must divide by the ranks.
    """
    from torch.distributed.tensor import DTensor

    part = weight.detach()
    for dim, placement in enumerate(placements):
        if placement.is_shard():
            size = part.shape[placement.dim] // mesh.size(dim)
            part = part.narrow(placement.dim, mesh.get_local_rank(dim) * size, size)
    spread = DTensor.from_local(
        part.clone(), mesh, placements, run_check=False, shape=weight.shape, stride=weight.stride()
    )
    return nn.Parameter(spread, requires_grad=weight.requires_grad)


def own_part(weight: Tensor) -> Tensor:
    """What this rank computes with: a parameter, or its part where it is cut over ranks.

    To be called in a forward pass. A copy of a parameter is used on other tokens, heads or channels
    by each rank, so its gradients are summed over the ranks that have one; those of a part are not.
    """
    if not is_spread(weight):
        return weight
    from torch.distributed.tensor import Partial

    placements = weight.placements  # type: ignore[attr-defined]
    sums = [Partial() if one.is_replicate() else one for one in placements]
    return weight.to_local(grad_placements=sums)  # type: ignore[attr-defined, no-any-return]


def box_of(tensor: Tensor) -> Box:
    """Where in the whole tensor that is."""
    if not is_spread(tensor):
        return whole_box(tensor.shape)
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    shape, offset = compute_local_shape_and_global_offset(
        tensor.shape,
        tensor.device_mesh,  # type: ignore[attr-defined]
        tensor.placements,  # type: ignore[attr-defined]
    )
    return Box(tuple(offset), tuple(shape))


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, on every rank; to be called on all of them."""
    tensor = tensor.detach()
    return tensor.full_tensor() if is_spread(tensor) else tensor  # type: ignore[attr-defined, no-any-return]


def whole_like(part: Tensor, like: Tensor) -> Tensor:
    """All of a tensor whose parts are spread as those of `like` are; on all ranks."""
    if not is_spread(like):
        return part
    from torch.distributed.tensor import DTensor

    spread = DTensor.from_local(
        part,
        like.device_mesh,  # type: ignore[attr-defined]
        like.placements,  # type: ignore[attr-defined]
        shape=like.shape,
        stride=like.stride(),
    )
    return spread.full_tensor()
