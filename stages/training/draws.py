"""Random numbers by key: what is drawn for a token depends on where it stands, not on what was
drawn before.

So a resumed run, any number of ranks and any size of micro-batch draw the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled
from stages.training.permutation import GOLDEN, key_of, mix

Uniform = NDArray[np.float64]
"""Numbers in [0, 1)."""

_ROW_STEP = 0.6180339887498949
"""The golden ratio's fractional part, whose multiples modulo 1 are spread the most evenly."""


def token_draws(shape: tuple[int, int], seed: int, training_step: int, first_row: int) -> Uniform:
    """[B, L] A number for each token; `first_row` is the first row's number in the step."""
    drawn = np.empty(shape, dtype=np.float64)
    _fill(drawn, np.uint64(_key("tokens", seed, training_step)), first_row)
    return drawn


def row_draws(rows: int, seed: int, training_step: int, first_row: int) -> Uniform:
    """[B] A number for each row, each uniform, and together spread evenly.

    Row r of a step has `(u + 0.618… r) mod 1`, where u is drawn for the step: of any consecutive
    rows, the part that falls below a share differs from it by O(log rows) rows, not O(√rows)
    (Kronecker sequence; Kuipers and Niederreiter 1974, chapter 2.3).
    """
    start = (_key("rows", seed, training_step) >> 11) * 2.0**-53
    drawn: Uniform = np.mod(start + _ROW_STEP * np.arange(first_row, first_row + rows), 1.0)
    return drawn


def _key(name: str, seed: int, training_step: int) -> int:
    return int.from_bytes(key_of("draw", name, seed, training_step)[:8], "little")


@compiled
def _fill(drawn: Uniform, key: np.uint64, first_row: int) -> None:
    """A SplitMix64 a row (Steele, Lea and Flood 2014), its 53 highest bits as a double."""
    rows, length = drawn.shape
    for row in range(rows):
        state = mix(key + np.uint64(first_row + row + 1) * GOLDEN)
        for position in range(length):
            bits = mix(state + np.uint64(position + 1) * GOLDEN) >> np.uint64(11)
            drawn[row, position] = np.float64(bits) * 2.0**-53
