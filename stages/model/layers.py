"""The layers of a decoder: matrices, norm, SwiGLU, rotary positions, grouped and latent attention.

Matrices and tables draw no random numbers when they are made: `Decoder.initialise` fills them.

Rotary positions: channels turn in pairs by an angle that grows with the position. Su et al.
2021, RoFormer, eq. 15, in the layout of Hugging Face's Llama: of the channels that turn, i turns
with i + C/2, not with its neighbour. No parameter depends on base or scaling, so both may change
while a model trains (adjusted base frequency: Xiong et al. 2023, arXiv 2309.16039).

Attention with grouped key and value heads (Ainslie et al. 2023, arXiv 2305.13245): one group a
query head is multi-head attention, one group for all is multi-query attention. Multi-head latent
attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): keys and values are expanded from one
narrow vector a token; positions are in channels of their own, whose key all heads share. It is
the form for training, where keys and values are expanded; a cache of the narrow vector alone is
not implemented.

Shapes: B batch, L length, D width, H query heads, K key and value heads, C channels of a head's
query and key (c half of those that turn), V of its value, R compressed channels, P plain and T
turning channels of C.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stages.model.attention import AttentionBackend, first_of_piece
from stages.model.config import ModelConfig, RopeScaling
from stages.parallel.boxes import own_part


class Linear(nn.Linear):
    """A matrix without bias; `Decoder.initialise` fills it, the global random state is not used."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def reset_parameters(self) -> None:
        """No-op: `Decoder.initialise` fills the weights."""

    def forward(self, x: Tensor) -> Tensor:
        """[..., inputs] to [..., outputs], or to this rank's part of them."""
        return F.linear(x, own_part(self.weight))


class Embedding(nn.Embedding):
    """A table of token vectors; `Decoder.initialise` fills it."""

    def reset_parameters(self) -> None:
        """No-op: `Decoder.initialise` fills the weights."""

    def forward(self, tokens_BL: Tensor) -> Tensor:
        """The vectors of tokens, [..., width]."""
        return F.embedding(tokens_BL, own_part(self.weight))


class RMSNorm(nn.RMSNorm):
    """Root mean square norm (Zhang & Sennrich 2019), in float32 under autocast.

    What a matrix gives is bfloat16 there, and so are weights that were gathered from ranks; torch's
    own norm of two types is neither fused nor silent. Without autocast it is in the weights' type.
    """

    def forward(self, x: Tensor) -> Tensor:
        """`x` over its last dimension."""
        weight = own_part(self.weight)
        if torch.is_autocast_enabled(x.device.type):
            weight = weight.float()
        return F.rms_norm(x.to(weight.dtype), weight.shape, weight, self.eps)


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x)): Shazeer 2020, "GLU Variants Improve Transformer", eq. 6."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate = Linear(width, inner)
        self.up = Linear(width, inner)
        self.down = Linear(inner, width)

    def forward(self, x_BLD: Tensor) -> Tensor:
        """[..., width] to [..., width]."""
        return self.down(F.silu(self.gate(x_BLD)) * self.up(x_BLD))


class Rotation(NamedTuple):
    """cos and sin of each token's angles, [batch, 1, length, channels], in float32.

    `score_factor` is what latent attention multiplies its scores by (1 but for DeepSeek's YaRN).
    """

    cos_B1LC: Tensor
    sin_B1LC: Tensor
    score_factor: float = 1.0


def compute_rotation(
    positions_BL: Tensor, width: int, base: float, scaling: RopeScaling | None = None
) -> Rotation:
    """The rotation of `width` channels at `positions_BL`.

    In float32, for bfloat16 would blur angles after 256.
    """
    frequencies_c = rotary_frequencies(width, base, scaling, device=positions_BL.device)
    angles_BLc = positions_BL[..., None].float() * frequencies_c
    angles_B1LC = torch.cat((angles_BLc, angles_BLc), dim=-1)[:, None]
    cos_B1LC, sin_B1LC = angles_B1LC.cos(), angles_B1LC.sin()
    if scaling is None or scaling.kind != "yarn":
        return Rotation(cos_B1LC, sin_B1LC)
    factor = yarn_attention_factor(scaling)
    score_factor = _mscale(scaling.factor, scaling.mscale_all_dim or 0.0) ** 2
    return Rotation(cos_B1LC * factor, sin_B1LC * factor, score_factor)


def rotate(x_BHLC: Tensor, rotation: Rotation) -> Tensor:
    """`x` with its first channels turned, in float32 at least and back in its own type; the rest
    stays."""
    width = rotation.cos_B1LC.shape[-1]
    if width < x_BHLC.shape[-1]:
        turning, staying = x_BHLC.split((width, x_BHLC.shape[-1] - width), dim=-1)
        return torch.cat((rotate(turning, rotation), staying), dim=-1)
    x = x_BHLC.to(torch.promote_types(x_BHLC.dtype, torch.float32))
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return (x * rotation.cos_B1LC + turned * rotation.sin_B1LC).type_as(x_BHLC)


