"""Figures of what moved: signals of new snapshots, shares of languages and sources."""

from __future__ import annotations

from collections.abc import Sequence

from flows.analysis.corpus_change import CorpusChange
from flows.analysis.corpus_tables import Volume
from flows.analysis.drift import QUANTILES, REPLICATES, Drift
from flows.report.corpus_figures import WILSON, add_counts, share_estimate, volume_tokens
from stages.engine.page import (
    Axis,
    Cell,
    CurveFigure,
    Estimate,
    Figure,
    IntervalFigure,
    Series,
    make_table,
)
from stages.engine.tally import ranked, sentences
from stages.scoring.uncertainty import wilson

DISTANCES, CURVES = 15, 4
"""Signals whose distance is drawn, and those whose values are."""
DRAWN_SHARES = 8


# Drift -------------------------------------------------------------------------------------------


def distances(change: CorpusChange, most: int = DISTANCES) -> IntervalFigure | None:
    """The signals that moved most, of the documents that are kept."""
    if change.drift is None or not change.drift.kept:
        return None
    drawn = change.drift.kept[:most]
    return IntervalFigure(
        "How far signals moved, of kept documents",
        Axis("distance", format=".3f"),
        tuple(Estimate(one.name, one.distance, one.low, one.high, 0.0) for one in drawn),
        f"The distance is the largest difference between the shares of documents at or below a "
        f"value (Kolmogorov and Smirnov); of a label, the difference of its shares. All "
        f"{len(change.drift.kept):,} intervals hold together with 95 % confidence, from "
        f"{REPLICATES} draws of {_unit(change)}: one that leaves out 0 differs beyond chance.",
    )


def _unit(change: CorpusChange) -> str:
    assert change.drift is not None, "called only where drift was measured"
    earlier, new = change.drift.sites
    return f"web sites ({earlier:,} earlier, {new:,} new)" if earlier else "documents"


def drift(change: CorpusChange) -> list[Figure]:
    """Distances, the values of those that moved most, and all of them as tables."""
    measured, drawn = change.drift, distances(change)
    if measured is None or drawn is None:
        return []
    moved = [one for one in measured.kept if one.beyond_chance and not one.is_label]
    kept, read = measured.kept_documents, measured.documents
    return [
        drawn,
        *(_values(one) for one in moved[:CURVES]),
        *_drift_tables("of kept documents", measured.kept, kept),
        *_drift_tables("of all documents that were decided on", measured.read, read),
    ]


def _values(one: Drift) -> CurveFigure:
    """The value below which each share of the documents lies, on both sides."""
    percent = tuple(range(1, 100))
    positive = min(side[1] for side in one.curves) > 0
    wide = positive and max(side[99] for side in one.curves) > 30 * min(s[1] for s in one.curves)
    return CurveFigure(
        f"{one.name}: earlier and new",
        Axis("% of documents at or below", format=".0f"),
        Axis("value", "log" if wide else "linear", ",.4g"),
        tuple(
            Series(name, percent, side[1:100])
            for name, side in zip(("earlier", "new"), one.curves, strict=True)
        ),
        note=one.description,
    )


def _drift_tables(whose: str, rows: Sequence[Drift], sizes: tuple[int, int]) -> list[Figure]:
    if not rows:
        return []
    clear = sum(one.beyond_chance for one in rows)
    note = (
        f"{clear:,} of {len(rows):,} differ beyond chance. Measured on {sizes[0]:,} earlier and "
        f"{sizes[1]:,} new documents, those with the least ids, of sources that both have. All "
        "intervals hold together. Values are medians (5 % to 95 %)."
    )
    numbers, labels = ([one for one in rows if one.is_label == side] for side in (False, True))
    headings = "signal | distance:.3f | 95 %: | reading | earlier: | new:"
    figures: list[Figure] = [
        make_table(
            f"Signals {whose}",
            headings,
            [(*_reading(one), _spread(one.earlier), _spread(one.new)) for one in numbers],
            note,
        )
    ]
    if labels:
        headings = "label | difference:.3f | 95 %: | reading | earlier:.2% | new:.2%"
        shares = [(*_reading(one), one.earlier[0], one.new[0]) for one in labels]
        note = "Shares of documents. Intervals hold together with those of the signals."
        figures.append(make_table(f"Labels {whose}", headings, shares, note))
    return figures


def _reading(one: Drift) -> tuple[Cell, ...]:
    reading = "differs" if one.beyond_chance else "within chance"
    return one.name, one.distance, f"{one.low:.3f} to {one.high:.3f}", reading


def _spread(quantiles: Sequence[float]) -> str:
    low, middle, high = (quantiles[QUANTILES.index(at)] for at in (0.05, 0.5, 0.95))
    return f"{_short(middle)} ({_short(low)} to {_short(high)})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


# Languages and sources ---------------------------------------------------------------------------


def share_intervals(
    change: CorpusChange, by: str, most: int = DRAWN_SHARES
) -> IntervalFigure | None:
    """Share of the corpus before and after by `language` or `source`; None if there is one."""
    names, sides, totals = _shares(change, by)
    if not all(totals) or len(names) < 2:
        return None
    estimates = [
        share_estimate(f"{name}, {when}", side.get(name, 0), total)
        for name in names[:most]
        for when, side, total in zip(("before", "after"), sides, totals, strict=True)
    ]
    rest = f"Not drawn: {len(names) - most:,} more." if len(names) > most else ""
    return IntervalFigure(
        f"Share of documents by {by}",
        Axis("share of documents", format=".1%"),
        tuple(estimates),
        sentences(WILSON, rest),
    )


def shares(change: CorpusChange, by: str) -> list[Figure]:
    """The same, and all of them with their tokens as a table."""
    drawn = share_intervals(change, by)
    if drawn is None:
        return []
    before, after = (change.volumes(after=side, by=by) for side in (False, True))
    names, _, totals = _shares(change, by)
    rows = [
        (
            name,
            *_volume_cells(before.get(name, Volume()), totals[0]),
            *_volume_cells(after.get(name, Volume()), totals[1]),
        )
        for name in names
    ]
    headings = (
        f"{by} | before:, | share before (95 %): | tokens before:, | after:, "
        "| share after (95 %): | tokens after:,"
    )
    table = make_table(f"Documents and tokens by {by}", headings, rows, WILSON)
    return [drawn, table.without_empty()]


def _shares(change: CorpusChange, by: str) -> tuple[list[str], list[dict[str, int]], list[int]]:
    """Labels, most frequent first, their documents on both sides, and all documents."""
    sides = [
        {name: one.documents for name, one in change.volumes(after=side, by=by).items()}
        for side in (False, True)
    ]
    names = [name for name, _ in ranked(add_counts(*sides))]
    return names, sides, [sum(side.values()) for side in sides]


def _volume_cells(volume: Volume, total: int) -> tuple[Cell, ...]:
    low, high = wilson(volume.documents, total)
    share = f"{volume.documents / total:.1%} ({low:.1%} to {high:.1%})"
    return volume.documents, share, volume_tokens(volume)
