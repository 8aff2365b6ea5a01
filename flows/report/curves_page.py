"""The page of `ingot curves`: scores over checkpoints, which can be trusted, and what fell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from flows.analysis.curves import Curve, CurveReport, Point
from flows.report.html import write_figures
from stages.engine.page import Axis, CurveFigure, Figure, Series, TableFigure, make_table
from stages.scoring.early_signal import (
    DRAWS,
    LEAST_ABOVE_CHANCE,
    LEAST_MONOTONICITY,
    LEAST_SIGNAL,
)
from stages.scoring.uncertainty import show_estimate

TRUST = (
    f"A score can be trusted at this scale if it follows training (mean Spearman correlation of "
    f"step and score ≥ {LEAST_MONOTONICITY}), is above chance (≥ {LEAST_ABOVE_CHANCE:g} standard "
    "deviations between seeds, or standard errors of one run) and is larger than the noise between "
    f"seeds (mean over standard deviation > {LEAST_SIGNAL:g}; not asked of written answers). In "
    f"brackets: where 95 % of {DRAWS:,} resamplings of the items lie (follows training, order), "
    "the chi-squared interval of the noise, and the noncentral t's above chance (of one run 1.96 "
    "standard errors). First and last are of the first run; `order` is the mean of Kendall's "
    "tau between the models' scores at one checkpoint and the next."
)


def write_curves(report: CurveReport, path: Path) -> Path:
    """Write the page to `path`; UsageError if it cannot be written."""
    facts = {
        "runs": ", ".join(report.runs),
        "scores": f"{len(report.scores):,}",
        "can be trusted": f"{sum(not one.signal.doubts for one in report.scores):,}",
        "falls beyond chance": f"{len(report.falls):,} of {report.compared:,} pairs",
    }
    chapters: dict[str, Sequence[Figure]] = {
        "What can be trusted": [trust_table(report), falls_table(report)],
        "Curves": list(curve_figures(report)),
    }
    return write_figures(f"Curves of {', '.join(report.runs)}", facts, chapters, path)


def trust_table(report: CurveReport) -> TableFigure:
    """A row for each score: its change, its criteria, and a verdict."""
    rows = (
        (
            one.label,
            one.name.metric,
            one.signal.verdict,
            max(curve.points[-1].count for curve in one.curves),
            _show(one.curves[0].points[0]),
            _show(one.curves[0].points[-1]),
            _with_interval(one.signal.monotonicity, one.monotonicity_interval, ".2f"),
            _with_interval(one.signal.signal, one.signal_interval, ".1f"),
            _with_interval(one.signal.above_chance, one.above_chance_interval, ".1f"),
            _with_interval(one.signal.ordering, one.ordering_interval, ".2f"),
        )
        for one in report.scores
    )
    return make_table(
        "Which scores can be trusted at this scale",
        "score | metric | verdict | n:, | first, 95 %: | last, 95 %: | follows training: "
        "| signal / noise: | above chance: | order:",
        rows,
        TRUST,
    ).without_empty()


def falls_table(report: CurveReport) -> TableFigure:
    """Scores that fell between two checkpoints."""
    rows = []
    for fall in report.falls:
        paired = fall.difference.paired
        rows.append(
            (
                fall.run,
                fall.difference.label,
                fall.difference.metric,
                f"{fall.before.step:,} → {fall.after.step:,}",
                _show(fall.before),
                _show(fall.after),
                show_estimate(paired.value, paired.ends, "+.3f"),
            )
        )
    note = (
        f"Of {report.compared:,} pairs of consecutive checkpoints, paired by item: p below 0.05 "
        "after Holm's adjustment for all of them."
    )
    return make_table(
        "Scores that fell between checkpoints",
        "run | score | metric | steps | before, 95 %: | after, 95 %: | difference, 95 %:",
        rows,
        note if rows else f"None. {note}",
    )


def curve_figures(report: CurveReport) -> Iterator[CurveFigure]:
    """A picture for each score: a curve for each run, with intervals, and its baseline."""
    for one in report.scores:
        series = [_series(curve) for curve in one.curves]
        baselines = {curve.points[-1].baseline for curve in one.curves}
        ends = [series[0].x[0], series[0].x[-1]]
        series += [
            Series("baseline", tuple(ends), (level, level), faint=True)
            for level in baselines
            if level is not None
        ]
        yield CurveFigure(
            f"{one.label}: {one.name.metric.replace('_', ' ')}",
            Axis("tokens", format=",.0f"),
            Axis(one.name.metric.replace("_", " "), format=".3f"),
            tuple(series),
            note=f"{one.signal.verdict[:1].upper()}{one.signal.verdict[1:]}. Bars: 95 % intervals "
            f"over {max(curve.points[-1].count for curve in one.curves):,} items.",
        )


def _series(curve: Curve) -> Series:
    points = curve.points
    return Series(
        curve.run,
        tuple(float(point.tokens) for point in points),
        tuple(point.value for point in points),
        low=tuple(point.low for point in points),
        high=tuple(point.high for point in points),
    )


def _show(point: Point) -> str:
    ends = None if point.low is None or point.high is None else (point.low, point.high)
    return show_estimate(point.value, ends)


def _with_interval(
    value: float | None, ends: tuple[float, float] | None, format_: str
) -> str | None:
    return None if value is None else show_estimate(value, ends, format_)
