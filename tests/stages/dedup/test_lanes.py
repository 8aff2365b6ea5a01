"""Single machine operations, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from stages.dedup.folding import (
    load_eight,
    lowest_bit,
    multiply_halves,
    store_eight,
    unspaced_bits,
    word_bits,
)

# Not kept for the next process: numba would not see that an operation changed.

EVERY_BYTE = np.arange(256, dtype=np.uint8)


@njit
def _load(data: NDArray[np.uint8], place: int) -> np.uint64:
    return load_eight(data, place)


@njit
def _store(data: NDArray[np.uint8], place: int, value: np.uint64) -> None:
    store_eight(data, place, value)


@njit
def _word_bits(data: NDArray[np.uint8], place: int) -> np.uint64:
    return word_bits(data, place)


@njit
def _unspaced_bits(data: NDArray[np.uint8], place: int) -> np.uint64:
    return unspaced_bits(data, place)


@njit
def _lowest_bit(value: np.uint64) -> int:
    return lowest_bit(value)


@njit
def _multiply_halves(left: np.uint64, right: np.uint64) -> np.uint64:
    return multiply_halves(left, right)


@pytest.mark.parametrize("place", range(9))
def test_eight_bytes_are_read_and_written_at_any_place_first_byte_lowest(place: int) -> None:
    data = EVERY_BYTE[100:140].copy()
    assert _load(data, place) == int.from_bytes(data[place : place + 8].tobytes(), "little")
    _store(data, place, np.uint64(0xF1E2D3C4B5A69788))
    expected = EVERY_BYTE[100:140].copy()
    expected[place : place + 8] = [0x88, 0x97, 0xA6, 0xB5, 0xC4, 0xD3, 0xE2, 0xF1]
    assert data.tolist() == expected.tolist()


def test_a_slice_is_read_from_its_own_start() -> None:
    assert _load(EVERY_BYTE[3:], 1) == 0x0B0A090807060504


@pytest.mark.parametrize("base", [0, 64, 128, 192])
def test_every_byte_is_told_apart(base: int) -> None:
    words, unspaced = int(_word_bits(EVERY_BYTE, base)), int(_unspaced_bits(EVERY_BYTE, base))
    for k in range(64):
        byte = base + k
        assert words >> k & 1 == (byte >= 128 or chr(byte).isalnum())
        assert unspaced >> k & 1 == (byte != 32)


def test_the_lowest_bit_is_found_and_its_absence_is_64() -> None:
    assert [_lowest_bit(np.uint64(7 << k & (1 << 64) - 1)) for k in range(64)] == list(range(64))
    assert _lowest_bit(np.uint64(0)) == 64


def test_the_halves_of_a_product_of_128_bits_are_joined() -> None:
    rng = np.random.default_rng(5)
    for left, right in rng.integers(0, 1 << 64, (100, 2), dtype=np.uint64):
        product = int(left) * int(right)
        assert int(_multiply_halves(left, right)) == product >> 64 ^ product % (1 << 64)
