"""Packed rows cut into pieces in one pass: targets, positions, piece numbers, cumulative lengths.

Rows need no index for it: text never holds a special token's id, so a piece ends at the token that
ends a document or at the end of its row, and padding is at the right only.

Shapes: B rows of L tokens, P pieces of all rows (the padding of a row counts as one).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled
from stages.training.reused_memory import ReusedMemory

IGNORED = -100
"""Target that carries no loss (the `ignore_index` of PyTorch's cross entropy)."""

PADDED = -1
"""Document number of padding."""

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Rows as a model reads them; see `Batch` for the meaning of each array.

    `largest` is the greatest id of all tokens, padding included; -1 without rows.
    """

    tokens_BL: NDArray[np.int32]
    targets_BL: NDArray[np.int64]
    positions_BL: NDArray[np.int32]
    documents_BL: NDArray[np.int32]
    cu_seqlens: NDArray[np.int32]
    max_length: int
    largest: int


def cut_into_pieces(
    raw_BL: NDArray[Any], end_id: int, padding_id: int, memory: ReusedMemory | None = None
) -> Pieces:
    """The pieces of rows of uint16 or uint32 ids.

    A piece starts at the left edge and behind each `end_id`. Ids beyond 2^31 - 1 wrap around in
    `tokens_BL`; `largest` tells. `end_id` may itself be the padding: the first one behind a text
    ends it then. The arrays lie in `memory`, if it is given.
    """
    shape = raw_BL.shape
    targets_BL, tokens_BL, positions_BL, documents_BL, starts = (memory or ReusedMemory()).arrays(
        (shape, _INT64),
        (shape, _INT32),
        (shape, _INT32),
        (shape, _INT32),
        ((raw_BL.size + 1,), _INT32),  # Only the part that is written takes memory.
    )
    id_of = raw_BL.dtype.type
    count, longest, largest = _cut(
        raw_BL,
        id_of(end_id),
        id_of(padding_id),
        tokens_BL,
        targets_BL,
        positions_BL,
        documents_BL,
        starts,
    )
    return Pieces(
        tokens_BL,
        targets_BL,
        positions_BL,
        documents_BL,
        starts[: count + 1].copy(),
        longest,
        largest,
    )


@compiled
def _cut(
    raw_BL: Any,
    end_id: Any,
    padding_id: Any,
    tokens_BL: Any,
    targets_BL: Any,
    positions_BL: Any,
    documents_BL: Any,
    starts: Any,
) -> Any:
    """Fill all arrays; number of pieces, longest piece, largest id."""
    rows, length = raw_BL.shape
    count = longest = 0
    largest = -1
    for row in range(rows):
        raw = raw_BL[row]
        filled = length
        while filled > 0 and raw[filled - 1] == padding_id:
            filled -= 1
        if end_id == padding_id and filled < length:
            filled += 1
        document = start = 0
        while start < length:
            if start < filled:
                stop = start
                while stop < filled - 1 and raw[stop] != end_id:
                    stop += 1
                stop += 1
            else:
                stop, document = length, -1
            starts[count] = row * length + start
            count += 1
            longest = max(longest, stop - start)
            top = _fill(
                raw[start:stop],
                document,
                tokens_BL[row, start:stop],
                targets_BL[row, start:stop],
                positions_BL[row, start:stop],
                documents_BL[row, start:stop],
            )
            largest = max(largest, top)
            start = stop
            document += 1
    starts[count] = rows * length
    return count, longest, largest


@compiled
def _fill(
    raw: Any, document: Any, tokens: Any, targets: Any, positions: Any, documents: Any
) -> Any:
    """One piece, or padding if `document` is negative; its largest id."""
    length = len(raw)
    largest = raw[0]
    for i in range(length):
        token = raw[i]
        largest = max(largest, token)
        tokens[i] = token
    for i in range(length):
        positions[i] = i
    for i in range(length):
        documents[i] = document
    if document < 0:
        for i in range(length):
            targets[i] = -100
    else:
        for i in range(length - 1):
            targets[i] = raw[i + 1]
        targets[length - 1] = -100
    return np.int64(largest)
