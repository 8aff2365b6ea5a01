"""Which tokens a token sees: one rule, from which every attention backend makes its own mask.

Shapes: B batch, L length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Visibility:
    """Query sees key if both are of one document, the key is not later, and within the window.

    `documents_BL` numbers the piece of each token, equal numbers stand together, -1 is padding:
    it sees earlier padding and itself, so that no row of the softmax is empty. None: one document
    a row. `prefix_BL` marks keys that earlier tokens see too (prefix language models, Raffel et
    al. 2020, section 3.2.1); all True is attention in both directions. None: none of them.
    A `window` is the count of tokens that are seen, the query's own among them; it reaches as far
    ahead where a prefix lies ahead. None, or a window no shorter than the row: no bound.
    """

    batch: int
    length: int
    device: torch.device
    documents_BL: Tensor | None = None
    prefix_BL: Tensor | None = None
    window: int | None = None

    @classmethod
    def of(
        cls, tokens_BL: Tensor, documents_BL: Tensor | None, prefix_BL: Tensor | None
    ) -> Visibility:
        """What the tokens of a batch see, without a window."""
        batch, length = tokens_BL.shape
        return cls(batch, length, tokens_BL.device, documents_BL, prefix_BL)

    @property
    def reach(self) -> int | None:
        """The window, where it bounds anything."""
        return self.window if self.window is not None and self.window < self.length else None

    @property
    def is_causal(self) -> bool:
        """Whether every token just sees all earlier ones of its row."""
        return self.documents_BL is None and self.prefix_BL is None and self.reach is None

    def rule(self) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
        """(batch, head, query, key) of indexes to bool, broadcast: what FlexAttention asks for."""
        documents_BL, prefix_BL, reach = self.documents_BL, self.prefix_BL, self.reach

        def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            seen = key <= query
            if prefix_BL is not None:
                seen = seen | prefix_BL[batch, key]
            if documents_BL is not None:
                seen = seen & (documents_BL[batch, query] == documents_BL[batch, key])
            if reach is not None:
                seen = seen & ((query - key).abs() < reach)
            return seen

        return sees

    def dense(self, first: int = 0) -> Tensor:
        """[batch or 1, 1, length - first, length] of bool: what tokens from `first` on see."""
        index_L = torch.arange(self.length, device=self.device)
        apart = self.documents_BL is not None or self.prefix_BL is not None
        rows_B = torch.arange(self.batch if apart else 1, device=self.device)
        seen_BLL = self.rule()(
            rows_B[:, None, None], rows_B, index_L[None, first:, None], index_L[None, None, :]
        )
        return seen_BLL[:, None]
