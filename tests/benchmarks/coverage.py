"""How often the intervals of `evaluate` and `ingot compare` hold the truth, by simulation.

`python -m tests.benchmarks.coverage` prints the tables of docs/how-to/compare-models.md: 2,000
draws a cell, so a printed .950 has a standard error of .005. The tests of the intervals draw from
the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stages.scoring.differences import PairedDifference, adjust, paired_difference
from stages.scoring.uncertainty import ratio, share_interval, student_interval, wilson

RUNS, SEED = 2000, 2026
SHARES = (0.005, 0.02, 0.1, 0.25, 0.5, 0.9, 0.98)
SPREADS = (0.0, 0.5, 1.0, 1.5)
"""Of the logarithm of a document's length."""
AGREE = 0.7
"""Share of items on which two models agree by design."""
ALIKE = 0.5
"""Share of the clusters whose items are all alike."""

Draws = NDArray[np.float64]
Interval = tuple[float, float]


def covered(truth: float, draw: Callable[[], Interval], runs: int = RUNS) -> float:
    """The share of intervals that hold the truth."""
    ends = [draw() for _ in range(runs)]
    return sum(low <= truth <= high for low, high in ends) / runs


# Draws --------------------------------------------------------------------------------------------


def cluster_names(sizes: Sequence[int]) -> list[str]:
    """The cluster of each item, for clusters of these sizes."""
    return [str(place) for place, size in enumerate(sizes) for _ in range(size)]


def equal_sizes(units: int, size: int = 8) -> list[int]:
    """Clusters of one size."""
    return [size] * units


