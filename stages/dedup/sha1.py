"""SHA-1 of many short messages at once (FIPS 180-4), a message in each lane of the processor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled

_LANES = 64
_START = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0], dtype=np.uint32)
_CONSTANTS = np.array([0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6], dtype=np.uint32)
_HALF = np.uint64(32)


@compiled
def sha1_64(
    data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The first eight bytes of the SHA-1 of each data[start:end], as a little-endian number.

    Messages may overlap. Neighbours are hashed together, so a long one slows down 63 others.
    """
    found = np.empty(len(starts), dtype=np.uint64)
    words = np.zeros((16, _LANES), dtype=np.uint32)
    state = np.empty((5, _LANES), dtype=np.uint32)
    chained = np.empty((5, _LANES), dtype=np.uint32)
    for first in range(0, len(starts), _LANES):
        lanes = min(_LANES, len(starts) - first)
        longest = 0
        for lane in range(lanes):
            longest = max(longest, ends[first + lane] - starts[first + lane])
        for i in range(5):
            for lane in range(_LANES):
                chained[i, lane] = _START[i]
        for block in range(_blocks(longest)):
            for lane in range(lanes):
                message = first + lane
                _load(data, starts[message], ends[message], block, words, lane)
            for i in range(5):
                for lane in range(_LANES):
                    state[i, lane] = chained[i, lane]
            _compress(words, state)
            for lane in range(lanes):
                if block < _blocks(ends[first + lane] - starts[first + lane]):
                    for i in range(5):
                        chained[i, lane] += state[i, lane]
        for lane in range(lanes):
            low, high = _swapped(chained[0, lane]), _swapped(chained[1, lane])
            found[first + lane] = np.uint64(low) | (np.uint64(high) << _HALF)
    return found


@compiled
def _blocks(length: int) -> int:
    """Blocks of 64 bytes of a padded message."""
    return (length + 8) // 64 + 1


@compiled
def _load(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    block: int,
    words: NDArray[np.uint32],
    lane: int,
) -> None:
    """Put a block of the padded message data[start:end] into `words` [16, lanes]."""
    at = start + 64 * block
    left = end - at
    whole = min(max(left, 0) // 4, 16)
    for word in range(whole):
        i = at + 4 * word
        upper = np.uint32(data[i]) << np.uint32(24) | np.uint32(data[i + 1]) << np.uint32(16)
        lower = np.uint32(data[i + 2]) << np.uint32(8) | np.uint32(data[i + 3])
        words[word, lane] = np.uint32(upper | lower)
    for word in range(whole, 16):
        words[word, lane] = np.uint32(0)
    if 0 <= left < 64:
        value = np.uint32(0)
        for i in range(at + 4 * whole, end):
            value = np.uint32(value << np.uint32(8) | np.uint32(data[i]))
        value = np.uint32(value << np.uint32(8) | np.uint32(0x80))
        words[whole, lane] = np.uint32(value << np.uint32(8 * (3 - left % 4)))
    if left < 56:
        words[14, lane] = np.uint32((end - start) >> 29)
        words[15, lane] = np.uint32((end - start) << 3)


@compiled
def _compress(words: NDArray[np.uint32], state: NDArray[np.uint32]) -> None:
    """Eighty rounds over `state` [5, lanes]; the rows change their names instead of their places.

    Consumes `words` [16, lanes]. After eighty rounds each row bears its first name again.
    """
    total = np.empty(_LANES, dtype=np.uint32)
    for turn in range(80):
        now = turn & 15
        if turn >= 16:
            three, eight, fourteen = (turn + 13) & 15, (turn + 8) & 15, (turn + 2) & 15
            for lane in range(_LANES):
                mixed = words[three, lane] ^ words[eight, lane] ^ words[fourteen, lane]
                words[now, lane] = _rotated(np.uint32(mixed ^ words[now, lane]), 1)
        a, b, c = (80 - turn) % 5, (81 - turn) % 5, (82 - turn) % 5
        d, e = (83 - turn) % 5, (84 - turn) % 5
        constant = _CONSTANTS[turn // 20]
        for lane in range(_LANES):
            total[lane] = _rotated(state[a, lane], 5) + state[e, lane] + words[now, lane]
        if turn < 20:
            for lane in range(_LANES):
                x, y, z = state[b, lane], state[c, lane], state[d, lane]
                state[e, lane] = z ^ (x & (y ^ z))
        elif 40 <= turn < 60:
            for lane in range(_LANES):
                x, y, z = state[b, lane], state[c, lane], state[d, lane]
                state[e, lane] = (x & y) | (z & (x | y))
        else:
            for lane in range(_LANES):
                state[e, lane] = state[b, lane] ^ state[c, lane] ^ state[d, lane]
        for lane in range(_LANES):
            state[e, lane] += total[lane] + constant
            state[b, lane] = _rotated(state[b, lane], 30)


@compiled
def _rotated(value: np.uint32, bits: int) -> np.uint32:
    """`value` rotated to the left."""
    return np.uint32(value << np.uint32(bits) | value >> np.uint32(32 - bits))


@compiled
def _swapped(value: np.uint32) -> np.uint32:
    """`value` with its bytes in reverse order."""
    outer = value << np.uint32(24) | value >> np.uint32(24)
    inner = (value << np.uint32(8)) & np.uint32(0xFF0000) | (value >> np.uint32(8)) & np.uint32(
        0xFF00
    )
    return np.uint32(outer | inner)
