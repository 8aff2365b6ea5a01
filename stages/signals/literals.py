"""Which of many literals a text may hold, by its pairs of bytes: one pass for all of them.

To search a text for each of 300 literals takes longer than all that follows where none is there.
A text of a few thousand characters has a few hundred of the 65,536 pairs of bytes, so most literals
have a pair that it lacks, and are not searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Pairs: TypeAlias = npt.NDArray[np.bool_]

_ALWAYS = 1 << 16
"""The place behind all pairs, which is set for every text: what pads short literals."""


def find_pairs(encoded: bytes) -> Pairs:
    """The pairs of neighbouring bytes of a text, as 65,536 truths and one more that is true."""
    pairs = np.zeros(_ALWAYS + 1, np.bool_)
    pairs[_ALWAYS] = True
    for offset in (0, 1):
        pairs[_number_pairs(encoded, offset)] = True
    return pairs


def _number_pairs(encoded: bytes, offset: int) -> npt.NDArray[np.uint16]:
    """Every second pair, from `offset` on: its first byte and 256 times its second one."""
    count = max(0, len(encoded) - offset) // 2
    return np.frombuffer(encoded, "<u2", count, offset if count else 0)


def fold_case(pairs: Pairs) -> Pairs:
    """The pairs of the same text with its capitals of ASCII as small letters too."""
    folded = pairs.copy()
    grid = folded[:_ALWAYS].reshape(256, 256)
    grid[97:123] |= grid[65:91]
    grid[:, 97:123] |= grid[:, 65:91]
    return folded


class Literals:
    """Literals, of which those are chosen that a text may hold."""

    def __init__(self, literals: Sequence[str]):
        encoded = [one.encode("utf-8", "surrogatepass") for one in literals]
        numbers = [
            np.concatenate([_number_pairs(one, offset) for offset in (0, 1)]) for one in encoded
        ]
        self._numbers = np.full((len(numbers), max(map(len, numbers), default=0)), _ALWAYS)
        for row, pairs in zip(self._numbers, numbers, strict=True):
            row[: len(pairs)] = pairs

    def choose(self, pairs: Pairs) -> list[int]:
        """The places of the literals whose every pair is there; every one that the text holds."""
        return list(np.flatnonzero(pairs[self._numbers].all(axis=1)))
