"""Memory for arrays that is used again once nobody holds them.

A batch is some megabytes, for which `malloc` asks the system and which it gives back, every time:
the page faults of fresh memory take several times as long as to fill it.
"""

from __future__ import annotations

from collections import deque
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_ALIGNED = 64
"""Arrays begin at the beginning of a cache line."""


class ReusedMemory:
    """Gives uninitialised arrays; keeps at most `keep` blocks that are free. Threads may share it.

    Whoever holds one of the arrays of a call, a view of it or a tensor made of it, holds the memory
    of all of them.
    """

    def __init__(self, keep: int = 4) -> None:
        self._free: deque[_Block] = deque(maxlen=keep)

    def arrays(self, *wanted: tuple[tuple[int, ...], np.dtype[Any]]) -> list[NDArray[Any]]:
        """An array for each shape and type."""
        begins, end = [], 0
        for shape, dtype in wanted:
            begins.append(end)
            end += -(-prod(shape) * dtype.itemsize // _ALIGNED) * _ALIGNED
        block = np.asarray(_Lease(self._free, self._block(end)))
        return [
            np.ndarray(shape, dtype, block, begin)
            for begin, (shape, dtype) in zip(begins, wanted, strict=True)
        ]

    def _block(self, size: int) -> _Block:
        while self._free:
            try:
                block = self._free.pop()
            except IndexError:  # Another thread was faster.
                break
            if size <= len(block.held) <= 2 * size:
                return block
        held = np.empty(max(size, _ALIGNED), dtype=np.uint8)
        return _Block(held, held.__array_interface__)


class _Block(NamedTuple):
    """Bytes, and how NumPy describes them, which takes longer to ask than to keep."""

    held: NDArray[np.uint8]
    interface: dict[str, Any]


class _Lease:
    """A block that is lent; back to the others when the last array that lies in it is gone."""

    def __init__(self, free: deque[_Block], block: _Block) -> None:
        self._free, self._block = free, block
        self.__array_interface__ = block.interface

    def __del__(self) -> None:
        self._free.append(self._block)
