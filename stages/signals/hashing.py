"""What the compiled signals count with: content hashes of code points, and a table of places.

Pieces of text are compared by 64-bit hashes. Two different ones among a million in a text are taken
for equal with a chance of 3e-8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled

_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@compiled
def mixed(value: Any) -> Any:
    """A bijection of 64-bit numbers that spreads the high bits to the low ones."""
    value = (value ^ (value >> _HALF)) * _MULTIPLIER
    return value ^ (value >> _HALF)


@compiled
def absorbed(value: Any, code: Any) -> Any:
    """The polynomial hash of a string that had `value` as its hash and goes on with `code`; to be
    `mixed` when the string is complete."""
    return (value + np.uint64(code) + _SEED) * _MULTIPLIER


@compiled
def content_hash(codes: Any, start: int, end: int) -> Any:
    """A number that names the characters [start, end) of `codes`."""
    value = np.uint64(end - start)
    for place in range(start, end - 1, 2):
        # Two characters a step: the sum waits for one product, the other is ready before.
        value = absorbed(value, np.uint64(codes[place]) * _SEED + np.uint64(codes[place + 1]))
    if (end - start) % 2:
        value = absorbed(value, codes[end - 1])
    return mixed(value)


@compiled
def empty_table(entries: int) -> Any:
    """A table for up to `entries` keys at a time: rows of a key, and a generation with a place."""
    size = 16
    while 3 * size < 4 * entries:
        size *= 2
    return np.zeros((size, 2), dtype=np.uint64)


@compiled
def mask_of(entries: int) -> Any:
    """The part of a key that is its slot where so many keys are expected: a small set of keys stays
    within the few slots that the processor's cache holds."""
    size = 16
    while 3 * size < 4 * entries:
        size *= 2
    return np.uint64(size - 1)


@compiled
def sketch_size(entries: int) -> int:
    """Slots of an array that counts hashes, so many that one in eight is met by chance at most."""
    size = 64
    while size < 8 * entries:
        size *= 2
    return size


@compiled
def first_place(table: Any, mask: Any, generation: int, key: Any, place: int) -> Any:
    """Where `key` was seen first in this generation; `place`, and noted as such, if it is new.

    Open addressing; a slot of another generation is empty, so that nothing is ever cleared. Keys
    are well mixed, generations start at 1, generations and places lie below 2^32.
    """
    stamp = np.uint64(generation)
    slot = key & mask
    while True:
        entry = table[slot, 1]
        if entry >> _HALF != stamp:
            table[slot, 0] = key
            table[slot, 1] = stamp << _HALF | np.uint64(place)
            return place
        if table[slot, 0] == key:
            return np.int64(entry & _LOW)
        slot = (slot + np.uint64(1)) & mask


@compiled
def largest(values: Any) -> int:
    """The largest of counts, 0 if there are none."""
    found = 0
    for value in values:
        found = max(found, value)
    return found


@compiled
def most(offsets: Any) -> int:
    """Entries of the text that has most of them."""
    found = 0
    for text in range(offsets.size - 1):
        found = max(found, offsets[text + 1] - offsets[text])
    return found


def hash_set(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Non-zero `hashes` as a table for `is_member`: open addressing, zero is an empty slot."""
    size = 16
    while size < 4 * len(hashes):
        size *= 2
    table = np.zeros(size, dtype=np.uint64)
    for value in hashes:
        slot = int(value) & (size - 1)
        while table[slot] not in (0, value):
            slot = (slot + 1) & (size - 1)
        table[slot] = value
    return table


@compiled
def slot_of(members: Any, value: Any) -> Any:
    """The slot of `value` in a `hash_set`, or -1 where it is not a member."""
    mask = np.uint64(members.size - 1)
    slot = value & mask
    while members[slot] != np.uint64(0):
        if members[slot] == value:
            return np.int64(slot)
        slot = (slot + np.uint64(1)) & mask
    return -1