def rotary_frequencies(
    width: int,
    base: float,
    scaling: RopeScaling | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """Angle a position of each pair of channels, [width / 2], in float32, fastest first."""
    even_c = torch.arange(0, width, 2, dtype=torch.float32, device=device)
    frequencies_c = 1.0 / base ** (even_c / width)
    if scaling is None:
        return frequencies_c
    stretched_c = frequencies_c / scaling.factor
    if scaling.kind == "linear":
        return stretched_c
    if scaling.kind == "yarn":
        share_c = _yarn_ramp(width, base, scaling, device)
    else:
        share_c = _llama3_ramp(frequencies_c, scaling)
    return stretched_c * share_c + frequencies_c * (1 - share_c)


def yarn_attention_factor(scaling: RopeScaling) -> float:
    """What cos and sin are multiplied by: YaRN, eq. 22, which lowers the entropy of the scores.

    DeepSeek's quotient of two such factors where `mscale` and `mscale_all_dim` are both given.
    """
    if scaling.attention_factor is not None:
        return scaling.attention_factor
    if scaling.mscale and scaling.mscale_all_dim:
        return _mscale(scaling.factor, scaling.mscale) / _mscale(
            scaling.factor, scaling.mscale_all_dim
        )
    return _mscale(scaling.factor, 1.0)


def _mscale(factor: float, weight: float) -> float:
    return 0.1 * weight * math.log(factor) + 1.0


def _yarn_ramp(
    width: int, base: float, scaling: RopeScaling, device: torch.device | None
) -> Tensor:
    """How much of the stretch each pair takes, 0 to 1: YaRN, eqs. 17-18, by channel.

    Pairs that turn `beta_fast` times or more over the original context take none, those that turn
    `beta_slow` times or less take all. Bounds are whole channels, as in the authors' code.
    """
    assert scaling.original_context is not None

    def channel_of(rotations: float) -> float:
        """The pair with so many rotations over the original context."""
        assert scaling.original_context is not None
        period = scaling.original_context / (2 * math.pi * rotations)
        return width * math.log(period) / (2 * math.log(base))

    low = max(math.floor(channel_of(scaling.beta_fast)), 0)
    high = min(math.ceil(channel_of(scaling.beta_slow)), width - 1)
    pairs_c = torch.arange(width // 2, dtype=torch.float32, device=device)
    return ((pairs_c - low) / (high - low or 1)).clamp(0, 1)


def _llama3_ramp(frequencies_c: Tensor, scaling: RopeScaling) -> Tensor:
    """The same for Llama 3.1 (Meta's llama-models, `apply_scaling`): linear in the turns."""
    assert scaling.original_context is not None
    turns_c = scaling.original_context * frequencies_c / (2 * math.pi)
    band = scaling.high_frequency - scaling.low_frequency
    return 1 - ((turns_c - scaling.low_frequency) / band).clamp(0, 1)


def default_positions(tokens_BL: Tensor, documents_BL: Tensor | None) -> Tensor:
    """Distance of each token from the start of its piece (of its row, without documents)."""
    positions_L = torch.arange(tokens_BL.shape[1], device=tokens_BL.device)
    if documents_BL is None:
        return positions_L.expand_as(tokens_BL)
    starts_BL = torch.where(first_of_piece(documents_BL), positions_L, 0).cummax(dim=1).values
    return positions_L - starts_BL


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


LATENT_NORM_EPSILON = 1e-6
"""Of the norms on compressed channels, whatever the others have: so DeepSeek's own code."""


class LatentAttention(nn.Module):
    """Rows of `query_up` by head: plain, turning; of `kv_up` by head: key, value."""

    def __init__(self, config: ModelConfig, backend: AttentionBackend) -> None:
        super().__init__()
        assert config.latent is not None
        latent = config.latent
        self.backend = backend
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
        query_BHLC = self._heads(self._queries(x_BLD), self.head_width)
        plain_BHLP, turning_BHLT = query_BHLC.split((self.plain_width, self.rotary_width), dim=-1)
        kv_BLR, shared_BLT = self.kv_down(x_BLD).split((self.kv_rank, self.rotary_width), dim=-1)
        shared_B1LT = shared_BLT[:, None]
        kv_BHLX = self._heads(self.kv_up(self.kv_norm(kv_BLR)), self.plain_width + self.value_width)
        key_BHLP, value_BHLV = kv_BHLX.split((self.plain_width, self.value_width), dim=-1)
        if rotation is not None:
            turning_BHLT = rotate(turning_BHLT, rotation)
            shared_B1LT = rotate(shared_B1LT, rotation)
        mixed_BHLV = self.backend.attend(
            torch.cat((plain_BHLP, turning_BHLT), dim=-1),
            torch.cat((key_BHLP, shared_B1LT.expand(-1, kv_BHLX.shape[1], -1, -1)), dim=-1),
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

    def _heads(self, x_BLD: Tensor, width: int) -> Tensor:
        batch, length, _ = x_BLD.shape
        return x_BLD.view(batch, length, -1, width).transpose(1, 2)

    def _scale(self, rotation: Rotation | None) -> float:
        scale = self.head_width**-0.5
        return scale if rotation is None else scale * rotation.score_factor
