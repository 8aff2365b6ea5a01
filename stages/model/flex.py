"""FlexAttention as a backend: any mask, of which whole blocks are skipped (Dong et al. 2024).

Compiled on CUDA. On a CPU torch has the forward pass alone (pytorch/pytorch#148752).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from stages.model.attention import AttentionBackend
from stages.model.config import ModelConfig
from stages.model.masks import Visibility

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask


class Flex(AttentionBackend):
    """FlexAttention with a block mask: what rows of several documents, windows, prefixes need."""

    name = "flex"

    def check(self, config: ModelConfig) -> None:
        """Nothing: it does every head."""

    def prepare(self, visible: Visibility) -> BlockMask:
        from torch.nn.attention.flex_attention import create_block_mask

        on_cpu = visible.device.type == "cpu"
        # Compiled, it never holds the dense mask.
        create = create_block_mask if on_cpu else _compiled(create_block_mask)
        by_row = visible.documents_BL is not None or visible.prefix_BL is not None
        return create(
            visible.rule(),
            visible.batch if by_row else None,
            None,
            visible.length,
            visible.length,
            device=visible.device,
        )

    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: BlockMask,
        scale: float | None = None,
    ) -> Tensor:
        from torch.nn.attention.flex_attention import flex_attention

        # Autocast casts the operands of SDPA, not those of FlexAttention.
        query_BHLC, key_BKLC = query_BHLC.type_as(value_BKLC), key_BKLC.type_as(value_BKLC)
        on_cpu = query_BHLC.device.type == "cpu"
        if on_cpu and torch.is_grad_enabled() and query_BHLC.requires_grad:
            raise self.refuse("has no backward pass on a CPU", hint="train with 'sdpa' there")
        attend: Any = flex_attention if on_cpu else _compiled(flex_attention)
        return attend(
            query_BHLC,
            key_BKLC,
            value_BKLC,
            block_mask=mask,
            scale=scale,
            enable_gqa=query_BHLC.shape[1] != key_BKLC.shape[1],
        )


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled once a process, whatever model calls it."""
    return torch.compile(function)
