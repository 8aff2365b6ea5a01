"""A set of integers below a bound as bits, searched up or down in a few steps, compiled.

Level 0 has a bit for each integer, and each level above a bit for each word of 64 below it that
is not empty: a tree of 64 branches (van Emde Boas 1975, in its simplest form). 2^24 integers take
four levels and 2 MiB, and a search looks at no more than eight words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from stages.text.native import compiled

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

_ONE = np.uint64(1)


def empty_set(bound: int) -> tuple[Words, Ints]:
    """No integer of 0…bound-1: the words of all levels, and where each level begins and ends."""
    sizes = [-(-bound // 64)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 64))
    levels = np.cumsum([0, *sizes], dtype=np.int64)
    return np.zeros(int(levels[-1]), dtype=np.uint64), levels


def _lowest_bit(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def _leading_zeros(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def _compiled_only(generator: Callable[..., Any]) -> Any:
    return intrinsic(generator)


lowest_bit: Callable[[np.uint64], int] = _compiled_only(_lowest_bit)
"""Place of the lowest bit that is set in a number; 64 where none is."""

leading_zeros: Callable[[np.uint64], int] = _compiled_only(_leading_zeros)
"""How many bits above the highest that is set; 64 where none is."""


@compiled
def add(words: Words, levels: Ints, member: int) -> None:
    """Put `member` into the set."""
    for level in range(len(levels) - 1):
        place = levels[level] + (member >> 6)
        before = words[place]
        words[place] = before | (_ONE << np.uint64(member & 63))
        if before:
            return
        member >>= 6


@compiled
def remove(words: Words, levels: Ints, member: int) -> None:
    """Take `member`, which is in the set, out of it."""
    for level in range(len(levels) - 1):
        place = levels[level] + (member >> 6)
        words[place] &= ~(_ONE << np.uint64(member & 63))
        if words[place]:
            return
        member >>= 6


@compiled
def least_from(words: Words, levels: Ints, bound: int) -> int:
    """The least member that is `bound` or more; -1 where there is none."""
    place = bound
    for level in range(len(levels) - 1):
        word = place >> 6
        if levels[level] + word >= levels[level + 1]:
            return -1
        found = words[levels[level] + word] >> np.uint64(place & 63)
        if found:
            place += lowest_bit(found)
            for below in range(level - 1, -1, -1):
                place = (place << 6) + lowest_bit(words[levels[below] + place])
            return place
        place = word + 1
    return -1


@compiled
def greatest_to(words: Words, levels: Ints, bound: int) -> int:
    """The greatest member that is `bound` or less; -1 where there is none."""
    place = bound
    for level in range(len(levels) - 1):
        word = place >> 6
        found = words[levels[level] + word] << np.uint64(63 - (place & 63))
        if found:
            place -= leading_zeros(found)
            for below in range(level - 1, -1, -1):
                place = (place << 6) + 63 - leading_zeros(words[levels[below] + place])
            return place
        place = word - 1
        if place < 0:
            return -1
    return -1