def unequal_sizes(units: int) -> list[int]:
    """Clusters of 1 to 15 items, 8 on average."""
    return [1 + place * 14 // (units - 1) for place in range(units)]


def clustered(rng: np.random.Generator, p: float, sizes: Sequence[int]) -> Draws:
    """Outcomes of clusters, in their order; of about every second one all items are alike."""
    units = len(sizes)
    alike, together = (np.repeat(rng.random(units) < share, sizes) for share in (ALIKE, p))
    return np.where(alike, together, rng.random(len(alike)) < p).astype(np.float64)


def two_models(rng: np.random.Generator, p: float, n: int, repaired: float = 0.0) -> Draws:
    """[2, n] Outcomes of two models; the second has `repaired` of what it had wrong right."""
    a = rng.random(n) < p
    b = np.where(rng.random(n) < AGREE, a, rng.random(n) < p) | (rng.random(n) < repaired)
    return np.array([a, b], dtype=np.float64)


def two_clustered(rng: np.random.Generator, p: float, sizes: Sequence[int]) -> Draws:
    """[2, items] Outcomes of two models on clustered items; they agree item by item."""
    a, other = clustered(rng, p, sizes), clustered(rng, p, sizes)
    return np.array([a, np.where(rng.random(len(a)) < AGREE, a, other)])


def documents(rng: np.random.Generator, n: int, spread: float, better: float = 0.0) -> Draws:
    """[3, n] Bytes of documents and the bits that two models need, 1.5 a byte on average.

    Lengths are log-normal; so are bits per byte, with a spread of .3 of which the models share
    half. The second model needs `better` less.
    """
    size = np.exp(rng.normal(6, spread, n))
    shared, own, other = rng.normal(0, 0.3 / np.sqrt(2), (3, n))
    before, after = (np.exp(shared + noise - 0.3**2 / 2) for noise in (own, other))
    return np.array([size, 1.5 * before * size, (1.5 - better) * after * size])


def ends_of(one: PairedDifference) -> Interval:
    """The interval of a difference."""
    assert one.low is not None, "several units"
    assert one.high is not None, "several units"
    return one.low, one.high


# Intervals ----------------------------------------------------------------------------------------


def share(rng: np.random.Generator, n: int, p: float) -> Interval:
    """Of a share of independent items."""
    return wilson(rng.binomial(n, p), n)


def share_of_clusters(rng: np.random.Generator, sizes: Sequence[int], p: float) -> Interval:
    """Of a share of clustered items."""
    return share_interval(clustered(rng, p, sizes), cluster_names(sizes))


def difference(rng: np.random.Generator, n: int, p: float, repaired: float = 0.0) -> Interval:
    """Of two models on independent items, (1 - p) · `repaired` apart."""
    a, b = two_models(rng, p, n, repaired)
    return ends_of(paired_difference(a, b, np.ones(n)))


def difference_of_clusters(rng: np.random.Generator, sizes: Sequence[int], p: float) -> Interval:
    """Of two models on clustered items."""
    a, b = two_clustered(rng, p, sizes)
    return ends_of(paired_difference(a, b, np.ones(len(a)), cluster_names(sizes)))


def bits(rng: np.random.Generator, n: int, spread: float) -> Interval:
    """Of bits per byte."""
    size, before, _ = documents(rng, n, spread)
    ends = student_interval(ratio(before, size))
    assert ends is not None, "several documents"
    return ends


def difference_of_bits(rng: np.random.Generator, n: int, spread: float) -> Interval:
    """Of two models' bits per byte."""
    size, before, after = documents(rng, n, spread)
    return ends_of(paired_difference(before / size, after / size, size))


# Power and false alarms ---------------------------------------------------------------------------

Compare = Callable[[float], PairedDifference]
"""Two models whose difference is the given one."""


def _moves(size: float) -> tuple[float, float, float]:
    """Probabilities that an item is gained, lost or neither, for a difference of `size`."""
    discordant = max(0.2, size)
    return (discordant + size) / 2, (discordant - size) / 2, 1 - discordant


def shares_apart(rng: np.random.Generator, n: int) -> Compare:
    """On `n` independent items, a fifth of which (or as many as needed) one model has alone."""

    def draw(size: float) -> PairedDifference:
        gained, lost, _ = rng.multinomial(n, _moves(size))
        a = np.concatenate([np.zeros(gained), np.ones(n - gained)])
        b = np.concatenate([np.ones(gained), np.zeros(lost), np.ones(n - gained - lost)])
        return paired_difference(a, b, np.ones(n))

    return draw


def clusters_apart(rng: np.random.Generator, units: int) -> Compare:
    """The same in clusters of eight, of which about every second is gained or lost as a whole."""
    names = cluster_names(equal_sizes(units))

    def draw(size: float) -> PairedDifference:
        whole = rng.random((units, 1)) < ALIKE
        moves = rng.choice([1, -1, 0], (units, 8), p=_moves(size))
        moves = np.where(whole, moves[:, :1], moves).ravel()
        return paired_difference(moves < 0, moves > 0, np.ones(len(moves)), names)

    return draw


def bits_apart(rng: np.random.Generator, n: int, spread: float = 0.5) -> Compare:
    """Bits per byte of `n` documents."""

    def draw(size: float) -> PairedDifference:
        sizes, before, after = documents(rng, n, spread, size)
        return paired_difference(before / sizes, after / sizes, sizes)

    return draw


def power(compare: Compare, comparisons: int = 1, runs: int = RUNS) -> float:
    """How often a difference of the size that `seen from` says is seen.

    That size is where it is the median over draws: the size itself bears on the error.
    """
    low, high = 0.0, 0.9
    for _ in range(12):
        size = (low + high) / 2
        sizes = [compare(size).detectable(comparisons) for _ in range(100)]
        is_larger = float(np.median([one for one in sizes if one is not None])) > size
        low, high = (size, high) if is_larger else (low, size)
    size = (low + high) / 2
    seen = [compare(size).p for _ in range(runs)]
    return sum(p is not None and p < 0.05 / comparisons for p in seen) / runs


def false_families(compares: Sequence[Compare], runs: int = RUNS) -> float:
    """How often any of several comparisons without a difference is named, after adjustment."""
    alarms = 0
    for _ in range(runs):
        values = [compare(0.0).p for compare in compares]
        alarms += min(adjust([p for p in values if p is not None])) < 0.05
    return alarms / runs


# Tables -------------------------------------------------------------------------------------------

Row = tuple[str, Callable[[], Interval], float]
"""What is covered, a draw of its interval, and the truth."""


def _of_shares(rng: np.random.Generator, p: float) -> Iterator[Row]:
    for n in (10, 30, 100, 1000):
        yield f"share, {n:,} items", partial(share, rng, n, p), p
    for units in (5, 10, 30, 100):
        draw = partial(share_of_clusters, rng, equal_sizes(units), p)
        yield f"share, {units} clusters of 8", draw, p
    for units in (30, 100):
        draw = partial(share_of_clusters, rng, unequal_sizes(units), p)
        yield f"share, {units} clusters of 1 to 15", draw, p
    for n in (10, 30, 100, 1000):
        yield f"paired difference, {n:,} items", partial(difference, rng, n, p), 0.0
    for n in (100, 1000):
        draw = partial(difference, rng, n, p, 0.2)
        yield f"… where a fifth was repaired, {n:,} items", draw, 0.2 * (1 - p)
    for units in (5, 10, 30, 100):
        draw = partial(difference_of_clusters, rng, equal_sizes(units), p)
        yield f"paired difference, {units} clusters of 8", draw, 0.0


def _of_bits(rng: np.random.Generator, spread: float) -> Iterator[Row]:
    for n in (5, 10, 30, 100, 1000):
        yield f"bits per byte, {n:,} documents", partial(bits, rng, n, spread), 1.5
    for n in (5, 10, 30, 100, 1000):
        draw = partial(difference_of_bits, rng, n, spread)
        yield f"their paired difference, {n:,} documents", draw, 0.0


def _print_table(
    rng: np.random.Generator,
    heading: str,
    columns: Sequence[float],
    rows: Callable[[np.random.Generator, float], Iterator[Row]],
) -> None:
    print(f"| interval | {' | '.join(f'{heading} {value:g}' for value in columns)} |")
    print("| --- |" + " --- |" * len(columns))
    for cells in zip(*(rows(rng, value) for value in columns), strict=True):
        shares = " | ".join(f"{covered(truth, draw):.3f}" for _, draw, truth in cells)
        print(f"| {cells[0][0]} | {shares} |", flush=True)


def main() -> None:
    """Print the tables."""
    rng = np.random.default_rng(SEED)
    _print_table(rng, "p =", SHARES, _of_shares)
    print()
    _print_table(rng, "spread", SPREADS, _of_bits)
    print("\n| compared | seen, of differences of the size `seen from` | in a family of ten |")
    print("| --- | --- | --- |")
    compares = {
        "100 items": shares_apart(rng, 100),
        "1,000 items": shares_apart(rng, 1000),
        "30 clusters of 8": clusters_apart(rng, 30),
        "100 clusters of 8": clusters_apart(rng, 100),
        "100 documents, spread 0.5": bits_apart(rng, 100),
        "1,000 documents, spread 0.5": bits_apart(rng, 1000),
        "1,000 documents, spread 1": bits_apart(rng, 1000, 1.0),
    }
    for name, compare in compares.items():
        print(f"| {name} | {power(compare):.3f} | {power(compare, 10):.3f} |", flush=True)
    alarms = false_families([*compares.values()])
    print(f"\nany named in a family of these without a difference: {alarms:.3f}")


if __name__ == "__main__":
    main()
