"""Scores with their standard errors and 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

NORMAL_95 = 1.959963984540054
"""Standard normal quantile of 97.5 %: all intervals are of 95 %."""


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


def ratio(
    numerators: ArrayLike, denominators: ArrayLike, clusters: Sequence[str | None] | None = None
) -> Estimate:
    """Sum over sum, with documents as the units that were drawn: the delta method for a ratio.

    Cochran, Sampling Techniques (1977), eq. 2.39 and 2.46 without finite population correction:
    sqrt(n / (n - 1) · Σ (x - R·y)²) / Σ y. It needs no resampling, so it needs no seed. Items of
    one of the `clusters` are one unit, those of None a unit each; for means that is the
    cluster-robust error (Miller 2024, arXiv 2411.00640, section 2.2) times sqrt(n / (n - 1)).
    """
    x = sum_clusters(numerators, clusters)
    y = sum_clusters(denominators, clusters)
    value = float(x.sum() / y.sum())
    if len(x) < 2:
        return Estimate(value, None)
    spread = np.sqrt(len(x) / (len(x) - 1) * np.square(x - value * y).sum())
    return Estimate(value, float(spread / y.sum()))


def sum_clusters(values: ArrayLike, clusters: Sequence[str | None] | None) -> NDArray[np.float64]:
    """Values added up by cluster, in the order of first appearance; unchanged without clusters."""
    observed = np.asarray(values, dtype=np.float64)
    if clusters is None or all(one is None for one in clusters):
        return observed
    units: dict[object, int] = {}
    place = [
        units.setdefault(number if one is None else one, len(units))
        for number, one in enumerate(clusters)
    ]
    return np.bincount(place, weights=observed).astype(np.float64)


def share_interval(
    outcomes: ArrayLike, clusters: Sequence[str | None] | None = None
) -> tuple[float, float]:
    """The 95 % interval of a share of 0 and 1: Wilson's, of clustered items that of their clusters.

    With clusters it is what Agresti and Coull (1998) do for items: two clusters of successes and
    two of failures are added, of mean size, and 1.96 cluster-robust errors taken. (Wilson's
    interval of the effective number of items covers 85 % at 30 clusters of eight and a share of
    0.1: where few succeeded the error itself is too small. This one covers 95 to 98 %.)
    """
    observed = np.asarray(outcomes, dtype=np.float64)
    successes = sum_clusters(observed, clusters)
    sizes = sum_clusters(np.ones(len(observed)), clusters)
    if len(sizes) == len(observed):
        return wilson(float(observed.sum()), len(observed))
    more = sizes.mean() * np.array([1.0, 1.0, 0.0, 0.0])
    estimate = ratio([*successes, *more], [*sizes, *np.full(4, sizes.mean())])
    assert estimate.standard_error is not None, "there are four units at least"
    width = NORMAL_95 * estimate.standard_error
    low, high = max(0.0, estimate.value - width), min(1.0, estimate.value + width)
    share = float(observed.mean())  # All or none: the value is an end, as Wilson's is.
    return min(low, share), max(high, share)


def wilson(successes: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share, `successes` of `count` (at least one) (Wilson 1927).

    (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n). Unlike p ± 1.96 standard errors it is not
    of width 0 where all or none succeeded, and it lies in [0, 1].
    """
    p, square = successes / count, NORMAL_95**2 / count
    middle = p + square / 2
    width = NORMAL_95 * math.sqrt(p * (1 - p) / count + square / (4 * count))
    low, high = (middle - width) / (1 + square), (middle + width) / (1 + square)
    # At 0 and 1 rounding would leave an error of 1e-17.
    return (0.0 if successes == 0 else low), (1.0 if successes == count else high)


def normal_interval(estimate: Estimate, least: float = 0.0) -> tuple[float, float] | None:
    """Value ± 1.96 standard errors, cut at `least`; None without a finite standard error."""
    error = estimate.standard_error
    if error is None or not math.isfinite(error):
        return None
    width = NORMAL_95 * error
    return max(least, estimate.value - width), estimate.value + width
