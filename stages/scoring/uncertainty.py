"""Scores with their standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Estimate:
    """A value and its standard error; None where a single observation cannot give one."""

    value: float
    standard_error: float | None


def mean(values: ArrayLike) -> Estimate:
    """Mean, and sample standard deviation over the square root of n, as lm-eval gives it."""
    observed = np.asarray(values, dtype=np.float64)
    error = observed.std(ddof=1) / np.sqrt(len(observed)) if len(observed) > 1 else None
    return Estimate(float(observed.mean()), None if error is None else float(error))


def ratio(numerators: ArrayLike, denominators: ArrayLike) -> Estimate:
    """Sum over sum, with documents as the units that were drawn: the delta method for a ratio.

    Cochran, Sampling Techniques (1977), eq. 2.39 and 2.46 without finite population correction:
    sqrt(n / (n - 1) · Σ (x - R·y)²) / Σ y. It needs no resampling, so it needs no seed.
    """
    x = np.asarray(numerators, dtype=np.float64)
    y = np.asarray(denominators, dtype=np.float64)
    value = float(x.sum() / y.sum())
    if len(x) < 2:
        return Estimate(value, None)
    spread = np.sqrt(len(x) / (len(x) - 1) * np.square(x - value * y).sum())
    return Estimate(value, float(spread / y.sum()))
