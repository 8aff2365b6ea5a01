"""Attention over texts that begin alike, whose common beginnings are computed once.

A row holds a forest: the tokens of each trie of texts in depth-first order, so that what follows a
token along any text is a run of tokens after it. A token sees itself and those before it on its own
text. What all rows of a batch begin with (a stem: the examples of a few-shot prompt) is computed
once, and its keys and values are put before theirs.

Shapes: B batch, K heads of keys and values, H heads, L length of a row, S length of the stem, C
channels of a head.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from stages.model.attention import Sdpa, Visibility

if TYPE_CHECKING:
    from stages.model.decoder import Decoder


@dataclass
class Stem:
    """Keys and values [1, K, S, C] of a beginning, by layer."""

    length: int
    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)


@dataclass(frozen=True)
class Branches:
    """Where the tokens of rows are: `ends_BL` is the place after the last token that goes on from
    a token, `positions_BL` how many tokens its text has before it, those of the stem among them."""

    ends_BL: Tensor
    positions_BL: Tensor
    stem: Stem | None = None

    def seen(self, window: int | None) -> Tensor:
        """[batch, 1, length, stem + length] of bool: what each token sees."""
        place_L = torch.arange(self.ends_BL.shape[1], device=self.ends_BL.device)
        positions_BL = self.positions_BL
        seen_BLL = (place_L[None, None, :] <= place_L[None, :, None]) & (
            place_L[None, :, None] < self.ends_BL[:, None, :]
        )
        if window is not None:
            seen_BLL &= positions_BL[:, :, None] - positions_BL[:, None, :] < window
        if self.stem is not None:
            stem_S = torch.arange(self.stem.length, device=positions_BL.device)
            near_BLS = positions_BL[:, :, None] - stem_S < (window or torch.iinfo(torch.int64).max)
            seen_BLL = torch.cat((near_BLS, seen_BLL), dim=2)
        return seen_BLL[:, None]


class BranchAttention(Sdpa):
    """The reference, over branches. Layers call it in order, once per forward pass."""

    name = "branches"

    def __init__(self) -> None:
        self._branches: Branches | None = None
        self._record: Stem | None = None
        self._layer = 0

    @contextmanager
    def of(self, model: Decoder) -> Iterator[BranchAttention]:
        """Inside it, `model` attends by this backend."""
        before = model.backend
        model.attend_by(self)
        try:
            yield self
        finally:
            model.attend_by(before)

    @contextmanager
    def recording(self, length: int) -> Iterator[Stem]:
        """Inside it, one call of the model on one text of `length` tokens, which becomes a stem."""
        self._record = Stem(length)
        try:
            yield self._record
        finally:
            self._record = None

    @contextmanager
    def over(self, branches: Branches | None) -> Iterator[None]:
        """Inside it, one call of the model on these rows; None for rows that do not branch."""
        self._branches, self._layer = branches, 0
        try:
            yield
        finally:
            self._branches = None

    def prepare(self, visible: Visibility) -> Tensor | None:
        """What is added to scores, [batch, 1, length, stem + length]."""
        if self._branches is None:
            return super().prepare(visible)
        return self.added(self._branches.seen(visible.window), visible.device)

    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: Tensor | None,
        scale: float | None = None,
    ) -> Tensor:
        """Queries see the keys of the stem and those of their own row."""
        if self._record is not None:
            self._record.layers.append((key_BKLC, value_BKLC))
        elif self._branches is not None and self._branches.stem is not None:
            stem = self._branches.stem.layers[self._layer]
            key_BKLC, value_BKLC = (
                torch.cat((before.expand(len(own), -1, -1, -1), own), dim=2)
                for before, own in zip(stem, (key_BKLC, value_BKLC), strict=True)
            )
        self._layer += 1
        return super().attend(query_BHLC, key_BKLC, value_BKLC, mask, scale)
