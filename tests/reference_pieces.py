"""Targets and segment numbers of packed rows, token by token: a second way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

IGNORED = -100

Ints = NDArray[np.int64]


def reference_pieces(rows_BL: NDArray[Any], end_id: int, padding_id: int) -> tuple[Ints, Ints]:
    """Targets and segment numbers (-1 in padding), both [B, L] int64.

    A segment starts at the left edge and after each `end_id`; padding is at the right only.
    """
    targets_BL = np.full(rows_BL.shape, IGNORED, dtype=np.int64)
    documents_BL = np.full(rows_BL.shape, -1, dtype=np.int64)
    for row, ids in enumerate(rows_BL.tolist()):
        while ids and ids[-1] == padding_id:
            ids.pop()
        segment = 0
        for place, token in enumerate(ids):
            documents_BL[row, place] = segment
            if token == end_id:
                segment += 1
            elif place + 1 < len(ids):
                targets_BL[row, place] = ids[place + 1]
    return targets_BL, documents_BL
