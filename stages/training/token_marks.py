"""What a conversation's tokens are, one byte each: where it begins, what is learnt, who speaks.

Text needs no marks: a document ends at its end token, and all of it is learnt. A conversation has
the token that ends a turn many times, and only some turns are learnt, so its shards carry a file of
marks beside each file of tokens. A byte of 0 is padding.

Shapes: B rows, L tokens of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

IGNORED = -100
"""Target that carries no loss (the `ignore_index` of PyTorch's cross entropy)."""

PADDED = -1
"""Document number of padding."""

PRESENT, BEGINS, LEARNT = 1, 2, 4
"""A token and no padding; the first one of a conversation; one that the model learns to say."""

SPEAKERS = ("template", "system", "user", "assistant", "tool")
"""Whose token it is, by number; what no message says (role names, line ends) is the template's."""

_SPEAKER_BIT = 3


def make_marks(learnt: NDArray[np.bool_], speakers: NDArray[np.integer]) -> NDArray[np.uint8]:
    """[tokens] The marks of one conversation; `speakers` are positions in `SPEAKERS`.

    Its first token cannot be learnt, since nothing predicts it: ValueError.
    """
    if len(learnt) and learnt[0]:
        raise ValueError("the first token of a conversation cannot be learnt")
    marks = np.full(len(learnt), PRESENT, dtype=np.uint8)
    marks[:1] |= BEGINS
    marks[learnt] |= LEARNT
    return marks | (speakers << _SPEAKER_BIT).astype(np.uint8)


def speakers_of(marks: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Whose token each is, as a position in `SPEAKERS`; of padding, 0."""
    return (marks >> _SPEAKER_BIT).astype(np.int64)


def cut_by_marks(
    raw_BL: NDArray[Any], marks_BL: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """[B, L] targets and conversation numbers of rows of ids.

    A token's target is the next one of its conversation, if that is learnt.
    """
    begins_BL = (marks_BL & BEGINS) > 0
    documents_BL = np.cumsum(begins_BL, axis=1, dtype=np.int32) - 1
    documents_BL[marks_BL == 0] = PADDED
    targets_BL = np.full(raw_BL.shape, IGNORED, dtype=np.int64)
    learnt_BL = (marks_BL[:, 1:] & LEARNT) > 0
    targets_BL[:, :-1][learnt_BL] = raw_BL[:, 1:][learnt_BL]
    return targets_BL, documents_BL
