"""What separates two models on the same items: paired differences, their adjustment, their power.

Both answered the same items, so it is the difference by item that varies: its error is often far
smaller than that of two independent scores (Miller 2024, arXiv 2411.00640, section 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stages.scoring.uncertainty import (
    NORMAL_95,
    ratio,
    score_interval,
    student_interval,
    sum_clusters,
)

LEVEL = 0.05
"""Chance of a difference where there is none: of a comparison, or of any of those adjusted."""
POWER = 0.8
"""Chance to see a difference of the size that is called detectable."""
EXACT_BELOW = 25
"""Items on which exactly one model is right, below which their test is exact."""

Ends = tuple[float, float] | None
"""Of a 95 % interval; None where nothing gives one."""


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
    freedom: float = math.inf
    """Degrees of freedom of the error."""
    discordant: int | None = None
    """Of shares of independent items: those that exactly one of the models has right."""
    a_ends: Ends = None
    """Of A alone, over the same items."""
    b_ends: Ends = None

    @property
    def ends(self) -> Ends:
        """Of the difference."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def detectable(self, comparisons: int = 1) -> float | None:
        """The size of a difference that is seen with a chance of 80 % among so many comparisons.

        (t of the level + t of the power) standard errors; of shares of independent items by the
        power of McNemar's test where as many are discordant as were.
        """
        level = LEVEL / comparisons
        if self.discordant is not None:
            return _detectable_share(self.items, self.discordant / self.items, level)
        if self.standard_error is None:
            return None
        wanted = quantile(1 - level / 2, self.freedom) + quantile(POWER, self.freedom)
        return wanted * self.standard_error


def paired_difference(
    a: ArrayLike, b: ArrayLike, weights: ArrayLike, clusters: Sequence[str | None] | None = None
) -> PairedDifference:
    """Compare values of two models on items of given `weights`, of which `clusters` may depend.

    A score is Σ weight · value / Σ weight, so that of bits per byte is of the whole text. Shares of
    independent items have the score interval of Tango (1998) and McNemar's test; everything else
    the jackknife and Student's t over units. Of clustered shares the interval (not the test) has
    two clusters more, one item gained and one lost, so that equal models have a width.
    """
    before, after = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    y = np.asarray(weights, dtype=np.float64)
    scores = float((before * y).sum() / y.sum()), float((after * y).sum() / y.sum())
    alone = [score_interval(values * y, y, clusters)[1] for values in (before, after)]
    difference = _difference(before, after, y, scores, clusters)
    return replace(difference, a_ends=alone[0], b_ends=alone[1])


def _difference(
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    y: NDArray[np.float64],
    scores: tuple[float, float],
    clusters: Sequence[str | None] | None,
) -> PairedDifference:
    sizes = sum_clusters(y, clusters)
    is_share = set(np.unique([before, after])) <= {0.0, 1.0} and bool((y == 1).all())
    if is_share and len(sizes) == len(y):
        return _difference_of_shares(before, after, scores)
    differences = sum_clusters((after - before) * y, clusters)
    estimate = ratio(differences, sizes)
    value, error = estimate.value, estimate.standard_error
    if error is None or estimate.freedom is None:
        return PairedDifference(len(y), len(sizes), *scores, value, None, None, None, None)
    ends = student_interval(estimate)
    if is_share:
        more = ratio([*differences, 1.0, -1.0], [*sizes, *np.full(2, sizes.mean())])
        ends = student_interval(more)
    low, high = ends or (None, None)
    p = _two_sided(value, error, estimate.freedom)
    return PairedDifference(
        len(y), len(sizes), *scores, value, error, low, high, p, estimate.freedom
    )


def quantile(probability: float, freedom: float) -> float:
    """Of Student's t; of the normal distribution for infinite degrees of freedom."""
    from scipy.special import ndtri, stdtrit

    return float(ndtri(probability) if math.isinf(freedom) else stdtrit(freedom, probability))


def _two_sided(value: float, error: float, freedom: float) -> float:
    from scipy.special import stdtr

    if error == 0:
        return 1.0 if value == 0 else 0.0
    return float(2 * stdtr(freedom, -abs(value) / error))


def _difference_of_shares(
    before: NDArray[np.float64], after: NDArray[np.float64], scores: tuple[float, float]
) -> PairedDifference:
    n = len(before)
    gained, lost = int((after > before).sum()), int((after < before).sum())
    value = (gained - lost) / n
    shares = max(gained + lost, 1) / n
    error = math.sqrt(max(shares - value**2, 0) / n)
    low, high = tango(gained, lost, n)
    p = mcnemar(gained, lost)
    return PairedDifference(n, n, *scores, value, error, low, high, p, discordant=gained + lost)


