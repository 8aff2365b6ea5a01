"""How rounds of two sides are told: medians, and the least and greatest quotient of two rounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.benchmarks.dedup_runs import Cost


def seconds(runs: Sequence[Cost]) -> list[float]:
    """CPU seconds of each."""
    return [run.cpu for run in runs]


def cpu(runs: Sequence[Cost]) -> float:
    """Their median."""
    return statistics.median(seconds(runs))


def middle(values: Sequence[float]) -> str:
    """The median, with the least and the greatest."""
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def times(of: Sequence[float], to: Sequence[float]) -> str:
    """The quotient of the medians, and the least and the greatest of any two."""
    quotient = statistics.median(of) / statistics.median(to)
    return f"{quotient:.3g} ({min(of) / max(to):.3g}-{max(of) / min(to):.3g})"
