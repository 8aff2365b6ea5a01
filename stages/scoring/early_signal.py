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

from stages.scoring.uncertainty import NORMAL_95

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


def above_chance_interval(
    values: ArrayLike, chance: float, error: float | None = None
) -> tuple[float, float] | None:
    """The 95 % interval of `above_chance`: of several seeds by the noncentral t distribution.

    The value times √n is Student's t with the true one times √n as its noncentrality. Of one run
    the error counts as known, so the ends are 1.96 from the value.
    """
    from scipy.special import nctdtrinc

    value, count = above_chance(values, chance, error), np.asarray(values).size
    if value is None:
        return None
    if count == 1:
        return value - NORMAL_95, value + NORMAL_95
    root = math.sqrt(count)
    low, high = (float(nctdtrinc(count - 1, tail, value * root)) / root for tail in (0.975, 0.025))
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


@dataclass(frozen=True)
class ItemScores:
    """One score of one run: its items at each checkpoint."""

    steps: tuple[int, ...]
    numerators: Floats
    """[units, checkpoints]; more is better. Items of a cluster are one unit."""
    denominators: Floats
    """[units, checkpoints]."""

    def at(self, chosen: Sequence[bool]) -> ItemScores:
        """Of the chosen checkpoints alone."""
        steps = tuple(step for step, one in zip(self.steps, chosen, strict=True) if one)
        return ItemScores(steps, self.numerators[:, chosen], self.denominators[:, chosen])

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
    drawn = _draw_scores(runs)
    if drawn is None:
        return None
    each = [
        [r or 0.0 for r in _correlation(rankdata(run.steps), rankdata(scores, axis=1))]
        for run, scores in zip(runs, drawn, strict=True)
    ]
    low, high = np.quantile(np.mean(each, axis=0), [0.025, 0.975])
    return float(low), float(high)


def _draw_scores(runs: Sequence[ItemScores]) -> list[Floats] | None:
    """Scores of each run over items that are drawn again, [draws, checkpoints].

    None for one unit, for other units in each run, and where a draw has a denominator of 0.
    """
    units = {len(run.numerators) for run in runs}
    if len(units) != 1 or units == {1}:
        return None
    (count,) = units
    random = np.random.default_rng(SEED)
    parts: list[list[Floats]] = [[] for _ in runs]
    for _ in range(0, DRAWS, 100):  # A hundred at once, which bounds memory.
        weights = random.multinomial(count, np.full(count, 1 / count), size=100)
        for run, part in zip(runs, parts, strict=True):
            totals = weights @ run.denominators
            if not (totals > 0).all():
                return None
            part.append(weights @ run.numerators / totals)
    return [np.concatenate(part) for part in parts]


def mean_ordering(scores: Sequence[Sequence[float]]) -> float | None:
    """The mean of Kendall's tau between each checkpoint and the next; `scores` of models by each.

    None for fewer than two models or checkpoints.
    """
    values = [kendall(before, after) for before, after in pairwise(scores) if len(before) > 1]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def ordering_interval(models: Sequence[Sequence[ItemScores]]) -> tuple[float, float] | None:
    """Where 95 % of `mean_ordering` lie over items that are drawn again (a seeded bootstrap).

    Each model has its runs, all with the same checkpoints; a model's score is their mean.
    """
    drawn = _draw_scores([run for runs in models for run in runs])
    if drawn is None or len(models) < 2:
        return None
    rest = iter(drawn)
    scores = np.array([np.mean([next(rest) for _ in runs], axis=0) for runs in models])
    first, second = np.triu_indices(len(models), 1)
    signs = np.sign(scores[first] - scores[second])  # [pairs of models, draws, checkpoints]
    before, after = signs[..., :-1], signs[..., 1:]
    scale = np.sqrt(np.square(before).sum(axis=0) * np.square(after).sum(axis=0))
    # Kendall's tau-b is not defined where all models are equal: such a draw shows no order.
    taus = (before * after).sum(axis=0) / np.where(scale > 0, scale, 1.0)
    low, high = np.quantile(taus.mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


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
