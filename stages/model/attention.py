"""Attention backends by name. Every one says whether it keeps packed documents apart.

A backend that cannot honour a document mask is refused when such a mask is asked for; nothing falls
back silently (mosaicml/llm-foundry#1183 and huggingface/trl#5316 show what happens otherwise).

Shapes: B batch, L length, H query heads, K key and value heads, C channels of a head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
"""(query_BHLC, key_BKLC, value_BKLC, documents_BL or None) -> mixed_BHLC."""


@dataclass(frozen=True)
class AttentionBackend:
    """One implementation of causal attention with grouped key and value heads.

    `prepare` turns `documents_BL` into whatever `attend` wants as its mask, once for all layers;
    None for a backend that knows plain causal attention only.
    """

    name: str
    attend: Attend
    prepare: Callable[[Tensor], Tensor] | None


_BACKENDS: dict[str, AttentionBackend] = {}


def register_attention(backend: AttentionBackend) -> AttentionBackend:
    """Make `backend` known by its name; UsageError if the name is taken."""
    if backend.name in _BACKENDS:
        raise UsageError(f"attention backend '{backend.name}' is registered twice")
    _BACKENDS[backend.name] = backend
    return backend


def attention_backend(name: str) -> AttentionBackend:
    """The backend called `name`; UsageError with the nearest name if there is none."""
    if name not in _BACKENDS:
        raise UsageError(f"no attention backend '{name}'{did_you_mean(name, _BACKENDS)}")
    return _BACKENDS[name]


def document_mask(backend: AttentionBackend, documents_BL: Tensor | None) -> Tensor | None:
    """The mask that `backend` needs to keep `documents_BL` apart; None for plain causal attention.

    UsageError if the backend cannot keep them apart.
    """
    if documents_BL is None:
        return None
    if backend.prepare is None:
        raise UsageError(
            f"attention backend '{backend.name}' cannot keep packed documents apart",
            hint="use 'sdpa', or rows of one document each",
        )
    return backend.prepare(documents_BL)


def block_diagonal_mask(documents_BL: Tensor) -> Tensor:
    """[batch, 1, length, length] of bool: query may see key (causal, and of the same document).

    Padding (-1) sees earlier padding and itself, so no row of the softmax is empty.
    """
    same_BLL = documents_BL[:, :, None] == documents_BL[:, None, :]
    return same_BLL.tril()[:, None]


def _sdpa(query_BHLC: Tensor, key_BKLC: Tensor, value_BKLC: Tensor, mask: Tensor | None) -> Tensor:
    return F.scaled_dot_product_attention(
        query_BHLC, key_BKLC, value_BKLC, attn_mask=mask, is_causal=mask is None, enable_gqa=True
    )


SDPA = register_attention(AttentionBackend("sdpa", _sdpa, block_diagonal_mask))
"""The reference: torch's scaled dot product attention, with a dense mask for packed documents."""
