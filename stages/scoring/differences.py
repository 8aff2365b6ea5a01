"""What separates two models on the same items: paired differences, their adjustment, their power.

Both answered the same items, so it is the difference by item that varies: its error is often far
smaller than that of two independent scores (Miller 2024, arXiv 2411.00640, section 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stages.scoring.uncertainty import NORMAL_95, ratio, sum_clusters

LEVEL = 0.05
"""Chance of a difference where there is none: of a comparison, or of any of those adjusted."""
POWER = 0.8
"""Chance to see a difference of the size that is called detectable."""
EXACT_BELOW = 25
"""Items on which exactly one model is right, below which their test is exact."""


@dataclass(frozen=True)
class PairedDifference:
    """B − A over `items` items in `units` independent units, with a 95 % interval for it alone.

    `p` is the chance of a difference at least this large where there is none; None, as the ends
    are, where one unit says nothing.
    """

    items: int
    units: int
    a: float
    b: float
    value: float
    standard_error: float | None
    low: float | None
    high: float | None
    p: float | None

    def detectable(self, comparisons: int = 1) -> float | None:
        """The size of a difference that is seen with a chance of 80 %.

        (z of the level for so many comparisons + z of the power) standard errors; for shares
        without an item on which the models differ, as if there were one.
        """
        from statistics import NormalDist

        if self.standard_error is None:
            return None
        normal = NormalDist()
        level = normal.inv_cdf(1 - LEVEL / comparisons / 2)
        return (level + normal.inv_cdf(POWER)) * self.standard_error


def paired_difference(
    a: ArrayLike, b: ArrayLike, weights: ArrayLike, clusters: Sequence[str | None] | None = None
) -> PairedDifference:
    """Compare values of two models on items of given `weights`, of which `clusters` may depend.

    A score is Σ weight · value / Σ weight, so that of bits per byte is of the whole text. Shares of
    independent items have the interval of Agresti and Min (2005, half an item added to each cell)
    and McNemar's test; everything else the delta method and Student's t over units.
    """
    before, after = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    y = np.asarray(weights, dtype=np.float64)
    scores = float((before * y).sum() / y.sum()), float((after * y).sum() / y.sum())
    units = len(sum_clusters(y, clusters))
    is_share = set(np.unique([before, after])) <= {0.0, 1.0} and bool((y == 1).all())
    if is_share and units == len(y):
        return _difference_of_shares(before, after, scores)
    estimate = ratio((after - before) * y, y, clusters)
    error = estimate.standard_error
    if error is None:
        return PairedDifference(len(y), units, *scores, estimate.value, None, None, None, None)
    low, high, p = _student(estimate.value, error, units - 1)
    return PairedDifference(len(y), units, *scores, estimate.value, error, low, high, p)


def _student(value: float, error: float, freedom: int) -> tuple[float, float, float]:
    from scipy.special import stdtr, stdtrit

    width = float(stdtrit(freedom, 1 - LEVEL / 2)) * error
    if error == 0:
        return value, value, 1.0 if value == 0 else 0.0
    return value - width, value + width, float(2 * stdtr(freedom, -abs(value) / error))


def _difference_of_shares(
    before: NDArray[np.float64], after: NDArray[np.float64], scores: tuple[float, float]
) -> PairedDifference:
    n = len(before)
    gained, lost = int((after > before).sum()), int((after < before).sum())
    middle = (gained - lost) / (n + 2)
    spread = (gained + lost + 1) / (n + 2) - middle**2
    width = NORMAL_95 * math.sqrt(spread / (n + 2))
    value = (gained - lost) / n
    shares = max(gained + lost, 1) / n
    error = math.sqrt(max(shares - value**2, 0) / n)
    ends = max(-1.0, middle - width), min(1.0, middle + width)
    return PairedDifference(n, n, *scores, value, error, *ends, mcnemar(gained, lost))


def mcnemar(gained: int, lost: int) -> float:
    """Two-sided p of items that one model alone has right, where either is as likely.

    Exact (binomial) below `EXACT_BELOW` such items, else the test of McNemar (1947) by the normal
    distribution without a correction.
    """
    from scipy.special import bdtr, ndtr

    count = gained + lost
    if count < EXACT_BELOW:
        return min(1.0, 2 * float(bdtr(min(gained, lost), count, 0.5))) if count else 1.0
    return float(2 * ndtr(-abs(gained - lost) / math.sqrt(count)))


def adjust(values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p values: a chance of 5 % at most that any false one is below 0.05."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    adjusted, greatest = [0.0] * len(values), 0.0
    for rank, index in enumerate(order):
        greatest = max(greatest, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = greatest
    return adjusted