def tango(gained: int, lost: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a difference of paired shares (Tango 1998, Stat. Med. 17, eq. 2 to 5).

    Those differences δ that a score test does not reject: |gained - lost - nδ| is at most 1.96
    times sqrt(n (2q + δ (1 - δ))), where q is the probability of a loss that is most likely under
    δ. At δ = 0 it is McNemar's test.
    """

    def is_inside(delta: float) -> bool:
        middle = (2 * n - gained + lost) * delta - gained - lost
        root = math.sqrt(max(0.0, middle**2 + 8 * n * lost * delta * (1 - delta)))
        variance = n * ((root - middle) / (2 * n) + delta * (1 - delta))
        return (gained - lost - n * delta) ** 2 <= NORMAL_95**2 * max(0.0, variance)

    value = (gained - lost) / n
    return _boundary(is_inside, value, -1.0), _boundary(is_inside, value, 1.0)


def _boundary(is_inside: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where `is_inside` ends between two values, by bisection; `outside` itself if it does not."""
    if is_inside(outside):
        return outside
    for _ in range(50):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return inside


@dataclass(frozen=True)
class UnpairedScore:
    """A score of a sample of its own; no error and no interval where none is known."""

    value: float
    standard_error: float | None
    count: int
    ends: Ends = None


def unpaired_difference(a: UnpairedScore, b: UnpairedScore) -> PairedDifference:
    """B − A of two independent scores: Newcombe's interval of theirs, and the p value by it.

    A score without an interval has that of 1.96 standard errors. Where one of the two has no
    standard error there is a difference and nothing else.
    """
    value, count = b.value - a.value, min(a.count, b.count)
    ends = a.ends or _normal_ends(a), b.ends or _normal_ends(b)
    difference = PairedDifference(
        count, count, a.value, b.value, value, None, None, None, None,
        a_ends=ends[0], b_ends=ends[1],
    )  # fmt: skip
    if ends[0] is None or ends[1] is None or a.standard_error is None or b.standard_error is None:
        return difference
    low, high = newcombe_interval((a.value, *ends[0]), (b.value, *ends[1]))
    error = math.hypot(a.standard_error, b.standard_error)
    p = _chance_by_interval(value, low, high)
    return replace(difference, standard_error=error, low=low, high=high, p=p)


def _normal_ends(one: UnpairedScore) -> Ends:
    if one.standard_error is None:
        return None
    width = NORMAL_95 * one.standard_error
    return one.value - width, one.value + width


def _chance_by_interval(value: float, low: float, high: float) -> float:
    """The two-sided p value of a difference by the end of its interval that is nearer to zero.

    Altman and Bland (2011, BMJ 343:d2304): that end lies 1.96 standard errors from the value. So
    p is below 0.05 exactly where the interval leaves out zero.
    """
    if value == 0:
        return 1.0
    width = value - low if value > 0 else high - value
    return math.erfc(NORMAL_95 * abs(value) / width / math.sqrt(2)) if width > 0 else 0.0


def newcombe_interval(
    a: tuple[float, float, float], b: tuple[float, float, float]
) -> tuple[float, float]:
    """The 95 % interval of b − a, of two independent estimates, each as (value, low, high).

    Newcombe (1998), method 10, which combines the distances of each estimate from the ends of its
    own interval; for intervals other than Wilson's: Zou and Donner (2008).
    """
    value = b[0] - a[0]
    return (
        value - math.hypot(b[0] - b[1], a[2] - a[0]),
        value + math.hypot(b[2] - b[0], a[0] - a[1]),
    )


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


def _detectable_share(n: int, discordant: float, level: float) -> float:
    """The difference of two shares of `n` items that McNemar's test finds with `POWER`.

    `discordant` is the share of items that one model alone has right; a difference that is larger
    than that makes it as large. 1 if even that would not be found.
    """

    def is_missed(size: float) -> bool:
        return _power(n, max(discordant, size), size, level) < POWER

    return _boundary(is_missed, 0.0, 1.0)


def _power(n: int, discordant: float, size: float, level: float) -> float:
    """The chance that McNemar's test is below `level`: a sum over the number of discordant items.

    Of k of them the rarer outcome may be at most the critical number: exact (binomial) below
    `EXACT_BELOW`, else by the normal distribution.
    """
    from scipy.special import bdtr, gammaln, ndtri, xlog1py, xlogy

    middle, spread = n * discordant, 6 * math.sqrt(n * discordant) + 6
    k = np.arange(max(1, int(middle - spread)), min(n, int(middle + spread)) + 1)
    chance = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    chance += xlogy(k, discordant) + xlog1py(n - k, -discordant)
    critical = np.ceil((k + ndtri(level / 2) * np.sqrt(k)) / 2) - 1
    for place in np.flatnonzero(k < EXACT_BELOW):
        below = 2 * bdtr(np.arange(k[place] + 1), k[place], 0.5) < level
        critical[place] = below.sum() - 1
    lost = (1 - size / discordant) / 2
    seen = [bdtr(np.maximum(critical, 0), k, share) for share in (lost, 1 - lost)]
    return float(np.sum(np.exp(chance) * np.where(critical >= 0, np.add(*seen), 0.0)))


def adjust(values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p values: a chance of 5 % at most that any false one is below 0.05."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    adjusted, greatest = [0.0] * len(values), 0.0
    for rank, index in enumerate(order):
        greatest = max(greatest, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = greatest
    return adjusted
