"""Which published tensors a weight of the decoder is, and how one becomes the other.

Shapes: R rows, D width, E experts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Weight:
    """A weight of the decoder by its name, and the published tensors that hold it.

    `published` has one name, or one for each expert where the decoder stacks them. With
    `interleaved` = (plain, rotary), the rows come in heads of `plain` + `rotary` rows, of which
    the published tensor has the rotary ones in neighbouring pairs, as DeepSeek turns them.
    """

    name: str
    published: tuple[str, ...]
    interleaved: tuple[int, int] | None = None

    def publish(self, weight: Tensor) -> dict[str, Tensor]:
        """The published tensors of the decoder's `weight`."""
        if self.interleaved is not None:
            weight = _reorder_rotary(weight, *self.interleaved, to_pairs=True)
        parts = weight.unbind(0) if len(self.published) > 1 else (weight,)
        return dict(zip(self.published, (part.contiguous() for part in parts), strict=True))

    def adopt(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The decoder's weight; RuntimeError if the tensors of experts differ in shape."""
        parts = [tensors[name] for name in self.published]
        weight = torch.stack(parts) if len(parts) > 1 else parts[0]
        if self.interleaved is not None:
            weight = _reorder_rotary(weight, *self.interleaved, to_pairs=False)
        return weight


def _reorder_rotary(weight_RD: Tensor, plain: int, rotary: int, *, to_pairs: bool) -> Tensor:
    """`weight` with each head's rotary rows as neighbouring pairs, or as two halves.

    A pair (2i, 2i + 1) of DeepSeek's is the pair (i, i + rotary / 2) of Llama's: both turn by the
    angle of frequency i, so equal reorderings of query and key leave every score as it is.
    """
    rows = torch.arange(rotary)
    order = rows.view(2, -1).T.flatten() if to_pairs else rows.view(-1, 2).T.flatten()
    head = torch.cat((torch.arange(plain), plain + order))
    if weight_RD.shape[0] % (plain + rotary):
        return weight_RD  # Of another shape than it should be, which is told where it is loaded.
    heads = weight_RD.unflatten(0, (-1, plain + rotary))
    return heads[:, head].flatten(0, 1)
