"""Keys and values of earlier tokens, so that a generated token costs one token's work.

A model attends over a cache while `CachedAttention` is its backend: `model.attend_by(attention)`,
then each forward pass inside `attention.over(cache, …)`, with the positions of the new tokens.

`KeyValueCache` is of rows of one length, `RowsCache` of rows of any lengths, which come and go.

Shapes: B batch, K heads of keys and values, H heads, G heads that share a key, L length of this
call, T of all calls so far, this one included, C width of a head.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from stages.model.attention import Sdpa, Visibility


class Cache(Protocol):
    """What holds keys and values: one of this module, or a cache of `transformers`."""

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

    def fork(self, most: int | None = None) -> KeyValueCache:
        """A cache that goes on from this one, or from its first `most` tokens; this one stays.

        Of one row it may go on with many: each begins with what the row holds.
        """
        forked = KeyValueCache()
        length = self.get_seq_length() if most is None else min(most, self.get_seq_length())
        forked._keys = [key[:, :, :length] for key in self._keys]
        forked._values = [value[:, :, :length] for value in self._values]
        forked._lengths = [length] * len(self._lengths)
        return forked

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
            if stop > held[layer].shape[2] or len(new) != len(held[layer]):
                grown = new.new_empty((*new.shape[:2], 2 * stop, new.shape[3]))
                grown[:, :, :start] = held[layer][:, :, :start]
                held[layer] = grown
            held[layer][:, :, start:stop] = new
        self._lengths[layer] = stop
        return self._keys[layer][:, :, :stop], self._values[layer][:, :, :stop]

    def layers(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Keys and values of each layer."""
        length = self.get_seq_length()
        for key, value in zip(self._keys, self._values, strict=True):
            yield key[:, :, :length], value[:, :, :length]


class RowsCache:
    """Keys and values of at most `most` rows, each as long as it is; a pass adds a token to each.

    Rows end at the same column, so that the new token of all is one slice; the columns before a
    row's first are padding, to be hidden from it. A row that is dropped leaves its place to the
    last one, so a pass computes rows that are alive and no others.
    """

    def __init__(self, most: int) -> None:
        self.lengths: list[int] = []
        self._most = most
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        self._end = 0

    def get_seq_length(self) -> int:
        """Tokens of the longest row."""
        return max(self.lengths, default=0)

    def padding(self, device: torch.device) -> Tensor | None:
        """Which columns hold nothing of a row, [B, T] of bool, that of the next token included.

        None where all rows are equally long.
        """
        longest = self.get_seq_length()
        if min(self.lengths) == longest:
            return None
        first_B = torch.tensor([longest - one for one in self.lengths], device=device)
        return torch.arange(longest + 1, device=device) < first_B[:, None]

    def add(self, source: KeyValueCache, row: int, length: int) -> None:
        """Append a row: the first `length` tokens of a row of `source`."""
        assert len(self.lengths) < self._most
        layers = list(source.layers())
        if not self._keys:
            self._keys, self._values = (
                [one[:0].new_empty((self._most, one.shape[1], 0, one.shape[3])) for one in held]
                for held in zip(*layers, strict=True)
            )
        self._make_room(length)
        place = len(self.lengths), slice(None), slice(self._end - length, self._end)
        for layer, (key, value) in enumerate(layers):
            self._keys[layer][place] = key[row, :, :length]
            self._values[layer][place] = value[row, :, :length]
        self.lengths.append(length)

    def copy(self, row: int) -> KeyValueCache:
        """What a row holds, as a cache of its own."""
        copied = KeyValueCache()
        columns = slice(self._end - self.lengths[row], self._end)
        for layer, (key, value) in enumerate(zip(self._keys, self._values, strict=True)):
            copied.update(
                key[row : row + 1, :, columns].clone(),
                value[row : row + 1, :, columns].clone(),
                layer,
            )
        return copied

    def drop(self, row: int) -> None:
        """Forget a row; the last one takes its place."""
        last = len(self.lengths) - 1
        if row < last:
            columns = slice(self._end - self.lengths[last], self._end)
            for held in (*self._keys, *self._values):
                held[row, :, columns] = held[last, :, columns]
            self.lengths[row] = self.lengths[last]
        self.lengths.pop()

    def update(self, key: Tensor, value: Tensor, layer: int, /) -> tuple[Tensor, Tensor]:
        """Put the `key` and `value` [B, K, 1, C] of the next token of each row into a layer.

        They count once all layers have them and `advance` was called.
        """
        rows, longest, end = len(self.lengths), self.get_seq_length(), self._end
        keys, values = self._keys[layer], self._values[layer]
        if rows < self._most:
            keys, values = keys[:rows], values[:rows]
        keys.narrow(2, end, 1).copy_(key)
        values.narrow(2, end, 1).copy_(value)
        columns = 2, end - longest, longest + 1
        return keys.narrow(*columns), values.narrow(*columns)

    def advance(self) -> None:
        """Count the token that a pass added to each row."""
        self.lengths = [length + 1 for length in self.lengths]
        self._end += 1
        self._make_room(0)

    def _make_room(self, length: int) -> None:
        """Columns for a row of `length` tokens and for the next token of all."""
        if length <= self._end < self._keys[0].shape[2]:
            return
        used = self.get_seq_length()
        end = max(length, used)
        columns = end + max(64, end // 4)
        for held in (self._keys, self._values):
            for layer, old in enumerate(held):
                # Zeros: what is hidden counts 0 times its value, which must not be NaN.
                new = old.new_zeros((*old.shape[:2], columns, old.shape[3]))
                new[:, :, end - used : end] = old[:, :, self._end - used : self._end]
                held[layer] = new
        self._end = end


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
        if query_BHLC.shape[2] > 1:
            return super().attend(query_BHLC, key_BKLC, value_BKLC, mask, scale)
        # Heads with the same keys are as good as queries of one head, and no kernel repeats keys.
        query_BKGC = query_BHLC.reshape(len(query_BHLC), key_BKLC.shape[1], -1, query_BHLC.shape[3])
        mixed_BKGC = super().attend(query_BKGC, key_BKLC, value_BKLC, mask, scale)
        return mixed_BKGC.reshape(*query_BHLC.shape[:3], -1)
