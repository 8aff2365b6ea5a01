"""Rows of a micro-batch, and packing of sequences (conversations, answers) into them.

B rows, L tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.training.examples import Example
from stages.training.pieces import IGNORED, PADDED

Integers = NDArray[np.int32] | NDArray[np.int64]

_WIDTH_STEP = 8
"""Rows are padded to a multiple of this: odd widths are slow in native kernels."""


@dataclass(frozen=True)
class Rows:
    """What one forward pass sees: token ids, what each is to predict, and the document of each.

    Targets are int64, which is what cross entropy takes. A token sees those before it in its
    document, and all of the document's that `prefix_BL` marks; None marks none.
    """

    tokens_BL: Integers
    targets_BL: NDArray[np.int64]
    documents_BL: Integers
    prefix_BL: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.tokens_BL)

    @property
    def tokens(self) -> int:
        """Tokens that are not padding."""
        return int((self.documents_BL != PADDED).sum())

    @property
    def targets(self) -> int:
        """Targets that count."""
        return int((self.targets_BL != IGNORED).sum())

    def split(self, rows: int) -> list[Rows]:
        """Micro-batches of at most `rows` rows."""
        return [
            Rows(
                self.tokens_BL[start : start + rows],
                self.targets_BL[start : start + rows],
                self.documents_BL[start : start + rows],
                None if self.prefix_BL is None else self.prefix_BL[start : start + rows],
            )
            for start in range(0, len(self), rows)
        ]


def pack_rows(examples: Sequence[Example], context: int) -> Rows:
    """Place each example whole into a row of at most `context` tokens; documents are its index.

    Best fit, longest first; the rows are as wide as the fullest needs. Raises ValueError for an
    example that is longer than `context`.
    """
    placed: list[list[int]] = []
    free: list[int] = []
    for index in sorted(range(len(examples)), key=lambda i: (-len(examples[i]), i)):
        length = len(examples[index])
        if length > context:
            raise ValueError(f"example {index} has {length} tokens, context {context}")
        fitting = [row for row in range(len(placed)) if free[row] >= length]
        if fitting:
            row = min(fitting, key=lambda r: (free[r], r))
        else:
            row = len(placed)
            placed.append([])
            free.append(context)
        placed[row].append(index)
        free[row] -= length
    width = min(context, -(-(context - min(free, default=context)) // _WIDTH_STEP) * _WIDTH_STEP)
    return _filled(examples, placed, width)


def _filled(examples: Sequence[Example], placed: list[list[int]], width: int) -> Rows:
    tokens = np.zeros((len(placed), width), dtype=np.int64)
    targets = np.full((len(placed), width), IGNORED, dtype=np.int64)
    documents = np.full((len(placed), width), PADDED, dtype=np.int64)
    for row, indexes in enumerate(placed):
        start = 0
        for index in indexes:
            example = examples[index]
            span = slice(start, start + len(example))
            tokens[row, span] = example.ids[:-1]
            targets[row, span] = np.where(example.trained[1:], example.ids[1:], IGNORED)
            documents[row, span] = index
            start = span.stop
    return Rows(tokens, targets, documents)
