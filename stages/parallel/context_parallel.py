"""Context parallelism: ranks share the tokens of each row, for rows that are too long for one.

Each rank has two pieces of a row, one from the front and one as far from the back, so that causal
attention is as much work on each (Llama Team 2024, The Llama 3 Herd of Models, arXiv 2407.21783,
section 3.3.2). Everything but attention is for each token alone. In attention a rank's queries see
keys and values of all tokens, which are gathered before, and their gradients summed and scattered:

    row           0 1 2 3 4 5 6 7        of 2 ranks, in pieces of two tokens
    first rank    0 1         6 7
    second rank       2 3 4 5

With grouped heads, keys and values are a fraction of the states, so gathering costs little beside
the attention of long rows; and any mask is possible, of documents and windows too, which PyTorch's
ring attention does not know.

Shapes: B batch, L length of the row, l = L / ranks, H query heads, K key and value heads, C
channels of a head.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from stages.model.attention import AttentionBackend, Flex, Sdpa, Visibility
from stages.model.config import ModelConfig
from stages.parallel.collectives import gather


def own_tokens(length: int, rank: int, ranks: int) -> NDArray[np.int64]:
    """[L / ranks] The tokens of a row that a rank has; 2 · `ranks` divides `length`."""
    pieces = np.arange(length).reshape(2 * ranks, -1)
    return np.concatenate((pieces[rank], pieces[2 * ranks - 1 - rank]))


class ContextAttention(AttentionBackend):
    """Attention of this rank's queries to the keys and values of all ranks."""

    name = "context"

    def __init__(self, inner: AttentionBackend, group: dist.ProcessGroup) -> None:
        if not isinstance(inner, Sdpa | Flex):
            raise inner.refuse("cannot share rows over ranks", hint="use 'flex' or 'sdpa'")
        self.inner, self.group = inner, group

    def check(self, config: ModelConfig) -> None:
        self.inner.check(config)

    def prepare(self, visible: Visibility) -> Any:
        """The mask of this rank's queries; `visible` has this rank's tokens."""
        whole = replace(
            visible,
            length=visible.length * self.group.size(),
            documents_BL=self._whole_row(visible.documents_BL),
            prefix_BL=self._whole_row(visible.prefix_BL),
            offsets_N1=None,
        )
        own = own_tokens(whole.length, self.group.rank(), self.group.size())
        queries = torch.from_numpy(own).to(visible.device)
        return self.inner.prepare(replace(whole, queries_Q=queries))

    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: Any,
        scale: float | None = None,
    ) -> Tensor:
        key_BKLC, value_BKLC = (
            _in_order(gather(x, self.group, 2), self.group.size(), 2)
            for x in (key_BKLC.type_as(value_BKLC), value_BKLC)
        )
        return self.inner.attend(query_BHLC, key_BKLC, value_BKLC, mask, scale)

    def _whole_row(self, x_Bl: Tensor | None) -> Tensor | None:
        if x_Bl is None:
            return None
        whole = gather(x_Bl.to(torch.int64), self.group, 1)
        return _in_order(whole, self.group.size(), 1).to(x_Bl.dtype)


def _in_order(x: Tensor, ranks: int, dim: int) -> Tensor:
    """What ranks have, one after another, in the order of the row."""
    pieces = x.chunk(2 * ranks, dim)
    return torch.cat((*pieces[::2], *reversed(pieces[1::2])), dim)
