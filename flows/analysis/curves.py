"""Scores over the permanent checkpoints of training runs, and which of them can be trusted.

Evaluations are grouped by the run whose checkpoint they measured. Runs that differ by their seed
alone are one model: their spread is the noise that a score has to rise above.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from flows.analysis.score_comparison import (
    Items,
    ScoreDifference,
    lower_is_better,
)
from stages.scoring.early_signal import (
    ItemScores,
    Signal,
    above_chance,
    above_chance_interval,
    mean_ordering,
    monotonicity,
    monotonicity_interval,
    ordering_interval,
    signal_interval,
    signal_to_noise,
)
from stages.scoring.metrics import label
from stages.scoring.observations import ScoreName

Interval = tuple[float, float] | None


@dataclass(frozen=True)
class Point:
    """A score at one checkpoint, with its 95 % interval."""

    step: int
    tokens: int
    value: float
    low: float | None
    high: float | None
    standard_error: float | None
    baseline: float | None
    count: int
    items: Items
    evaluation: tuple[str, str]
    """Stage and key of what measured it."""


@dataclass(frozen=True)
class Curve:
    """A score over the checkpoints of a run, first to last."""

    run: str
    """Its name, or stage and key."""
    model: str
    """The name of the first run that differs by its seed at most."""
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Fall:
    """A score that fell between two checkpoints of a run, beyond chance among all such pairs."""

    run: str
    before: Point
    after: Point
    difference: ScoreDifference


@dataclass(frozen=True)
class ScoreCurves:
    """The curves of one score over all runs."""

    name: ScoreName
    curves: tuple[Curve, ...]

    @property
    def label(self) -> str:
        """The benchmark, and how its items were put to the models."""
        return label(*self.name[:3])

    @property
    def sign(self) -> float:
        """-1 where less is better."""
        return -1.0 if lower_is_better(self.name.metric) else 1.0

    @cached_property
    def models(self) -> dict[str, list[Curve]]:
        """Curves by model."""
        models: dict[str, list[Curve]] = {}
        for curve in self.curves:
            models.setdefault(curve.model, []).append(curve)
        return models

    @cached_property
    def items(self) -> list[ItemScores]:
        """The items that all checkpoints of all runs share, run by run; empty without any."""
        every = [point.items for curve in self.curves for point in curve.points]
        first = every[0]
        shared = [
            name
            for name, (_, weight, _) in first.items()
            if all(name in items and items[name][1] == weight for items in every)
        ]
        if not shared:
            return []
        units: dict[object, int] = {}
        places = [
            units.setdefault(name if first[name][2] is None else (first[name][2],), len(units))
            for name in shared
        ]
        weights = np.array([first[name][1] for name in shared])

        def by_unit(values: Iterable[float]) -> np.ndarray:
            return np.bincount(places, weights=np.array(list(values)) * weights)

        denominators = by_unit([1.0] * len(shared))
        runs = []
        for curve in self.curves:
            numerators = [by_unit(point.items[i][0] for i in shared) for point in curve.points]
            steps = tuple(point.step for point in curve.points)
            runs.append(
                ItemScores(
                    steps,
                    self.sign * np.stack(numerators, axis=1),
                    np.repeat(denominators[:, None], len(steps), axis=1),
                )
            )
        return runs

    @cached_property
    def last_values(self) -> list[list[float]]:
        """The last score of each run, by model."""
        return [[run.points[-1].value for run in runs] for runs in self.models.values()]

    @property
    def signal_interval(self) -> Interval:
        """Of signal over noise; None for several models, or one seed."""
        return signal_interval(self.last_values[0]) if len(self.last_values) == 1 else None

    @property
    def monotonicity_interval(self) -> Interval:
        """Over resampled items."""
        return monotonicity_interval(self.items) if self.items else None

    @property
    def above_chance_interval(self) -> Interval:
        """Of the score above chance; None for several models."""
        models = list(self.models.values())
        known = self._chance(models[0])
        return None if len(models) > 1 or known is None else above_chance_interval(*known)

    @property
    def ordering_interval(self) -> Interval:
        """Over resampled items, at the token counts that every run has."""
        if len(self.models) < 2 or not self.items:
            return None
        by_curve = {id(c): run for c, run in zip(self.curves, self.items, strict=True)}
        shared = set(self._shared_tokens)
        return ordering_interval(
            [
                [by_curve[id(c)].at([p.tokens in shared for p in c.points]) for c in runs]
                for runs in self.models.values()
            ]
        )

    @cached_property
    def signal(self) -> Signal:
        """What they say about the score."""
        noise = _mean(signal_to_noise(values) for values in self.last_values)
        return Signal(
            checkpoints=min(len(curve.points) for curve in self.curves),
            monotonicity=monotonicity(self.items) if self.items else None,
            signal=noise,
            above_chance=_mean(self._above_chance(runs) for runs in self.models.values()),
            ordering=self._ordering(),
            free_form=self.name.formulation == "free",
        )

    def _above_chance(self, runs: Sequence[Curve]) -> float | None:
        """None for bits per byte: their error over texts is no test of the unigram model."""
        known = self._chance(runs)
        return None if known is None else above_chance(*known)

    def _chance(self, runs: Sequence[Curve]) -> tuple[list[float], float, float | None] | None:
        """Last scores of a model's runs, chance, and the first run's standard error."""
        ends = [run.points[-1] for run in runs]
        if ends[0].baseline is None or lower_is_better(self.name.metric):
            return None
        return [point.value for point in ends], ends[0].baseline, ends[0].standard_error

    @property
    def _shared_tokens(self) -> list[int]:
        return sorted(set.intersection(*({p.tokens for p in c.points} for c in self.curves)))

    def _ordering(self) -> float | None:
        """Over the token counts that every run has."""
        by_tokens = [{p.tokens: self.sign * p.value for p in c.points} for c in self.curves]
        place = {id(curve): values for curve, values in zip(self.curves, by_tokens, strict=True)}
        scores = [
            [
                float(np.mean([place[id(run)][tokens] for run in runs]))
                for runs in self.models.values()
            ]
            for tokens in self._shared_tokens
        ]
        return mean_ordering(scores)

    def to_json(self) -> dict[str, Any]:
        """As plain values, without items."""
        curves = [
            {
                "run": curve.run,
                "model": curve.model,
                "points": [
                    {k: v for k, v in vars(point).items() if k not in ("items", "evaluation")}
                    for point in curve.points
                ],
            }
            for curve in self.curves
        ]
        return {
            **self.name._asdict(),
            **asdict(self.signal),
            "monotonicity_interval": self.monotonicity_interval,
            "signal_interval": self.signal_interval,
            "above_chance_interval": self.above_chance_interval,
            "ordering_interval": self.ordering_interval,
            "verdict": self.signal.verdict,
            "curves": curves,
        }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True)
class CurveReport:
    """All scores, the falls between checkpoints, and what was not used."""

    scores: tuple[ScoreCurves, ...]
    falls: tuple[Fall, ...]
    compared: int
    """Pairs of consecutive checkpoints among which falls were sought."""
    excluded: int
    """Evaluations with other settings than most."""

    @property
    def runs(self) -> list[str]:
        """Names of the runs."""
        return list(dict.fromkeys(curve.run for score in self.scores for curve in score.curves))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        falls = [
            {
                "run": fall.run,
                "from_step": fall.before.step,
                "to_step": fall.after.step,
                **fall.difference.to_json(),
            }
            for fall in self.falls
        ]
        return {
            "scores": [one.to_json() for one in self.scores],
            "falls": falls,
            "compared": self.compared,
            "excluded": self.excluded,
        }
