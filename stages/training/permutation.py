"""A shuffle of range(n) without an index file: any element, forwards and back, in constant time.

Why not `numpy.random.permutation`: it needs n integers in memory (or in a file) before it gives the
first, for each epoch and on each rank. A Feistel network on the bits of the index is a bijection
whatever its round function is; where it leads outside range(n), it is applied again until it is
back inside ("cycle walking", Black and Rogaway 2002), which keeps it a bijection. The domain is the
next power of two, so fewer than two applications are needed on average.

Why not a linear congruential shuffle, which is as cheap: two of them differ by little more than a
shift, so sources that start together meet again and again (Marin saw it in the loss of its 32B run
and took a Feistel network instead; see its retrospective).

All of it is NumPy: a batch's draw takes one to two milliseconds, a compiled one took less, but a
training step takes fifty and more.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from artifacts_schema.identity import canonical_json

Indices = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

ROUNDS = 10
"""Alternating rounds on the two halves; four already pass for random where halves are wide (Luby
and Rackoff 1988), the others are for halves of a few bits."""

LARGEST = 2**62

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Step of a Weyl sequence on 64 bits: 2^64 over the golden ratio, odd (SplitMix64)."""

_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_1, _2, _27, _30, _31 = (np.uint64(number) for number in (1, 2, 27, 30, 31))


def key_of(*parts: str | int) -> bytes:
    """A 32-byte key that depends on every part and on their order."""
    return hashlib.blake2b(canonical_json(list(parts)), digest_size=32).digest()


def round_keys(key: bytes) -> Words:
    """[ROUNDS] A network's round keys."""
    material = hashlib.blake2b(key, digest_size=64, person=b"ingot-permute").digest()
    material += hashlib.blake2b(material, digest_size=64, person=b"ingot-permute").digest()
    return np.frombuffer(material, dtype="<u8")[:ROUNDS].astype(np.uint64)


class Permutation:
    """A pseudo-random bijection of range(size), chosen by `key`, and by `epoch` if there is one.

    Calling it maps indices to shuffled indices, `inverse` maps them back; both take and give int64
    arrays of any length. ValueError if `size` is not in 1…2^62 or an index is outside the range.
    """

    def __init__(self, size: int, key: bytes, epoch: int | None = None) -> None:
        if not 1 <= size <= LARGEST:
            raise ValueError(f"a permutation has 1 to 2^62 elements, not {size}")
        self.size = size
        keys = round_keys(key)[:, None]
        self._keys = keys if epoch is None else _epoch_keys(keys, np.array([epoch]))

    def __call__(self, indices: npt.ArrayLike) -> Indices:
        return self._walk(indices, inverse=False)

    def inverse(self, indices: npt.ArrayLike) -> Indices:
        """Where each shuffled index came from."""
        return self._walk(indices, inverse=True)

    def _walk(self, indices: npt.ArrayLike, *, inverse: bool) -> Indices:
        values = np.asarray(indices, dtype=np.int64)
        if values.size and (values.min() < 0 or values.max() >= self.size):
            raise ValueError(f"index outside range({self.size})")
        return _walk(values, np.array([self.size]), self._keys, inverse=inverse)


def mix(value: Words) -> Words:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): each bit in moves each bit out."""
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


def shuffle_ordinals(sources: Indices, ordinals: Indices, sizes: Indices, keys: Words) -> Indices:
    """[rows] The sequence that each ordinal of its source means, in the epoch that it falls into.

    `sizes` [sources] are numbers of sequences, `keys` [sources, ROUNDS] their round keys; row by
    row this is `Permutation(size, key, ordinal // size)(ordinal % size)`.
    """
    row_sizes = sizes[sources]
    epochs, within = np.divmod(ordinals, row_sizes)
    return _walk(within, row_sizes, _epoch_keys(keys[sources].T, epochs), inverse=False)


def _epoch_keys(keys: Words, epochs: Indices) -> Words:
    """[ROUNDS, rows] Round keys of epochs: number `epoch` of the SplitMix64 that each key starts.

    Every round of every epoch has an unrelated key, and none is stored.
    """
    return mix(keys + epochs.astype(np.uint64) * GOLDEN)


def _walk(values: Indices, sizes: Indices, keys: Words, *, inverse: bool) -> Indices:
    """Apply the network to each value until it is within its size again.

    `sizes` has one for each value, or one for all; so have the columns of `keys`.
    """
    distinct, place = np.unique(sizes, return_inverse=True)
    bits = np.array(
        [max(2, (size - 1).bit_length()) for size in distinct.tolist()], dtype=np.uint64
    )
    low = (bits // _2)[place]
    low_mask, high_mask = (_1 << low) - _1, (_1 << (bits[place] - low)) - _1
    rounds = range(0, ROUNDS, 2)

    def permute(value: Words) -> Words:
        upper, lower = value >> low, value & low_mask
        for number in reversed(rounds) if inverse else rounds:
            if inverse:
                lower = lower ^ (mix(upper ^ keys[number + 1]) & low_mask)
                upper = upper ^ (mix(lower ^ keys[number]) & high_mask)
            else:
                upper = upper ^ (mix(lower ^ keys[number]) & high_mask)
                lower = lower ^ (mix(upper ^ keys[number + 1]) & low_mask)
        return (upper << low) | lower

    limits, permuted = sizes.astype(np.uint64), permute(values.astype(np.uint64))
    while (outside := permuted >= limits).any():
        permuted = np.where(outside, permute(permuted), permuted)
    return permuted.astype(np.int64)
