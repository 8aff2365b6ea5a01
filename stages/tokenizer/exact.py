"""Functions of positive numbers from +, -, * and / alone: equal bits on every machine.

The mathematical libraries of two systems, or one on two processors, differ in the last bit of exp
and log, and a vocabulary that is pruned by rank would not be the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LN2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
_FROM = 12.0


def log(x: Floats) -> Floats:
    """Natural logarithm, to about 1e-15: 2 artanh((m - 1) / (m + 1)) + e ln 2 of x = m 2**e."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < _ROOT_HALF
    mantissa, exponent = np.where(low, 2 * mantissa, mantissa), exponent - low
    t = (mantissa - 1) / (mantissa + 1)
    square, series = t * t, np.zeros_like(t)
    for power in range(25, 0, -2):
        series = series * square + 1 / power
    return np.asarray(exponent * _LN2 + 2 * t * series, dtype=np.float64)


def exp_digamma(x: Floats) -> Floats:
    """exp(psi(x)) for x >= 0.4, to about 1e-13.

    psi(x) = psi(x + 1) - 1 / x until x is large; there exp(psi(z + 1/2)) = z + 1/(24 z) - 37/(5760
    z^3) + 10313/(2903040 z^5) - 5509121/(1393459200 z^7) + ...
    """
    large, lowered = np.array(x, dtype=np.float64), np.zeros(len(x))
    for _ in range(12):
        small = large < _FROM
        lowered += np.where(small, 1 / large, 0.0)
        large += small
    z = large - 0.5
    inverse = 1 / (z * z)
    last = 10313 / 2903040 - inverse * (5509121 / 1393459200)
    series = 1 / 24 - inverse * (37 / 5760 - inverse * last)
    return np.asarray((z + series / z) * _exp_minus(lowered), dtype=np.float64)


def total(values: Iterable[float]) -> float:
    """The sum, correctly rounded, in whatever order."""
    return math.fsum(values)


def _exp_minus(x: Floats) -> Floats:
    """exp(-x) for 0 <= x < 8: Taylor's series of the 64th root, squared six times."""
    root, series = -x / 64, np.ones_like(x)
    for factor in range(14, 0, -1):
        series = 1 + series * root / factor
    for _ in range(6):
        series = series * series
    return series
