"""Self-attention with grouped key and value heads (Ainslie et al. 2023, arXiv 2305.13245).

One group a query head is multi-head attention, one group for all is multi-query attention.

Shapes: B batch, L length, D width, H query heads, K key and value heads, C channels of a head.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from stages.model.attention import AttentionBackend
from stages.model.config import ModelConfig
from stages.model.linear import Linear
from stages.model.norm import RMSNorm
from stages.model.rotary import Rotation, rotate


class GroupedAttention(nn.Module):
    """Queries, keys and values of a layer, its norms of queries and keys, and what mixes heads."""

    def __init__(self, config: ModelConfig, backend: AttentionBackend) -> None:
        super().__init__()
        self.backend, self.head_width = backend, config.head_width
        query_width = config.heads * config.head_width
        kv_width = config.kv_heads * config.head_width
        self.query = Linear(config.width, query_width)
        self.key = Linear(config.width, kv_width)
        self.value = Linear(config.width, kv_width)
        self.output = Linear(query_width, config.width)
        self.norm_over = config.qk_norm
        if config.qk_norm != "none":
            each = config.qk_norm == "head"
            normed = (config.head_width, config.head_width) if each else (query_width, kv_width)
            self.query_norm, self.key_norm = (
                RMSNorm(width, eps=config.norm_epsilon) for width in normed
            )

    def forward(self, x_BLD: Tensor, rotation: Rotation | None, mask: Any) -> Tensor:
        """[batch, length, width] to the same; without a rotation, positions do not matter."""
        query, key, value = self.query(x_BLD), self.key(x_BLD), self.value(x_BLD)
        if self.norm_over == "width":
            query, key = self.query_norm(query), self.key_norm(key)
        query_BHLC, key_BKLC, value_BKLC = (self._heads(x) for x in (query, key, value))
        if self.norm_over == "head":
            query_BHLC, key_BKLC = self.query_norm(query_BHLC), self.key_norm(key_BKLC)
        if rotation is not None:
            query_BHLC, key_BKLC = rotate(query_BHLC, rotation), rotate(key_BKLC, rotation)
        mixed_BHLC = self.backend.attend(query_BHLC, key_BKLC, value_BKLC, mask)
        return self.output(mixed_BHLC.transpose(1, 2).flatten(2))

    def _heads(self, x_BLD: Tensor) -> Tensor:
        batch, length, _ = x_BLD.shape
        return x_BLD.view(batch, length, -1, self.head_width).transpose(1, 2)
