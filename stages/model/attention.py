"""What an attention backend is, and the reference.

Shapes: B batch, L length, H query heads, K key and value heads, C channels of a head.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from artifacts_schema.errors import UsageError
from stages.model.config import ModelConfig
from stages.model.masks import Visibility


class AttentionBackend(ABC):
    """One implementation of attention with grouped key and value heads."""

    name: ClassVar[str]

    @abstractmethod
    def check(self, config: ModelConfig) -> None:
        """UsageError if it cannot do the heads of such a model."""

    @abstractmethod
    def prepare(self, visible: Visibility) -> Any:
        """The mask that `attend` wants, made once a batch for all layers of one window.

        UsageError if the backend cannot keep it.
        """

    @abstractmethod
    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: Any,
        scale: float | None = None,
    ) -> Tensor:
        """mixed_BHLC. `scale` multiplies the scores, 1 / sqrt(C) by default."""

    def refuse(self, what: str, hint: str) -> UsageError:
        """The error that says what this backend cannot do."""
        return UsageError(f"attention backend '{self.name}' {what}", hint=hint)


class Sdpa(AttentionBackend):
    """The reference. Rows of one document, seen causally, take torch's flash kernels."""

    name = "sdpa"

    def check(self, config: ModelConfig) -> None:
        """Nothing: it does every head."""

    def prepare(self, visible: Visibility) -> Tensor | None:
        """None for plain causal attention, else what is added to scores: 0 or minus infinity.

        Of bool, torch would make the same of it again in each layer, and keep it for each.
        """
        return None if visible.is_causal else self.added(visible.dense(), visible.device)

    @staticmethod
    def added(seen_BLL: Tensor, device: torch.device) -> Tensor:
        """What is added to scores, by what each token sees."""
        half = torch.is_autocast_enabled(device.type)
        dtype = torch.get_autocast_dtype(device.type) if half else torch.float32
        hidden = torch.full((), float("-inf"), dtype=dtype, device=device)
        return torch.where(seen_BLL, torch.zeros_like(hidden), hidden)

    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: Tensor | None,
        scale: float | None = None,
    ) -> Tensor:
        """Torch chooses the kernel."""
        return F.scaled_dot_product_attention(
            query_BHLC,
            key_BKLC,
            value_BKLC,
            attn_mask=None if mask is None else mask.type_as(value_BKLC),
            is_causal=mask is None,
            scale=scale,
            enable_gqa=True,
        )
