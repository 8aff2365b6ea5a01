"""How often the intervals of `evaluate` and `ingot compare` hold the truth, by simulation.

`python -m tests.benchmarks.coverage` prints a table for docs/how-to/compare-models.md: 2,000 draws
a cell, so a printed .950 has a standard error of .005.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stages.scoring.differences import paired_difference
from stages.scoring.uncertainty import share_interval, wilson

RUNS, SEED = 2000, 2026
SHARES = (0.02, 0.1, 0.25, 0.5, 0.9, 0.98)
SIZE = 8
"""Items of a cluster; those of every second cluster are alike."""

Draws = NDArray[np.float64]
Interval = tuple[float, float]


def covered(truth: float, draw: Callable[[], Interval]) -> float:
    """The share of intervals that hold the truth."""
    ends = [draw() for _ in range(RUNS)]
    return sum(low <= truth <= high for low, high in ends) / RUNS


def clustered(rng: np.random.Generator, p: float, units: int) -> Draws:
    """Outcomes of `units` clusters, in the order of the clusters."""
    own = rng.random((units, SIZE)) < p
    alike = rng.random(units) < 0.5
    own[alike] = (rng.random(int(alike.sum())) < p)[:, None]
    return own.astype(np.float64).ravel()


def pair(rng: np.random.Generator, p: float, n: int) -> Interval:
    """The interval of a difference of two models that agree on seven items of ten by design."""
    a = (rng.random(n) < p).astype(np.float64)
    b = np.where(rng.random(n) < 0.7, a, rng.random(n) < p).astype(np.float64)
    one = paired_difference(a, b, np.ones(n))
    assert one.low is not None, "several items"
    assert one.high is not None, "several items"
    return one.low, one.high


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(SEED)

    def share(n: int, p: float) -> float:
        return covered(p, lambda: wilson(rng.binomial(n, p), n))

    def clusters(units: int, p: float) -> float:
        names = [str(i) for i in range(units) for _ in range(SIZE)]
        return covered(p, lambda: share_interval(clustered(rng, p, units), names))

    def difference(n: int, p: float) -> float:
        return covered(0, lambda: pair(rng, p, n))

    rows = [
        *((f"share, {n:,} items", partial(share, n)) for n in (10, 30, 100, 1000)),
        *((f"share, {n} clusters of {SIZE}", partial(clusters, n)) for n in (10, 30, 100)),
        *((f"paired difference, {n:,} items", partial(difference, n)) for n in (10, 30, 100, 1000)),
    ]
    print("| interval | " + " | ".join(f"p = {p:g}" for p in SHARES) + " |")
    print("| --- |" + " --- |" * len(SHARES))
    for name, measure in rows:
        cells = " | ".join(f"{measure(p):.3f}" for p in SHARES)
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
