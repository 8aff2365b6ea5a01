"""Which of many literals a text may hold, by its pairs of bytes: one pass for all of them.

To search a text for each of 300 literals takes longer than all that follows where none is there.
A text of a few thousand characters has a few hundred pairs of bytes, so most literals have one that
it lacks, and are not searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Pairs: TypeAlias = npt.NDArray[np.bool_]

_SHORT = 200
"""Bytes of a text in which the searches themselves take less."""

_ALWAYS = 1 << 12
"""The place behind all pairs, which is set for every text: what pads short literals."""


def find_pairs(encoded: bytes) -> Pairs | None:
    """The pairs of neighbouring bytes of a text, as 4,096 truths and one more; None if it is short.

    A pair is numbered by its first byte and the lower half of its second one, so capitals of ASCII
    are small letters where they stand second.
    """
    if len(encoded) < _SHORT:
        return None
    pairs = np.zeros(_ALWAYS + 1, np.bool_)
    pairs[_ALWAYS] = True
    for offset in (0, 1):
        pairs[_number_pairs(encoded, offset)] = True
    return pairs


def _number_pairs(encoded: bytes, offset: int) -> npt.NDArray[np.uint16]:
    """The numbers of every second pair, from `offset` on."""
    count = max(0, len(encoded) - offset) // 2
    numbers: npt.NDArray[np.uint16] = np.frombuffer(encoded, "<u2", count, offset if count else 0)
    return numbers & np.uint16(_ALWAYS - 1)


def fold_case(pairs: Pairs | None) -> Pairs | None:
    """The pairs of the same text with its capitals of ASCII as small letters too."""
    if pairs is None:
        return None
    folded = pairs.copy()
    grid = folded[:_ALWAYS].reshape(16, 256)
    grid[:, 97:123] |= grid[:, 65:91]
    return folded


class Literals:
    """Literals, of which those are chosen that a text may hold."""

    def __init__(self, literals: Sequence[bytes]):
        numbers = [
            np.concatenate([_number_pairs(one, offset) for offset in (0, 1)]) for one in literals
        ]
        self._numbers = np.full((len(numbers), max(map(len, numbers), default=0)), _ALWAYS)
        self._all = range(len(numbers))
        for row, pairs in zip(self._numbers, numbers, strict=True):
            row[: len(pairs)] = pairs

    def choose(self, pairs: Pairs | None) -> Sequence[int]:
        """The places of the literals whose every pair is there: all that the text holds."""
        if pairs is None:
            return self._all
        return np.flatnonzero(pairs[self._numbers].all(axis=1)).tolist()
