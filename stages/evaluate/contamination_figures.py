"""Clean and contaminated items beside each other, at any bound on what the corpus holds of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from stages.engine.page import Artifact, Axis, Cell, CurveFigure, Figure, Series, make_table
from stages.evaluate.figures import family, interval_text
from stages.scoring.contamination import ItemValue, Side, Split, read_overlaps, split_items
from stages.scoring.metrics import row_label

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.scoring.observations import ItemName

DRAWN = 4
"""Scores whose curves over the threshold are drawn, those of most contaminated items first."""
Splits = dict[tuple[str, str], list[Split]]
"""By label and metric."""


def contamination_figures(artifact: Artifact, items: pa.Table) -> list[Figure]:
    """A table of both sides at each threshold, and curves; empty without contamination data."""
    from stages.engine.tally import available_inputs

    inputs = available_inputs(artifact, "contamination")
    overlaps = read_overlaps(inputs[0]) if inputs else None
    groups = _group(items, overlaps)
    if not groups:
        return []
    thresholds = (0.0,) if overlaps is None else None
    splits = {
        name: split_items(group, thresholds) if thresholds else split_items(group)
        for name, group in sorted(groups.items())
    }
    note = (
        "An item is contaminated if the kept corpus holds more than this share of its n-grams (of "
        "those of any document that was read). Scores weigh bits per byte by bytes; 95 % intervals "
        "are in brackets, that of the difference takes the two as independent: they are other "
        "items, which may be harder or easier by themselves."
    )
    if overlaps is None:
        note += " What was searched is not in the store any more, so other bounds are not known."
    table = make_table(
        "Contaminated and clean items",
        "score | metric | held, more than:.0% | clean n:, | contaminated n:, | clean: "
        "| contaminated: | clean − contaminated, 95 %:",
        _rows(splits),
        note,
    )
    return [table, *_curves(splits)] if table.rows else [table]


def _group(
    items: pa.Table, overlaps: Mapping[ItemName, float] | None
) -> dict[tuple[str, str], list[ItemValue]]:
    """Items by score; the corpus holds nothing of those that are not flagged."""
    import pyarrow.compute as pc

    groups: dict[tuple[str, str], list[ItemValue]] = {}
    for row in items.filter(pc.is_valid(items["contaminated"])).to_pylist():
        if math.isfinite(row["value"]):
            share = (overlaps or {}).get((row["benchmark"], row["item_id"]), 1.0)
            value = ItemValue(
                row["value"], row["weight"], row["cluster"], share if row["contaminated"] else 0.0
            )
            groups.setdefault((row_label(row), row["metric"]), []).append(value)
    return groups


def _rows(splits: Splits) -> Iterator[tuple[Cell, ...]]:
    for (name, metric), group in splits.items():
        for split in group:
            if split.threshold and split.contaminated is None:
                continue
            difference = split.difference
            ends = difference and f"{difference[1]:+.3f} to {difference[2]:+.3f}"
            yield (
                name,
                metric,
                split.threshold,
                split.clean.items if split.clean else 0,
                split.contaminated.items if split.contaminated else 0,
                _text(split.clean),
                _text(split.contaminated),
                difference and f"{difference[0]:+.3f} ({ends})",
            )


def _text(side: Side | None) -> Cell:
    """`0.250 (0.046–0.699)`; None without items."""
    if side is None:
        return None
    ends = interval_text(side.low, side.high)
    return f"{side.value:.3f} ({ends})" if ends else f"{side.value:.3f}"


def _curves(splits: Splits) -> Iterator[CurveFigure]:
    """Both sides over the threshold, of the accuracies with most contaminated items."""
    usual = [
        (name, group)
        for (name, metric), group in splits.items()
        if metric == "accuracy" and len(group) > 1 and group[0].contaminated is not None
    ]
    usual.sort(key=lambda pair: -pair[1][0].contaminated.items)  # type: ignore[union-attr]
    for name, group in usual[:DRAWN]:
        sides = {
            "clean": [(split.threshold, split.clean) for split in group],
            "contaminated": [(split.threshold, split.contaminated) for split in group],
        }
        yield CurveFigure(
            f"{name}: {family('accuracy')} by what is called contaminated",
            Axis("share of an item's n-grams that the corpus holds, more than", format=".0%"),
            Axis("accuracy", format=".3f"),
            tuple(_series(side, points) for side, points in sides.items()),
            note="Bars: 95 % intervals. Where clean items are worse at every bound, the score owes "
            "something to items that were in the corpus, or these are easier.",
        )


def _series(name: str, points: list[tuple[float, Side | None]]) -> Series:
    there = [(x, side) for x, side in points if side is not None]
    return Series(
        name,
        tuple(x for x, _ in there),
        tuple(side.value for _, side in there),
        low=tuple(side.low for _, side in there),
        high=tuple(side.high for _, side in there),
    )
