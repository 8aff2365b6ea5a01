"""What the splitters must know of a character, as bits in a table over all code points."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled

Table = NDArray[np.uint16]
Flags = Callable[[str], Iterable[tuple[int, Iterable[int]]]]
"""Given distinct characters, yields (bit, places of the characters that have it)."""

KNOWN = 1 << 15
"""Set for every code point that was looked up, so that it differs from one that was not."""


class CharacterTable:
    """[0x110000] bits of each code point, looked up when it is first met.

    What stands there depends on the code point alone, never on what was met before.
    """

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._bits: Table = np.zeros(0x110000, dtype=np.uint16)

    def covering(self, codes: NDArray[np.uint32]) -> Table:
        """The table, in which at least all of `codes` are known."""
        if not all_known(codes, self._bits):
            self._learn(np.unique(codes[self._bits[codes] == 0]))
        return self._bits

    def _learn(self, codes: NDArray[np.uint32]) -> None:
        chars = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        self._bits[codes] = KNOWN
        for bit, places in self._flags(chars):
            self._bits[codes[np.fromiter(places, dtype=np.intp)]] |= np.uint16(bit)


@compiled
def all_known(codes: NDArray[np.uint32], table: Table) -> bool:
    """Whether every code point was looked up."""
    unknown = 0
    for i in range(len(codes)):
        unknown += table[codes[i]] == 0
    return unknown == 0


def code_points(text: str) -> NDArray[np.uint32]:
    """[len(text)] the code points of a text, lone surrogates included."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
