"""Targets, positions and piece numbers of packed rows by whole-array operations: a second way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

IGNORED = -100

Ints = NDArray[np.int64]


def reference_pieces(
    rows_BL: NDArray[Any], end_id: int, padding_id: int
) -> tuple[Ints, Ints, Ints]:
    """Targets, positions and piece numbers (-1 in padding), all [B, L] int64.

    A piece starts at the left edge and behind each `end_id`; padding is at the right only.
    """
    tokens_BL = rows_BL.astype(np.int64)
    padding_BL = tokens_BL == padding_id
    starts_BL = np.zeros(tokens_BL.shape, dtype=bool)
    starts_BL[:, 0] = True
    starts_BL[:, 1:] = tokens_BL[:, :-1] == end_id
    starts_BL[:, 1:] |= padding_BL[:, 1:] & ~padding_BL[:, :-1]
    documents_BL = np.cumsum(starts_BL, axis=1, dtype=np.int64) - 1
    documents_BL[padding_BL] = -1
    columns_L = np.arange(tokens_BL.shape[1], dtype=np.int64)
    first_BL = np.maximum.accumulate(np.where(starts_BL, columns_L, 0), axis=1)
    targets_BL = np.full(tokens_BL.shape, IGNORED, dtype=np.int64)
    inside_BL = ~starts_BL[:, 1:] & ~padding_BL[:, 1:]
    targets_BL[:, :-1][inside_BL] = tokens_BL[:, 1:][inside_BL]
    return targets_BL, columns_L - first_BL, documents_BL
