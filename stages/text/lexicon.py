"""A fixed set of strings that compiled code looks spans of a text up in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stages.text.characters import code_points
from stages.text.native import compiled

Lexicon = NDArray[np.uint32]
"""[slots, 2 + longest string] a hash table: the length of a string (0 where the slot is empty), its
index, its code points. One array, since compiled code takes several apart at each call."""

_BASE, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


def lexicon_of(strings: Sequence[str]) -> Lexicon:
    """The lexicon of distinct, non-empty strings; at most a quarter of its slots are taken."""
    longest = max(map(len, strings))
    lexicon = np.zeros((1 << (4 * len(strings)).bit_length(), 2 + longest), dtype=np.uint32)
    for index, string in enumerate(strings):
        codes = code_points(string)
        slot = _slot(codes, 0, len(codes), len(lexicon))
        while lexicon[slot, 0]:
            slot = (slot + 1) % len(lexicon)
        lexicon[slot, :2] = len(codes), index
        lexicon[slot, 2 : 2 + len(codes)] = codes
    return lexicon


@compiled
def find(lexicon: Lexicon, codes: NDArray[np.uint32], start: int, end: int) -> int:
    """The index of the string codes[start:end], or -1."""
    length = end - start
    if length > lexicon.shape[1] - 2:
        return -1
    slot = _slot(codes, start, end, len(lexicon))
    while lexicon[slot, 0]:
        if lexicon[slot, 0] == length:
            same = 0
            while same < length and lexicon[slot, 2 + same] == codes[start + same]:
                same += 1
            if same == length:
                return int(np.int64(lexicon[slot, 1]))
        slot = (slot + 1) & (len(lexicon) - 1)
    return -1


@compiled
def _slot(codes: NDArray[np.uint32], start: int, end: int, slots: int) -> int:
    value = np.uint64(0)
    for i in range(start, end):
        value = value * _BASE + np.uint64(codes[i])
    return int(np.int64((value ^ (value >> _HALF)) & np.uint64(slots - 1)))
