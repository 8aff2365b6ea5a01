"""A shuffle of range(n) without an index file: any element, forwards and back, in constant time.

Why not `numpy.random.permutation`: it needs n integers in memory (or in a file) before it gives the
first, for each epoch and on each rank. A Feistel network on the bits of the index is a bijection
whatever its round function is; where it leads outside range(n), it is applied again until it is
back inside ("cycle walking", Black and Rogaway 2002), which keeps it a bijection. The domain is the
next power of two, so fewer than two applications are needed on average.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from artifacts_schema.identity import canonical_json

Indices = npt.NDArray[np.int64]

ROUNDS = 10
"""Alternating rounds on the two halves; four already pass for random where halves are wide (Luby
and Rackoff 1988), the others are for halves of a few bits."""

LARGEST = 2**62


def key_of(*parts: str | int) -> bytes:
    """A 32-byte key that depends on every part and on their order."""
    return hashlib.blake2b(canonical_json(list(parts)), digest_size=32).digest()


class Permutation:
    """A pseudo-random bijection of range(size), chosen by `key`.

    Calling it maps indices to shuffled indices, `inverse` maps them back; both take and give int64
    arrays of any length. ValueError if `size` is not in 1…2^62 or an index lies outside the range.
    """

    def __init__(self, size: int, key: bytes) -> None:
        if not 1 <= size <= LARGEST:
            raise ValueError(f"a permutation has 1 to 2^62 elements, not {size}")
        self.size = size
        bits = max(2, (size - 1).bit_length())
        low = bits // 2
        self._shift = np.uint64(low)
        self._low_mask = np.uint64((1 << low) - 1)
        self._high_mask = np.uint64((1 << (bits - low)) - 1)
        material = hashlib.blake2b(key, digest_size=64, person=b"ingot-permute").digest()
        material += hashlib.blake2b(material, digest_size=64, person=b"ingot-permute").digest()
        self._round_keys = np.frombuffer(material, dtype="<u8")[:ROUNDS].astype(np.uint64)

    def __call__(self, indices: npt.ArrayLike) -> Indices:
        return self._walk(indices, range(ROUNDS))

    def inverse(self, indices: npt.ArrayLike) -> Indices:
        """Where each shuffled index came from."""
        return self._walk(indices, range(ROUNDS - 1, -1, -1))

    def _walk(self, indices: npt.ArrayLike, rounds: range) -> Indices:
        given = np.asarray(indices, dtype=np.int64)
        if given.size and (given.min() < 0 or given.max() >= self.size):
            raise ValueError(f"index outside range({self.size})")
        values = self._network(given.astype(np.uint64), rounds)
        while True:
            outside = values >= np.uint64(self.size)
            if not outside.any():
                return values.astype(np.int64)
            values[outside] = self._network(values[outside], rounds)

    def _network(self, values: npt.NDArray[np.uint64], rounds: range) -> npt.NDArray[np.uint64]:
        high, low = values >> self._shift, values & self._low_mask
        for index in rounds:
            key = self._round_keys[index]
            if index % 2:
                low = low ^ (_mix(high ^ key) & self._low_mask)
            else:
                high = high ^ (_mix(low ^ key) & self._high_mask)
        return (high << self._shift) | low


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): each bit in moves each bit out."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
