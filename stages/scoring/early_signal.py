"""Which scores say something about a model of this size, by their curves over checkpoints.

The criteria are those of FineTasks (Hugging Face 2024, "Finding signal in multilingual
pretraining"): a score that follows training, is larger than the noise between seeds, is above
chance, and puts models in one order. Functions take scores of which more is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST_MONOTONICITY = 0.5
"""Mean Spearman correlation of training step and score."""
LEAST_SIGNAL = 20.0
"""Mean over standard deviation between seeds."""
LEAST_ABOVE_CHANCE = 3.0
"""Standard deviations between seeds, or standard errors of one run."""
LEAST_CHECKPOINTS = 4
"""With fewer, a random order is monotone by chance too often: in one of six for three."""
DRAWS, SEED = 1000, 0
"""Resamplings of the items, and what they are drawn by."""

Floats = NDArray[np.float64]


def spearman(steps: ArrayLike, scores: ArrayLike) -> float | None:
    """Spearman's rank correlation; None where either does not vary."""
    from scipy.stats import rankdata

    return _correlation(rankdata(steps), rankdata(scores)[None])[0]


def _correlation(ranks: Floats, rows: Floats) -> list[float | None]:
    """Pearson's correlation of `ranks` with each of the `rows`."""
    x, y = ranks - ranks.mean(), rows - rows.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.square(x).sum() * np.square(y).sum(axis=1))
    return [float(sum_ / one) if one > 0 else None for sum_, one in zip(y @ x, scale, strict=True)]


def kendall(before: ArrayLike, after: ArrayLike) -> float | None:
    """Kendall's tau-b of the scores of models at two checkpoints; None where either is constant."""
    from scipy.stats import kendalltau

    tau = float(kendalltau(before, after).statistic)
    return tau if math.isfinite(tau) else None


def signal_to_noise(seeds: ArrayLike) -> float | None:
    """Mean over sample standard deviation (n - 1) of one score under several seeds."""
    values = np.asarray(seeds, dtype=np.float64)
    noise = values.std(ddof=1) if len(values) > 1 else 0.0
    return float(values.mean() / noise) if noise > 0 else None


def signal_interval(seeds: ArrayLike) -> tuple[float, float] | None:
    """The 95 % interval of signal over noise: that of a standard deviation, by chi-squared.

    The error of the mean is left out. Of two seeds it spans a factor of 70: two say little.
    """
    from scipy.special import chdtri

    signal, freedom = signal_to_noise(seeds), np.asarray(seeds).size - 1
    if signal is None:
        return None
    low, high = (math.sqrt(chdtri(freedom, tail) / freedom) for tail in (0.975, 0.025))
    return (min(signal * low, signal * high), max(signal * low, signal * high))


def above_chance(values: ArrayLike, chance: float, error: float | None = None) -> float | None:
    """(mean - chance) over the standard deviation between seeds; of one run over its `error`."""
    scores = np.asarray(values, dtype=np.float64)
    noise = scores.std(ddof=1) if len(scores) > 1 else error
    return float((scores.mean() - chance) / noise) if noise else None


@dataclass(frozen=True)
class ItemScores:
    """One score of one run: its items at each checkpoint."""

    steps: tuple[int, ...]
    numerators: Floats
    """[units, checkpoints]; more is better. Items of a cluster are one unit."""
    denominators: Floats
    """[units, checkpoints]."""

    @property
    def scores(self) -> Floats:
        """[checkpoints]."""
        return self.numerators.sum(axis=0) / self.denominators.sum(axis=0)


def monotonicity(runs: Sequence[ItemScores]) -> float | None:
    """The mean over runs of Spearman's correlation of step and score."""
    values = [spearman(run.steps, run.scores) for run in runs if len(run.steps) > 1]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def monotonicity_interval(runs: Sequence[ItemScores]) -> tuple[float, float] | None:
    """Where 95 % of `monotonicity` lie over items that are drawn again (a seeded bootstrap).

    All checkpoints and runs get the same draws, as all were measured on the same items. A true
    correlation of 1 lies above it: noise only ever disturbs an order.
    """
    from scipy.stats import rankdata

    runs = [run for run in runs if len(run.steps) > 1]
    units = {len(run.numerators) for run in runs}
    if len(units) != 1 or units == {1}:
        return None
    (count,) = units
    random, draws = np.random.default_rng(SEED), []
    for _ in range(0, DRAWS, 100):
        weights = random.multinomial(count, np.full(count, 1 / count), size=100)
        each = []
        for run in runs:
            totals = weights @ run.denominators
            if not (totals > 0).all():
                return None
            ranks = rankdata(weights @ run.numerators / totals, axis=1)
            each.append([r or 0.0 for r in _correlation(rankdata(run.steps), ranks)])
        draws.append(np.mean(each, axis=0))
    low, high = np.quantile(np.concatenate(draws), [0.025, 0.975])
    return float(low), float(high)


def mean_ordering(scores: Sequence[Sequence[float]]) -> float | None:
    """The mean of Kendall's tau between each checkpoint and the next; `scores` of models by each.

    None for fewer than two models or checkpoints.
    """
    values = [kendall(before, after) for before, after in pairwise(scores) if len(before) > 1]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True)
class Signal:
    """What the curves of one score say. None is not measured: one seed, one model, no chance."""

    checkpoints: int
    monotonicity: float | None
    signal: float | None
    above_chance: float | None
    ordering: float | None
    free_form: bool = False
    """Scores of written answers, which FineTasks exempts from the bound on noise."""

    @property
    def doubts(self) -> list[str]:
        """Why the score cannot be trusted at this scale, in plain words; empty if it can."""
        doubts = []
        if self.checkpoints < LEAST_CHECKPOINTS:
            doubts.append(f"fewer than {LEAST_CHECKPOINTS} checkpoints")
        if self.above_chance is not None and self.above_chance < LEAST_ABOVE_CHANCE:
            doubts.append("at chance")
        if self.monotonicity is None or self.monotonicity < LEAST_MONOTONICITY:
            doubts.append("does not follow training")
        if self.signal is not None and abs(self.signal) < LEAST_SIGNAL and not self.free_form:
            doubts.append("noisy between seeds")
        return doubts

    @property
    def verdict(self) -> str:
        """`trust`, `trust (one seed)` where noise was not measured, or the doubts."""
        if self.doubts:
            return "; ".join(self.doubts)
        return "trust" if self.signal is not None else "trust (one seed)"
