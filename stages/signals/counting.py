"""What the kernels of signals share: classes of characters, content hashes, hash tables.

The tables say what Python and Unicode say about each character. A code point is looked up when a
text first holds it: a table of all of them would take seconds to make in every process.

Pieces of text are compared by 64-bit hashes. Two different ones among a million in a text are taken
for equal with a chance of 3e-8.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.text.batch import Batch

KNOWN = 1
SPACE = 2
"""White space: `str.isspace`, which is `\\s` and what `str.split` and `str.strip` take away."""
WORD = 4
"""`\\w`: `str.isalnum` or an underscore."""
ALPHABETIC = 8
"""`str.isalpha`."""
ALPHANUMERIC = 16
"""`str.isalnum`."""
UPPER = 32
"""`str.isupper` of the one character."""
NOT_UPPER = 64
"""Lower or title case: a word that holds it is not `str.isupper`."""
SPECIAL = 128
"""Neither a letter, a number, a mark (categories L, N, M) nor white space."""
IGNORABLE = 512
"""Unicode's Case_Ignorable, which the choice between the two small sigmas skips."""
CASED = 1024
"""Cased and not case-ignorable."""
BREAK = 2048
"""A boundary of `str.splitlines`."""
DIGIT = 4096
"""`str.isdigit`."""
DECIMAL = 8192
"""`str.isdecimal`, which is `\\d`."""

CODE_BITS, NUMERIC = 21, 1 << 29
CODE_MASK = (1 << CODE_BITS) - 1
"""An entry of `folded`: code point, combining class above it, and whether it is numeric."""

_CODE_POINTS = 0x110000
_PRESENT = 1 << 30


class Characters(NamedTuple):
    """Two tables by code point, filled in for the characters that were looked up.

    `classes` holds the bits above. A row of `folded` holds the canonical decomposition (NFD) of
    the character in lower case: up to four entries, zero after the last.
    """

    classes: NDArray[np.uint16]
    folded: NDArray[np.uint32]


_TABLES = Characters(
    np.zeros(_CODE_POINTS, dtype=np.uint16), np.zeros((_CODE_POINTS, 4), dtype=np.uint32)
)


@lru_cache(maxsize=2)
def classify(batch: Batch) -> Characters:
    """The tables, complete for all code points of a batch; that of two batches is remembered."""
    codes = batch.codes
    for code in np.unique(codes[_TABLES.classes[codes] == 0]).tolist():
        _learn(code)
    return _TABLES


def _learn(code: int) -> None:
    char = chr(code)
    for place, part in enumerate(unicodedata.normalize("NFD", char.lower())):
        entry = ord(part) | unicodedata.combining(part) << CODE_BITS | _PRESENT
        _TABLES.folded[code, place] = entry | (NUMERIC if part.isnumeric() else 0)
    # Python has neither property, but its lower case of a sigma depends on both.
    cased = f"{char}Σ".lower().endswith("ς")
    ignorable = not cased and f"A{char}Σ".lower().endswith("ς")
    _TABLES.classes[code] = (
        KNOWN
        | SPACE * char.isspace()
        | WORD * (char.isalnum() or char == "_")
        | ALPHABETIC * char.isalpha()
        | ALPHANUMERIC * char.isalnum()
        | UPPER * char.isupper()
        | NOT_UPPER * (char.islower() or (char.istitle() and not char.isupper()))
        | SPECIAL * (not char.isspace() and unicodedata.category(char)[0] not in "LNM")
        | IGNORABLE * ignorable
        | CASED * cased
        | BREAK * (len(f"{char}x".splitlines()) > 1)
        | DIGIT * char.isdigit()
        | DECIMAL * char.isdecimal()
    )


_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def mix(value: Any) -> Any:
    """A bijection of 64-bit numbers that spreads the high bits to the low ones."""
    value = (value ^ (value >> _HALF)) * _MULTIPLIER
    return value ^ (value >> _HALF)


@kernel
def extend_hash(value: Any, code: Any) -> Any:
    """The polynomial hash of a string that had `value` as its hash and goes on with `code`; to be
    passed to `mix` when the string is complete."""
    return (value + np.uint64(code) + _SEED) * _MULTIPLIER


@kernel
def make_table(entries: int) -> Any:
    """A table for up to `entries` keys at a time: rows of a key, and a generation with a place."""
    size = 16
    while 3 * size < 4 * entries:
        size *= 2
    return np.zeros((size, 2), dtype=np.uint64)


@kernel
def slot_mask(entries: int) -> Any:
    """The part of a key that is its slot where so many keys are expected: a small set of keys stays
    within the few slots that the processor's cache holds."""
    size = 16
    while 3 * size < 4 * entries:
        size *= 2
    return np.uint64(size - 1)


@kernel
def sketch_size(entries: int) -> int:
    """Slots of an array that counts hashes, so many that one in eight is met by chance at most."""
    size = 64
    while size < 8 * entries:
        size *= 2
    return size


@kernel
def find_first(table: Any, mask: Any, generation: int, key: Any, place: int) -> Any:
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


@kernel
def most_entries(offsets: Any) -> int:
    """Entries of the text that has most of them."""
    entries = 0
    for text in range(offsets.size - 1):
        entries = max(entries, offsets[text + 1] - offsets[text])
    return entries


def make_hash_set(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
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


@kernel
def find_slot(members: Any, value: Any) -> Any:
    """The slot of `value` in a `hash_set`, or -1 where it is not a member."""
    mask = np.uint64(members.size - 1)
    slot = value & mask
    while members[slot] != np.uint64(0):
        if members[slot] == value:
            return np.int64(slot)
        slot = (slot + np.uint64(1)) & mask
    return -1
