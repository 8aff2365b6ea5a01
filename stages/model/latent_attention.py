"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).

Keys and values are expanded from one narrow vector a token; positions stand in channels of their
own, whose key all heads share. Here for training, where keys and values are expanded; what it saves
when a model writes (the cache holds the narrow vector alone) is not done here.

Shapes: B batch, L length, D width, H heads, C channels of a head's query and key, V of its value,
R compressed channels, P plain and T turning channels of C.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stages.model.attention import AttentionBackend
from stages.model.config import ModelConfig
from stages.model.linear import Linear
from stages.model.norm import RMSNorm
from stages.model.rotary import Rotation, rotate

LATENT_NORM_EPSILON = 1e-6
"""Of the norms on compressed channels, whatever the others have: so DeepSeek's own code."""


class LatentAttention(nn.Module):
    """Rows of `query_up` by head: plain, turning; of `kv_up` by head: key, value."""

    def __init__(self, config: ModelConfig, backend: AttentionBackend) -> None:
        super().__init__()
        assert config.latent is not None
        latent = config.latent
        self.backend, self.heads = backend, config.heads
        self.plain_width, self.rotary_width = latent.plain_width, latent.rotary_width
        self.value_width, self.kv_rank = latent.value_width, latent.kv_rank
        self.head_width = config.head_width
        query_width = config.heads * config.head_width
        if latent.query_rank is None:
            self.query = Linear(config.width, query_width)
        else:
            self.query_down = Linear(config.width, latent.query_rank)
            self.query_norm = RMSNorm(latent.query_rank, eps=LATENT_NORM_EPSILON)
            self.query_up = Linear(latent.query_rank, query_width)
        self.compresses_queries = latent.query_rank is not None
        self.kv_down = Linear(config.width, latent.kv_rank + latent.rotary_width)
        self.kv_norm = RMSNorm(latent.kv_rank, eps=LATENT_NORM_EPSILON)
        self.kv_up = Linear(
            latent.kv_rank, config.heads * (latent.plain_width + latent.value_width)
        )
        self.output = Linear(config.heads * latent.value_width, config.width)

    def forward(self, x_BLD: Tensor, rotation: Rotation | None, mask: Any) -> Tensor:
        """[batch, length, width] to the same; without a rotation, positions do not matter."""
        query_BHLC = self._heads(self._queries(x_BLD))
        plain_BHLP, turning_BHLT = query_BHLC.split((self.plain_width, self.rotary_width), dim=-1)
        kv_BLR, shared_BLT = self.kv_down(x_BLD).split((self.kv_rank, self.rotary_width), dim=-1)
        shared_B1LT = shared_BLT[:, None]
        kv_BHLX = self._heads(self.kv_up(self.kv_norm(kv_BLR)))
        key_BHLP, value_BHLV = kv_BHLX.split((self.plain_width, self.value_width), dim=-1)
        if rotation is not None:
            turning_BHLT = rotate(turning_BHLT, rotation)
            shared_B1LT = rotate(shared_B1LT, rotation)
        mixed_BHLV = self.backend.attend(
            torch.cat((plain_BHLP, turning_BHLT), dim=-1),
            torch.cat((key_BHLP, shared_B1LT.expand(-1, self.heads, -1, -1)), dim=-1),
            # Zeros up to the width of keys: fast kernels want both alike.
            F.pad(value_BHLV, (0, max(0, self.head_width - self.value_width))),
            mask,
            scale=self._scale(rotation),
        )[..., : self.value_width]
        return self.output(mixed_BHLV.transpose(1, 2).flatten(2))

    def _queries(self, x_BLD: Tensor) -> Tensor:
        if not self.compresses_queries:
            return self.query(x_BLD)
        return self.query_up(self.query_norm(self.query_down(x_BLD)))

    def _heads(self, x_BLD: Tensor) -> Tensor:
        batch, length, _ = x_BLD.shape
        return x_BLD.view(batch, length, self.heads, -1).transpose(1, 2)

    def _scale(self, rotation: Rotation | None) -> float:
        scale = self.head_width**-0.5
        return scale if rotation is None else scale * rotation.score_factor
