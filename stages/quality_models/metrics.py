"""How well scores separate two classes: intervals, curves, calibration.

`positive` and `negative` are the scores of held documents of the reference and of the contrast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.scoring.uncertainty import NORMAL_95, wilson

Floats = NDArray[np.float64]
BINS = 10
"""Reliability bins, of equal width (Guo et al. 2017, arXiv 1706.04599)."""
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
CURVE = 200
"""Most points of a curve that is kept."""


@dataclass(frozen=True)
class Curve:
    """At each threshold, from the highest score down, what is at or above it."""

    thresholds: Floats
    hits: Floats
    """Positives at or above the threshold."""
    alarms: Floats
    """Negatives at or above it."""

    @classmethod
    def from_scores(cls, positive: Floats, negative: Floats) -> Curve:
        """One point for each different score."""
        values, inverse = np.unique(np.concatenate([positive, negative]), return_inverse=True)
        split = len(positive)
        hits = np.bincount(inverse[:split], minlength=len(values))[::-1].cumsum()
        alarms = np.bincount(inverse[split:], minlength=len(values))[::-1].cumsum()
        return cls(values[::-1], hits.astype(np.float64), alarms.astype(np.float64))

    @property
    def precision(self) -> Floats:
        """Share of positives among what is at or above."""
        return self.hits / (self.hits + self.alarms)

    @property
    def recall(self) -> Floats:
        """Share of the positives that is at or above."""
        return self.hits / self.hits[-1]

    @property
    def f1(self) -> Floats:
        """Harmonic mean of the two."""
        return 2 * self.hits / (self.hits + self.alarms + self.hits[-1])

    def best_f1(self) -> float:
        """The highest threshold of those with the best F1."""
        return float(self.thresholds[int(self.f1.argmax())])

    def keeping(self, share: float) -> float:
        """The lowest threshold that at most `share` of the negatives reach.

        Just above the highest score where even that is reached by more of them.
        """
        allowed = np.flatnonzero(self.alarms <= share * self.alarms[-1])
        if not len(allowed):
            return float(np.nextafter(self.thresholds[0], np.inf))
        return float(self.thresholds[allowed[-1]])

    def plain(self) -> dict[str, list[float]]:
        """Threshold, precision and recall of at most 200 points, evenly chosen, ends included."""
        last = len(self.thresholds) - 1
        chosen = np.unique(np.linspace(0, last, min(CURVE, last + 1)).round().astype(np.int64))
        return {
            "threshold": _rounded(self.thresholds[chosen]),
            "precision": _rounded(self.precision[chosen]),
            "recall": _rounded(self.recall[chosen]),
        }


def score_card(positive: Floats, negative: Floats, threshold: float, seed: int) -> dict[str, Any]:
    """Everything card.json says of the held documents. Neither class may be empty."""
    hit, alarm = int((positive >= threshold).sum()), int((negative >= threshold).sum())
    return {
        "documents": {"reference": len(positive), "contrast": len(negative)},
        "at_cutoff": {
            "precision": share(hit, hit + alarm),
            "recall": share(hit, len(positive)),
            "contrast_kept": share(alarm, len(negative)),
            "f1": f1_interval(hit, alarm, len(positive), len(negative), seed),
        },
        "roc_auc": roc_auc(positive, negative),
        "calibration": calibration(positive, negative),
        "quantiles": {
            "reference": _quantiles(positive),
            "contrast": _quantiles(negative),
        },
        "curve": Curve.from_scores(positive, negative).plain(),
        "histogram": histogram(positive, negative),
    }


def share(count: int, total: int) -> dict[str, float | int] | None:
    """A share with its Wilson interval; None of nothing."""
    if not total:
        return None
    low, high = wilson(count, total)
    return {
        "value": round(count / total, 6),
        "low": round(low, 6),
        "high": round(high, 6),
        "count": total,
    }


def f1_interval(hit: int, alarm: int, positives: int, negatives: int, seed: int) -> dict[str, Any]:
    """F1 with a bootstrap interval: documents of each class resampled 2,000 times.

    Which documents are drawn matters only by how many of them are at or above the cut-off, so the
    two binomial counts are drawn instead.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    hits = random.binomial(positives, hit / positives, 2000)
    alarms = random.binomial(negatives, alarm / negatives, 2000)
    low, high = np.quantile(2 * hits / (hits + alarms + positives), [0.025, 0.975])
    value = 2 * hit / (hit + alarm + positives)
    return {"value": round(value, 6), "low": round(float(low), 6), "high": round(float(high), 6)}


def roc_auc(positive: Floats, negative: Floats) -> dict[str, float]:
    """The area under the ROC curve: how often a positive scores above a negative, ties half.

    Its interval is DeLong's (DeLong et al. 1988; by ranks as Sun and Xu 2014), cut to [0, 1].
    """
    m, n = len(positive), len(negative)
    ranks = _mid_ranks(np.concatenate([positive, negative]))
    above = (ranks[:m] - _mid_ranks(positive)) / n  # Of each positive: the negatives below it.
    below = 1 - (ranks[m:] - _mid_ranks(negative)) / m  # Of each negative: the positives above.
    area = float(above.mean())
    variance = sum(float(v.var(ddof=1)) / len(v) for v in (above, below) if len(v) > 1)
    width = NORMAL_95 * variance**0.5
    return {
        "value": round(area, 6),
        "low": round(max(0.0, area - width), 6),
        "high": round(min(1.0, area + width), 6),
    }


def calibration(positive: Floats, negative: Floats) -> dict[str, Any]:
    """Whether a score of 0.8 means eight in ten, both classes weighing alike.

    Reliability bins; expected calibration error Σ weight · |mean score - share of positives| (Guo
    et al. 2017); Brier score, the mean squared error of the scores (Brier 1950).
    """
    scores = np.concatenate([positive, negative])
    is_positive = np.repeat([1.0, 0.0], [len(positive), len(negative)])
    weights = np.repeat([0.5 / len(positive), 0.5 / len(negative)], [len(positive), len(negative)])
    index = np.minimum((scores * BINS).astype(np.int64), BINS - 1)
    weight, sums, hits = (
        np.bincount(index, weights=weights * values, minlength=BINS)
        for values in (1.0, scores, is_positive)
    )
    bins = [
        {
            "from": number / BINS,
            "to": (number + 1) / BINS,
            "documents": int((index == number).sum()),
            "score": round(float(sums[number] / weight[number]), 6),
            "reference_share": round(float(hits[number] / weight[number]), 6),
        }
        for number in range(BINS)
        if weight[number]
    ]
    return {
        "bins": bins,
        "expected_error": round(float(np.abs(sums - hits).sum()), 6),
        "brier": round(float((weights * (scores - is_positive) ** 2).sum()), 6),
    }


def histogram(positive: Floats, negative: Floats, bins: int = 20) -> dict[str, list[Any]]:
    """Documents of both classes by score, in bins of equal width from 0 to 1."""
    edges = np.linspace(0, 1, bins + 1)
    return {
        "edges": _rounded(edges),
        "reference": np.histogram(positive, edges)[0].tolist(),
        "contrast": np.histogram(negative, edges)[0].tolist(),
    }


def _quantiles(scores: Floats) -> dict[str, float]:
    values = np.quantile(scores, QUANTILES)
    return {f"{share:g}": round(float(v), 6) for share, v in zip(QUANTILES, values, strict=True)}


def _mid_ranks(values: Floats) -> Floats:
    """Ranks from 1, equal values sharing the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    middles: Floats = ends - (counts - 1) / 2
    return middles[inverse]


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 6) for value in values]
