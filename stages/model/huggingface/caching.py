"""Attention that goes on from the keys and values of earlier calls, as a model that writes does.

Shapes: B batch, L length of this call, T of all calls so far, this one included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from torch import Tensor

from stages.model.attention import Sdpa
from stages.model.masks import Visibility


class KeyValueCache(Protocol):
    """What is asked of a `transformers.Cache`."""

    def update(self, key: Tensor, value: Tensor, layer: int, /) -> tuple[Tensor, Tensor]:
        """Take those of this call; give all."""
        ...

    def get_seq_length(self) -> int:
        """Tokens that it holds."""
        ...


class Caching(Sdpa):
    """The reference, over a cache as well. Layers are asked in their order, each once a call."""

    name = "caching"

    def __init__(self) -> None:
        self._cache: KeyValueCache | None = None
        self._documents_BT: Tensor | None = None
        self._past, self._layer = 0, 0

    @contextmanager
    def over(self, cache: KeyValueCache | None, documents_BT: Tensor | None) -> Iterator[None]:
        """Inside it, one call of the model that goes on from `cache`, and fills it.

        `documents_BT` are those of all tokens, as `Visibility` has them.
        """
        self._cache, self._documents_BT, self._layer = cache, documents_BT, 0
        self._past = 0 if cache is None else cache.get_seq_length()
        try:
            yield
        finally:
            self._cache = self._documents_BT = None
            self._past = 0

    def prepare(self, visible: Visibility) -> Tensor | None:
        if not self._past:
            return super().prepare(visible)
        length = self._past + visible.length
        whole = replace(visible, length=length, documents_BL=self._documents_BT)
        return self.added(whole.dense(first=self._past), visible.device)

    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: Tensor | None,
        scale: float | None = None,
    ) -> Tensor:
        if self._cache is not None:
            key_BKLC, value_BKLC = self._cache.update(key_BKLC, value_BKLC, self._layer)
            self._layer += 1
        return super().attend(query_BHLC, key_BKLC, value_BKLC, mask, scale)
