"""A shuffle of range(n) without an index file: any element, forwards and back, in constant time.

Why not `numpy.random.permutation`: it needs n integers in memory (or in a file) before it gives the
first, for each epoch and on each rank. A Feistel network on the bits of the index is a bijection
whatever its round function is; where it leads outside range(n), it is applied again until it is
back inside ("cycle walking", Black and Rogaway 2002), which keeps it a bijection. The domain is the
next power of two, so fewer than two applications are needed on average.

Why not a linear congruential shuffle, which is as cheap: two of them differ by little more than a
shift, so sources that start together meet again and again (Marin saw it in the loss of its 32B run
and took a Feistel network instead; see its retrospective).
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from artifacts_schema.identity import canonical_json
from stages.text.native import compiled

Indices = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

ROUNDS = 10
"""Alternating rounds on the two halves; four already pass for random where halves are wide (Luby
and Rackoff 1988), the others are for halves of a few bits."""

LARGEST = 2**62

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Step of a Weyl sequence on 64 bits: 2^64 over the golden ratio, odd (SplitMix64)."""

_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_ONE = np.uint64(1)


def key_of(*parts: str | int) -> bytes:
    """A 32-byte key that depends on every part and on their order."""
    return hashlib.blake2b(canonical_json(list(parts)), digest_size=32).digest()


def round_keys(key: bytes) -> Keys:
    """[ROUNDS] A network's round keys."""
    material = hashlib.blake2b(key, digest_size=64, person=b"ingot-permute").digest()
    material += hashlib.blake2b(material, digest_size=64, person=b"ingot-permute").digest()
    return np.frombuffer(material, dtype="<u8")[:ROUNDS].astype(np.uint64)


class Permutation:
    """A pseudo-random bijection of range(size), chosen by `key`, and by `epoch` if there is one.

    Calling it maps indices to shuffled indices, `inverse` maps them back; both take and give int64
    arrays of any length. ValueError if `size` is not in 1…2^62 or an index lies outside the range.
    """

    def __init__(self, size: int, key: bytes, epoch: int | None = None) -> None:
        if not 1 <= size <= LARGEST:
            raise ValueError(f"a permutation has 1 to 2^62 elements, not {size}")
        self.size = size
        keys = round_keys(key)
        self._keys = keys if epoch is None else epoch_keys(keys, epoch)

    def __call__(self, indices: npt.ArrayLike) -> Indices:
        return _permuted(self._checked(indices), self.size, self._keys)

    def inverse(self, indices: npt.ArrayLike) -> Indices:
        """Where each shuffled index came from."""
        return _restored(self._checked(indices), self.size, self._keys)

    def _checked(self, indices: npt.ArrayLike) -> Indices:
        given = np.ascontiguousarray(indices, dtype=np.int64)
        if given.size and (given.min() < 0 or given.max() >= self.size):
            raise ValueError(f"index outside range({self.size})")
        return given


@compiled
def mix(value: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): each bit in moves each bit out."""
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


@compiled
def epoch_keys(keys: Keys, epoch: int) -> Keys:
    """[ROUNDS] The round keys of an epoch: number `epoch` of the SplitMix64 that each key starts.

    Every round of every epoch has an unrelated key, and none is stored.
    """
    found = np.empty_like(keys)
    for number in range(len(keys)):
        found[number] = mix(keys[number] + np.uint64(epoch) * GOLDEN)
    return found


@compiled
def shuffled(sources: Indices, ordinals: Indices, sizes: Indices, keys: Keys) -> Indices:
    """[rows] The sequence that each ordinal of its source means, in the epoch that it falls into.

    `sizes` [sources] are numbers of sequences, `keys` [sources, ROUNDS] their round keys; row by
    row this is `Permutation(size, key, ordinal // size)(ordinal % size)`.
    """
    found = np.empty_like(ordinals)
    latest = np.full(len(sizes), -1, dtype=np.int64)
    current = np.empty_like(keys)
    for row in range(len(ordinals)):
        source = sources[row]
        size = sizes[source]
        epoch = ordinals[row] // size
        if epoch != latest[source]:
            latest[source] = epoch
            current[source] = epoch_keys(keys[source], epoch)
        shift, low_mask, high_mask = _halves(size)
        value = np.uint64(ordinals[row] % size)
        value = _forwards(value, shift, low_mask, high_mask, current[source])
        while value >= np.uint64(size):
            value = _forwards(value, shift, low_mask, high_mask, current[source])
        found[row] = np.int64(value)
    return found


@compiled
def _permuted(indices: Indices, size: int, keys: Keys) -> Indices:
    shift, low_mask, high_mask = _halves(size)
    found = np.empty_like(indices)
    for row in range(len(indices)):
        value = _forwards(np.uint64(indices[row]), shift, low_mask, high_mask, keys)
        while value >= np.uint64(size):
            value = _forwards(value, shift, low_mask, high_mask, keys)
        found[row] = np.int64(value)
    return found


@compiled
def _restored(indices: Indices, size: int, keys: Keys) -> Indices:
    shift, low_mask, high_mask = _halves(size)
    found = np.empty_like(indices)
    for row in range(len(indices)):
        value = _backwards(np.uint64(indices[row]), shift, low_mask, high_mask, keys)
        while value >= np.uint64(size):
            value = _backwards(value, shift, low_mask, high_mask, keys)
        found[row] = np.int64(value)
    return found


@compiled
def _halves(size: int) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Bits of the low half, and the masks of both, for the least power of two >= size (>= 4)."""
    bits = 2
    while (np.int64(1) << bits) < size:
        bits += 1
    low = bits // 2
    low_mask = (_ONE << np.uint64(low)) - _ONE
    return np.uint64(low), low_mask, (_ONE << np.uint64(bits - low)) - _ONE


@compiled
def _forwards(
    value: np.uint64, shift: np.uint64, low_mask: np.uint64, high_mask: np.uint64, keys: Keys
) -> np.uint64:
    high, low = value >> shift, value & low_mask
    for number in range(0, len(keys), 2):
        high = high ^ (mix(low ^ keys[number]) & high_mask)
        low = low ^ (mix(high ^ keys[number + 1]) & low_mask)
    return (high << shift) | low


@compiled
def _backwards(
    value: np.uint64, shift: np.uint64, low_mask: np.uint64, high_mask: np.uint64, keys: Keys
) -> np.uint64:
    high, low = value >> shift, value & low_mask
    for number in range(len(keys) - 2, -1, -2):
        low = low ^ (mix(high ^ keys[number + 1]) & low_mask)
        high = high ^ (mix(low ^ keys[number]) & high_mask)
    return (high << shift) | low
