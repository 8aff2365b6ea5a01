"""The decoder's pass over the next token of each row, as plain functions of its weights.

What it computes is what `Decoder.forward` computes over a cache; the tests hold the two together.
It is there for its speed: where a token's matrix products are small, most of its time goes to calls
of modules, and the heads of queries and keys may turn together (tests/benchmarks/generation.py has
the figures).

Shapes: B batch, T columns of the cache, D width, H query heads, K key and value heads, C channels
of a head, V vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from stages.model.cache import Cache
from stages.model.decoder import Block, Decoder
from stages.model.layers import GroupedAttention, SwiGLU, compute_rotation
from stages.parallel.boxes import is_spread


class _Layer(NamedTuple):
    """The weights of a block; matrices are [inputs, outputs]."""

    attention_norm: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    query_norm: Tensor | None
    key_norm: Tensor | None
    output: Tensor
    mlp_norm: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor

    @classmethod
    def from_block(cls, block: Block) -> Self:
        attention, mlp = block.attention, block.mlp
        assert isinstance(attention, GroupedAttention)
        assert isinstance(mlp, SwiGLU)
        norms = attention.norm_over != "none"
        return cls(
            block.attention_norm.weight.detach(),
            attention.query.weight.detach().t(),
            attention.key.weight.detach().t(),
            attention.value.weight.detach().t(),
            attention.query_norm.weight.detach() if norms else None,
            attention.key_norm.weight.detach() if norms else None,
            attention.output.weight.detach().t(),
            block.mlp_norm.weight.detach(),
            mlp.gate.weight.detach().t(),
            mlp.up.weight.detach().t(),
            mlp.down.weight.detach().t(),
        )


class _Turn(NamedTuple):
    """What turns channels: x · cos + x[partner] · sin, the sign of each in sin."""

    cos_B1C: Tensor
    sin_B1C: Tensor
    partner_C: Tensor


class DecodeStep:
    """The pass of one model, to be called without autocast.

    It sees weights that are changed in place, but none that take the place of others.
    """

    def __init__(self, model: Decoder) -> None:
        self.model = model
        self._layers = [_Layer.from_block(block) for block in model.blocks]  # type: ignore[arg-type]

    @staticmethod
    def supports(model: Decoder) -> bool:
        """Whether it has grouped attention, SwiGLU, and whole matrices on this rank."""
        plain = model.config.latent is None and model.config.experts is None
        return plain and not any(is_spread(weight) for weight in model.parameters())

    def logits(
        self,
        tokens_B: Tensor,
        positions_B: Tensor,
        cache: Cache,
        padding_BT: Tensor | None = None,
    ) -> Tensor:
        """[B, V] after these tokens, which it puts into `cache`.

        `padding_BT` marks columns of the cache, with those of the new tokens, that hold nothing.
        """
        config = self.model.config
        x_BD = F.embedding(tokens_B, self.model.embedding.weight)
        turn = self._turn(positions_B)
        windows = [config.window_of(layer) for layer in range(config.layers)]
        columns = cache.get_seq_length() + 1
        masks = {one: _mask(padding_BT, columns, one, x_BD) for one in set(windows)}
        before = config.norm == "pre"
        for layer, weights in enumerate(self._layers):
            rope = turn if config.rotates(layer) else None
            y_BD = self._norm(x_BD, weights.attention_norm) if before else x_BD
            y_BD = self._attention(y_BD, layer, rope, masks[windows[layer]], cache)
            x_BD = x_BD + (y_BD if before else self._norm(y_BD, weights.attention_norm))
            y_BD = self._norm(x_BD, weights.mlp_norm) if before else x_BD
            y_BD = F.silu(torch.mm(y_BD, weights.gate)).mul_(torch.mm(y_BD, weights.up))
            y_BD = torch.mm(y_BD, weights.down)
            x_BD = x_BD + (y_BD if before else self._norm(y_BD, weights.mlp_norm))
        x_BD = self._norm(x_BD, self.model.norm.weight)
        return self.model.logits(x_BD, (self.model.head or self.model.embedding).weight)

    def _turn(self, positions_B: Tensor) -> _Turn:
        config, device = self.model.config, positions_B.device
        cos_B1LC, sin_B1LC, _ = compute_rotation(
            positions_B[:, None], config.rotary_width, config.rope_base, config.rope_scaling
        )
        half = config.rotary_width // 2
        cos_B1C, sin_B1C = cos_B1LC[:, 0], sin_B1LC[:, 0].clone()
        sin_B1C[..., :half].neg_()
        partner_C = torch.arange(config.head_width, device=device)
        partner_C[: 2 * half] = partner_C[: 2 * half].roll(half)
        if staying := config.head_width - 2 * half:
            cos_B1C = F.pad(cos_B1C, (0, staying), value=1.0)
            sin_B1C = F.pad(sin_B1C, (0, staying))
        return _Turn(cos_B1C, sin_B1C, partner_C)

    def _attention(
        self,
        x_BD: Tensor,
        layer: int,
        turn: _Turn | None,
        mask: Tensor | None,
        cache: Cache,
    ) -> Tensor:
        weights, config = self._layers[layer], self.model.config
        rows, heads, channels = len(x_BD), config.heads, config.head_width
        query, key = torch.mm(x_BD, weights.query), torch.mm(x_BD, weights.key)
        if config.qk_norm == "width":
            query, key = self._norm(query, weights.query_norm), self._norm(key, weights.key_norm)
        query_BHC, key_BKC = query.view(rows, -1, channels), key.view(rows, -1, channels)
        if config.qk_norm == "head":
            query_BHC = self._norm(query_BHC, weights.query_norm)
            key_BKC = self._norm(key_BKC, weights.key_norm)
        if turn is not None:
            both = torch.cat((query_BHC, key_BKC), dim=1)
            both = both.to(torch.promote_types(both.dtype, torch.float32))
            partners = both.index_select(2, turn.partner_C)
            # In float32 at least and back, as `rotate`.
            turned = (both * turn.cos_B1C).addcmul_(partners, turn.sin_B1C).type_as(x_BD)
            query_BHC, key_BKC = turned.split((heads, turned.shape[1] - heads), dim=1)
        value_BK1C = torch.mm(x_BD, weights.value).view(rows, -1, 1, channels)
        key_BKTC, value_BKTC = cache.update(key_BKC[:, :, None], value_BK1C, layer)
        # Heads that share keys are queries of one head.
        query_BKGC = query_BHC.view(rows, key_BKTC.shape[1], -1, channels)
        mixed = F.scaled_dot_product_attention(query_BKGC, key_BKTC, value_BKTC, attn_mask=mask)
        return torch.mm(mixed.reshape(rows, -1), weights.output)

    def _norm(self, x: Tensor, weight: Tensor | None) -> Tensor:
        assert weight is not None
        epsilon = self.model.config.norm_epsilon
        if x.device.type != "cpu" or x.dtype != torch.float32:
            return F.rms_norm(x, weight.shape, weight, epsilon)
        # The same operations: torch's own takes twice their time for a few rows.
        return (x * x.square().mean(dim=-1, keepdim=True).add_(epsilon).rsqrt_()).mul_(weight)


def _mask(
    padding_BT: Tensor | None, columns: int, window: int | None, like: Tensor
) -> Tensor | None:
    """What is added to scores, [B or 1, 1, 1, T]: minus infinity for padding and beyond the window.

    None where every column is seen.
    """
    bounded = window is not None and window < columns
    if padding_BT is None and not bounded:
        return None
    rows = 1 if padding_BT is None else len(padding_BT)
    mask_BT = torch.zeros((rows, columns), dtype=like.dtype, device=like.device)
    if padding_BT is not None:
        mask_BT.masked_fill_(padding_BT, float("-inf"))
    if bounded:
        mask_BT[:, :-window] = float("-inf")  # type: ignore[operator]
    return mask_BT[:, None, None]
