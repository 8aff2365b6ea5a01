"""Rotary positions: channels turn in pairs by an angle that grows with the position.

Su et al. 2021, RoFormer, eq. 15, in the layout of Hugging Face's Llama: of the channels that turn,
i turns with i + C/2, not with its neighbour. No parameter depends on base or scaling, so both may
change while a model trains (adjusted base frequency: Xiong et al. 2023, arXiv 2309.16039).

Shapes: B batch, L length, H heads, C channels that turn, c half of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from stages.model.config import RopeScaling


class Rotation(NamedTuple):
    """cos and sin of each token's angles, [batch, 1, length, channels], in float32.

    `score_factor` is what latent attention multiplies its scores by (1 but for DeepSeek's YaRN).
    """

    cos_B1LC: Tensor
    sin_B1LC: Tensor
    score_factor: float = 1.0


def rotation_at(
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
    """`x` with its first channels turned, in float32 and back in its own type; the rest stays."""
    width = rotation.cos_B1LC.shape[-1]
    if width < x_BHLC.shape[-1]:
        turning, staying = x_BHLC.split((width, x_BHLC.shape[-1] - width), dim=-1)
        return torch.cat((rotate(turning, rotation), staying), dim=-1)
    x = x_BHLC.float()
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

    def channel_of(turns: float) -> float:
        """The pair that turns so often over the original context."""
        assert scaling.original_context is not None
        period = scaling.original_context / (2 * math.pi * turns)
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


def first_of_piece(documents_BL: Tensor) -> Tensor:
    """Whether a token begins its piece, [batch, length] of bool."""
    first_BL = torch.ones_like(documents_BL, dtype=torch.bool)
    first_BL[:, 1:] = documents_BL[:, 1:] != documents_BL[:, :-1]
    return first_BL
