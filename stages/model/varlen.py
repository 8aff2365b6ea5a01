"""FlashAttention over pieces of any length, packed one behind another, as a backend.

Dao 2023, FlashAttention-2, through `torch.nn.attention.varlen`: no mask and no work for pairs of
tokens in different documents.

T tokens of the batch, N pieces; else as in `attention`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from stages.model.attention import AttentionBackend
from stages.model.config import ModelConfig
from stages.model.masks import Visibility
from stages.model.rotary import first_of_piece


class Pieces(NamedTuple):
    """Where pieces begin in the T tokens of a batch: [N + 1] of int32, the last is T.

    Empty pieces at the end fill N up to a power of two, so that few sizes are ever seen.
    """

    offsets: Tensor
    longest: int
    window: int | None


class Varlen(AttentionBackend):
    """Causal attention inside each document of a batch, with or without a window."""

    name = "varlen"

    def check(self, config: ModelConfig) -> None:
        """Refuse heads that FlashAttention does not have."""
        width = config.head_width
        if width % 8 or width > 256:
            raise self.refuse(f"has no heads of {width} channels", hint="8, 16, …, 256; or 'flex'")
        if config.value_width > width:
            raise self.refuse(
                f"cannot mix values of {config.value_width} channels by heads of {width}",
                hint="use 'flex' or 'sdpa'",
            )

    def prepare(self, visible: Visibility) -> Pieces:
        if visible.prefix_BL is not None:
            raise self.refuse("cannot show a prefix to earlier tokens", hint="use 'flex' or 'sdpa'")
        if visible.device.type != "cuda":
            raise self.refuse(f"does not run on {visible.device.type}", hint="use 'sdpa'")
        return pieces_of(visible)

    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: Pieces,
        scale: float | None = None,
    ) -> Tensor:
        from torch.nn.attention.varlen import varlen_attn

        if value_BKLC.dtype not in (torch.bfloat16, torch.float16):
            raise self.refuse(f"does not compute in {value_BKLC.dtype}", hint="set precision: bf16")
        batch, heads, length, _ = query_BHLC.shape
        query_THC, key_TKC, value_TKC = (
            # Autocast casts the operands of SDPA, not those of this kernel.
            x.type_as(value_BKLC).transpose(1, 2).flatten(0, 1)
            for x in (query_BHLC, key_BKLC, value_BKLC)
        )
        mixed_THC = varlen_attn(
            query_THC,
            key_TKC,
            value_TKC,
            mask.offsets,
            mask.offsets,
            mask.longest,
            mask.longest,
            scale=scale,
            # The kernel's window counts the tokens before the query, ours the query as well.
            window_size=(-1 if mask.window is None else mask.window - 1, 0),
            enable_gqa=heads != key_TKC.shape[1],
        )
        assert isinstance(mixed_THC, Tensor)
        return mixed_THC.view(batch, length, heads, -1).transpose(1, 2)


def pieces_of(visible: Visibility) -> Pieces:
    """Where the pieces of a batch begin. It waits for the device, once a batch."""
    batch, length = visible.batch, visible.length
    if visible.documents_BL is None:
        offsets = torch.arange(0, batch * length + 1, length, device=visible.device)
        return Pieces(offsets.int(), length, visible.reach)
    begins_N = first_of_piece(visible.documents_BL).flatten().nonzero().flatten()
    pieces = 1 << (len(begins_N) - 1).bit_length()
    offsets = F.pad(begins_N, (0, pieces + 1 - len(begins_N)), value=batch * length)
    return Pieces(offsets.int(), length, visible.reach)
