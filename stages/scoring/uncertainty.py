"""Scores with their standard errors and 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

NORMAL_95 = 1.959963984540054
"""Standard normal quantile of 97.5 %: all intervals are of 95 %."""


LEAST_UNITS = 5
"""Independent units below which no coverage was measured (tests/benchmarks/coverage.py)."""


@dataclass(frozen=True)
class Estimate:
    """A value, its standard error and that error's degrees of freedom.

    None where a single observation cannot give an error.
    """

    value: float
    standard_error: float | None
    freedom: float | None = None


def mean(values: ArrayLike) -> Estimate:
    """Mean, and sample standard deviation over the square root of n, as lm-eval gives it."""
    observed = np.asarray(values, dtype=np.float64)
    return ratio(observed, np.ones(len(observed)))


def ratio(
    numerators: ArrayLike, denominators: ArrayLike, clusters: Sequence[str | None] | None = None
) -> Estimate:
    """Sum over sum, with documents as the units that were drawn: the jackknife for a ratio.

    Without unit i the ratio R changes by (x_i - R·y_i) / (Σ y - y_i); the error is
    sqrt((n - 1) / n · Σ of those squared) (Tukey 1958; of units of one size the delta method of
    Cochran (1977), eq. 2.46, and of means the standard error of lm-eval). It needs no resampling,
    so it needs no seed. Items of one of the `clusters` are one unit, those of None a unit each;
    for means that is the cluster-robust error (Miller 2024, arXiv 2411.00640, section 2.2).

    Degrees of freedom are those of Kish's effective number of units, (Σ y)² / Σ y² - 1, at least 1.
    (Of 30 documents whose lengths are log-normal with σ = 1, the delta method with 1.96 errors
    covers 88 %, this 94 %: tests/benchmarks/coverage.py.)
    """
    x = sum_clusters(numerators, clusters)
    y = sum_clusters(denominators, clusters)
    total = y.sum()
    value = float(x.sum() / total)
    rest = total - y
    if len(x) < 2 or not (rest > 0).all():
        return Estimate(value, None)
    changes = (x - value * y) / rest
    error = math.sqrt((len(x) - 1) / len(x)) * float(np.sqrt(np.square(changes).sum()))
    return Estimate(value, error, max(1.0, float(total**2 / np.square(y).sum()) - 1))


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


def student_interval(estimate: Estimate, least: float = -math.inf) -> tuple[float, float] | None:
    """Value ± the standard errors of Student's t, cut at `least`; None without a finite error."""
    from scipy.special import stdtrit

    error = estimate.standard_error
    if error is None or not math.isfinite(error):
        return None
    freedom = estimate.freedom if estimate.freedom is not None else math.inf
    width = float(stdtrit(freedom, 0.975)) * error if math.isfinite(freedom) else NORMAL_95 * error
    return max(least, estimate.value - width), estimate.value + width


def score_interval(
    numerators: ArrayLike, denominators: ArrayLike, clusters: Sequence[str | None] | None = None
) -> tuple[Estimate, tuple[float, float] | None]:
    """A score and its 95 % interval: that of a share for zeros and ones, else Student's t.

    It ends at 0 unless some numerator is below, as differences are.
    """
    x, y = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    estimate = ratio(x, y, clusters)
    if bool(np.isin(x, (0.0, 1.0)).all()) and bool((y == 1).all()):
        return estimate, share_interval(x, clusters)
    least = 0.0 if bool((x >= 0).all()) else -math.inf
    return estimate, student_interval(estimate, least)


def show_estimate(value: float, ends: tuple[float, float] | None, spec: str = ".3f") -> str:
    """`0.250 [0.046, 0.699]`; the value alone without an interval."""
    if ends is None:
        return format(value, spec)
    return f"{value:{spec}} [{ends[0]:{spec}}, {ends[1]:{spec}}]"


def doubt_of_interval(outcomes: ArrayLike, clusters: Sequence[str | None] | None) -> str | None:
    """Why an interval may hold the truth less often than in 90 of 100 cases; None where it does.

    Wilson's covers 84 % where .2 successes are expected: it is then wrong whenever there is one,
    since its lower end is .18 / n for one of n. Of failures the same.
    """
    observed = np.asarray(outcomes, dtype=np.float64)
    units = len(sum_clusters(observed, clusters))
    if units < LEAST_UNITS:
        return "one unit" if units == 1 else f"{units} units"
    is_share = bool(np.isin(observed, (0.0, 1.0)).all())
    if is_share and len(observed) in (observed.sum() + 1, (1 - observed).sum() + 1):
        return f"one of {len(observed):,}"
    return None
