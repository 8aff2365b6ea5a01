"""Many reads by position in one call: pieces of a file, and where sorted records have a key.

Tens of thousands of documents are looked up for one task, each in a place of its own. In Python the
calls around `pread` take ten times as long as it does; here there is nothing around it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled, pread

BLOCK = 256
"""Records read at once at the end of a search."""
_KEY = 8


@compiled
def read_pieces(
    file: int,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    to: NDArray[np.int64],
    into: NDArray[np.uint8],
) -> int:
    """Read pieces of `sizes` bytes from `starts` on to their places `to` in `into`.

    Returns how many were read before one that was not read whole.
    """
    address = into.ctypes.data
    piece = 0
    while piece < len(starts):
        start, size, place = starts[piece], sizes[piece], to[piece]
        last = piece + 1
        # Neighbours in the file that are neighbours here are one piece.
        while last < len(starts) and starts[last] == start + size and to[last] == place + size:
            size += sizes[last]
            last += 1
        if size and pread(file, address + np.uintp(place), np.uintp(size), start) != size:
            return piece
        piece = last
    return piece


@compiled
def records_below(
    file: int, width: int, count: int, numbers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many of `count` records have a key below each of `numbers`, which ascend.

    A record is `width` bytes and begins with its key, int64 little-endian; keys ascend. The result
    is shorter than `numbers` where a read failed.
    """
    found = np.empty(len(numbers), dtype=np.int64)
    bytes_ = np.empty(BLOCK * width, dtype=np.uint8)
    address = bytes_.ctypes.data
    held, end = 0, 0  # Records [held, end) are in `bytes_`.
    low = 0
    for place in range(len(numbers)):
        number = numbers[place]
        if not (held <= low < end and _key(bytes_, (end - 1 - held) * width) >= number):
            high = count
            step = BLOCK
            # From where the last one was found on, in growing steps.
            while low + step < high:
                if pread(file, address, np.uintp(_KEY), (low + step) * width) != _KEY:
                    return found[:place]
                held, end = 0, 0
                if _key(bytes_, 0) < number:
                    low += step + 1
                    step *= 2
                else:
                    high = low + step
            while high - low > BLOCK:
                middle = (low + high) // 2
                if pread(file, address, np.uintp(_KEY), middle * width) != _KEY:
                    return found[:place]
                held, end = 0, 0
                if _key(bytes_, 0) < number:
                    low = middle + 1
                else:
                    high = middle
            held, end = low, min(low + BLOCK, count)
            size = (end - held) * width
            if size and pread(file, address, np.uintp(size), held * width) != size:
                return found[:place]
        while low < end and _key(bytes_, (low - held) * width) < number:
            low += 1
        found[place] = low
    return found


@compiled
def _key(bytes_: NDArray[np.uint8], place: int) -> np.int64:
    value = np.uint64(0)
    for at in range(_KEY):
        value |= np.uint64(bytes_[place + at]) << np.uint64(8 * at)
    return np.int64(value)
