"""Keys and values of earlier tokens, so that a generated token costs one token's work.

A model attends over a cache while `CachedAttention` is its backend: `model.attend_by(attention)`,
then each forward pass inside `attention.over(cache, …)`, with the positions of the new tokens.

Shapes: B batch, K heads of keys and values, H heads, L length of this call, T of all calls so far,
this one included, C width of a head.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from torch import Tensor

from stages.model.attention import Sdpa, Visibility


class Cache(Protocol):
    """What holds keys and values: `KeyValueCache`, or a cache of `transformers`."""

    def get_seq_length(self) -> int:
        """Tokens that it holds."""

    def update(self, key: Tensor, value: Tensor, layer: int, /) -> tuple[Tensor, Tensor]:
        """Append those of new tokens to a layer; returns all of that layer."""


class KeyValueCache:
    """Keys and values [B, K, T, C] of every layer, of all tokens, those outside of a window too.

    Space grows by doubling, so a token costs a copy of its own keys and values.
    """

    def __init__(self) -> None:
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        self._lengths: list[int] = []

    def get_seq_length(self) -> int:
        """Tokens that every layer holds."""
        return self._lengths[-1] if self._lengths else 0

    def crop(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        self._lengths = [min(length, one) for one in self._lengths]

    def update(self, key: Tensor, value: Tensor, layer: int, /) -> tuple[Tensor, Tensor]:
        """Append `key` and `value` [B, K, L, C] to a layer; returns all T of that layer.

        Layers come in order at the first call.
        """
        if layer == len(self._lengths):
            self._keys.append(key)
            self._values.append(value)
            self._lengths.append(key.shape[2])
            return key, value
        start = self._lengths[layer]
        stop = start + key.shape[2]
        for held, new in ((self._keys, key), (self._values, value)):
            if stop > held[layer].shape[2]:
                shape = (*new.shape[:2], 2 * stop, new.shape[3])
                grown = new.new_empty(shape)
                grown[:, :, :start] = held[layer][:, :, :start]
                held[layer] = grown
            held[layer][:, :, start:stop] = new
        self._lengths[layer] = stop
        return self._keys[layer][:, :, :stop], self._values[layer][:, :, :stop]


class CachedAttention(Sdpa):
    """The reference, over a cache as well. Layers call it in order, once per forward pass."""

    name = "caching"

    def __init__(self) -> None:
        self._cache: Cache | None = None
        self._documents_BT: Tensor | None = None
        self._past, self._layer = 0, 0

    @contextmanager
    def over(self, cache: Cache | None, documents_BT: Tensor | None = None) -> Iterator[None]:
        """Inside it, one call of the model that continues from `cache`, and extends it.

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
        """As the reference; over a cache, what is added to scores [1 or B, 1, L, T]."""
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
        """Queries of the new tokens see the keys of all."""
        if self._cache is not None:
            key_BKLC, value_BKLC = self._cache.update(key_BKLC, value_BKLC, self._layer)
            self._layer += 1
        return super().attend(query_BHLC, key_BKLC, value_BKLC, mask, scale)
