"""How far a judge agrees with people, on pairs that people have labelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stages.judge.verdicts import Comparison
from stages.scoring.uncertainty import NORMAL_95


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa (1960) over `count` pairs, with its large-sample standard error."""

    value: float
    standard_error: float | None
    low: float | None
    high: float | None
    count: int


def kappa(human: Sequence[str], judge: Sequence[str]) -> Kappa | None:
    """(observed − expected agreement) / (1 − expected); None where chance alone agrees always.

    Cohen 1960, Educational and Psychological Measurement 20(1), formula 1 and, for the error,
    sqrt(po (1 − po) / (n (1 − pe)²)).
    """
    n = len(human)
    if n == 0:
        return None
    labels = {*human, *judge}
    observed = sum(one == other for one, other in zip(human, judge, strict=True)) / n
    expected = sum(human.count(one) * judge.count(one) for one in labels) / n**2
    if expected >= 1:
        return None
    value = (observed - expected) / (1 - expected)
    if n == 1:
        return Kappa(value, None, None, None, n)
    error = math.sqrt(observed * (1 - observed) / n) / (1 - expected)
    low, high = max(-1.0, value - NORMAL_95 * error), min(1.0, value + NORMAL_95 * error)
    return Kappa(value, error, low, high, n)


def agreement(comparisons: Sequence[Comparison]) -> Kappa | None:
    """Kappa of labelled pairs with a verdict: `a`, `b` or `tie` of the judge, `a` or `b` of people.

    Which answer people prefer is A or B by a seeded draw, so that a judge which always takes the
    first agrees by chance alone.
    """
    judged = [one for one in comparisons if one.outcome is not None and one.pair.human is not None]
    return kappa([str(one.pair.human) for one in judged], [str(one.outcome) for one in judged])
