"""n-grams as flat hash tables on the disk, which many processes map into memory and share.

A table holds the n-grams of one order: 16 bytes a slot, little-endian: the hash (uint64; 0 in an
empty slot), log10 probability and log10 back-off (float32 each). n-grams lie in the order of their
hashes, each at or after its home slot, hash * capacity / 2^64, with 1.5 slots for one n-gram: so a
table is written from sorted rows without a seek, and a search ends at the first greater hash.

The hash of an n-gram is made from its last word to its first: each search for a longer match goes
on from the one before. n-grams are known by their hashes alone, as in kenlm; two of one order with
equal hashes are an error when a table is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.text.native import compiled

SLOT = np.dtype([("hash", "<u8"), ("p", "<f4"), ("backoff", "<f4")])

_A, _B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN, _ONE = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)
_S27, _S30, _S31, _S32 = (np.uint64(shift) for shift in (27, 30, 31, 32))
_LOW = np.uint64(0xFFFFFFFF)


class Table(NamedTuple):
    """One order's n-grams, as a kernel takes them: two views of one array."""

    words: NDArray[np.uint64]
    """[slots, 2]: hash, weights."""
    weights: NDArray[np.float32]
    """[slots, 4]: hash (twice), log10 probability, log10 back-off."""
    capacity: int
    """Home slots; the array goes on behind them."""


def capacity(count: int) -> int:
    """Home slots for so many n-grams."""
    return count + count // 2 + 1


@compiled
def extended(value: np.uint64, word: int) -> np.uint64:
    """The hash of an n-gram with one more word before it; the empty n-gram's is 0. Never 0."""
    value = (value ^ np.uint64(word)) + _GOLDEN
    value = (value ^ (value >> _S30)) * _A
    value = (value ^ (value >> _S27)) * _B
    value ^= value >> _S31
    return value if value else _ONE


@compiled
def home(value: np.uint64, slots: int) -> int:
    """value * slots / 2^64, without its lowest 32 bits."""
    return int(np.int64(((value >> _S32) * np.uint64(slots)) >> _S32))


@compiled
def find(table: Table, value: np.uint64) -> int:
    """The slot of a hash, or -1."""
    at = home(value, table.capacity)
    while at < len(table.words):
        hashed = table.words[at, 0]
        if hashed >= value or not hashed:
            return at if hashed == value else -1
        at += 1
    return -1


@compiled
def hashes_of(words: NDArray[np.int32]) -> NDArray[np.uint64]:
    """The hashes of n-grams [rows, order]."""
    values = np.empty(len(words), np.uint64)
    for row in range(len(words)):
        value = np.uint64(0)
        for place in range(words.shape[1] - 1, -1, -1):
            value = extended(value, words[row, place])
        values[row] = value
    return values


def write_table(path: Path, count: int, batches: Iterable[NDArray[np.void]]) -> int:
    """Write `count` rows of `SLOT`, in the order of their hashes. The number of slots written."""
    slots, written, before = capacity(count), 0, np.uint64(0)
    with path.open("wb") as file:
        for rows in batches:
            if not len(rows):
                continue
            if _repeats(rows["hash"], before):
                raise InputError(
                    "two n-grams have one hash", where=str(path), hint="prune the model"
                )
            before = rows["hash"][-1]
            places = np.empty(len(rows), np.int64)
            end = _places(rows["hash"], slots, written, places)
            block = np.zeros(end - written, SLOT)
            block[places - written] = rows
            file.write(block.tobytes())
            written = end
    return written


def _repeats(hashes: NDArray[np.uint64], before: np.uint64) -> bool:
    return bool(hashes[0] == before or (hashes[1:] == hashes[:-1]).any())


@compiled
def _places(hashes: NDArray[np.uint64], slots: int, free: int, places: NDArray[np.int64]) -> int:
    for row in range(len(hashes)):
        places[row] = max(free, home(hashes[row], slots))
        free = places[row] + 1
    return free


def table_of(
    words: NDArray[np.int32], p: NDArray[np.float32], backoff: NDArray[np.float32]
) -> Table:
    """A table in memory, of n-grams [rows, order] in any order. Raises InputError."""
    rows = np.empty(len(words), SLOT)
    rows["hash"], rows["p"], rows["backoff"] = hashes_of(words), p, backoff
    rows = rows[np.argsort(rows["hash"], kind="stable")]
    if len(rows) and _repeats(rows["hash"], np.uint64(0)):
        raise InputError("an n-gram is listed twice")
    places = np.empty(len(rows), np.int64)
    slots = capacity(len(rows))
    block = np.zeros(_places(rows["hash"], slots, 0, places), SLOT)
    block[places] = rows
    return _view(block, slots)


def map_table(path: Path, count: int, slots: int) -> Table:
    """A table file of `count` n-grams in so many slots, mapped. Raises InputError."""
    expected = slots * SLOT.itemsize
    found = path.stat().st_size if path.is_file() else None
    if found != expected or slots < count:
        raise InputError(
            f"{'no such file' if found is None else f'{found} bytes'}; {expected} bytes expected",
            where=str(path),
        )
    block = np.memmap(path, SLOT, "r") if slots else np.zeros(0, SLOT)
    return _view(block, capacity(count))


def _view(block: NDArray[np.void], slots: int) -> Table:
    plain = np.asarray(block)
    plain.flags.writeable = False  # As those of mapped files: one type for a kernel.
    return Table(plain.view("<u8").reshape(-1, 2), plain.view("<f4").reshape(-1, 4), slots)


def tables_of(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Tables of orders 2 to 6, as the scorer takes them: empty above the model's own order."""
    empty = _view(np.zeros(0, SLOT), 1)
    return (*tables, *[empty] * (5 - len(tables)))
