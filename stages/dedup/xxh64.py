"""XXH64 of many short messages (Collet, xxHash specification 0.1.1), seed 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled

_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)


@compiled
def xxh64(
    data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The XXH64 of each data[start:end], which may overlap: uint64 [messages]."""
    found = np.empty(len(starts), dtype=np.uint64)
    for message in range(len(starts)):
        found[message] = _digest(data, starts[message], ends[message])
    return found


@compiled
def _digest(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    at = start
    if end - start >= 32:
        one, two = _PRIME_1 + _PRIME_2, _PRIME_2
        three, four = np.uint64(0), np.uint64(0) - _PRIME_1
        while at + 32 <= end:
            one = _round(one, _little(data, at, 8))
            two = _round(two, _little(data, at + 8, 8))
            three = _round(three, _little(data, at + 16, 8))
            four = _round(four, _little(data, at + 24, 8))
            at += 32
        value = _rotated(one, 1) + _rotated(two, 7) + _rotated(three, 12) + _rotated(four, 18)
        for part in (one, two, three, four):
            value = (value ^ _round(np.uint64(0), part)) * _PRIME_1 + _PRIME_4
    else:
        value = _PRIME_5
    value += np.uint64(end - start)
    while at + 8 <= end:
        value ^= _round(np.uint64(0), _little(data, at, 8))
        value = _rotated(value, 27) * _PRIME_1 + _PRIME_4
        at += 8
    if at + 4 <= end:
        value ^= _little(data, at, 4) * _PRIME_1
        value = _rotated(value, 23) * _PRIME_2 + _PRIME_3
        at += 4
    while at < end:
        value = _rotated(value ^ np.uint64(data[at]) * _PRIME_5, 11) * _PRIME_1
        at += 1
    value = (value ^ value >> np.uint64(33)) * _PRIME_2
    value = (value ^ value >> np.uint64(29)) * _PRIME_3
    return value ^ value >> np.uint64(32)


@compiled
def _round(accumulator: np.uint64, lane: np.uint64) -> np.uint64:
    return _rotated(accumulator + lane * _PRIME_2, 31) * _PRIME_1


@compiled
def _rotated(value: np.uint64, bits: int) -> np.uint64:
    """`value` rotated to the left."""
    return value << np.uint64(bits) | value >> np.uint64(64 - bits)


@compiled
def _little(data: NDArray[np.uint8], at: int, size: int) -> np.uint64:
    """`size` bytes from `at` on as a little-endian number."""
    value = np.uint64(0)
    for i in range(size):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return value
