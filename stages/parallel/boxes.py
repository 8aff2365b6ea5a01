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


def drop_gathered(model: nn.Module) -> None:
    """Free what a forward pass has gathered of other ranks' parts; the next one gathers it again.

    A backward pass does so itself. After a forward pass alone, until this is called, the parameters
    of `model` are the gathered copies, and a change of the parts would not be seen.
    """
    for module in model.modules():
        reshard: Any = getattr(module, "reshard", None)  # `fully_shard` gives it to a module.
        if reshard is not None:
            reshard()
