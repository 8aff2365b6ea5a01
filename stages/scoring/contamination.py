"""Scores of clean and contaminated items, at any bound on what the corpus holds of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from stages.scoring.differences import newcombe_interval
from stages.scoring.uncertainty import score_interval

if TYPE_CHECKING:
    from stages.engine import Input
    from stages.scoring.observations import ItemName

THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.8)
"""Shares of an item's n-grams above which it is called contaminated."""


class ItemValue(NamedTuple):
    """An item under one metric, and the share of its n-grams that the corpus holds."""

    value: float
    weight: float
    cluster: str | None
    overlap: float


@dataclass(frozen=True)
class Side:
    """The score of some of the items; the ends are None where one unit gives no interval."""

    items: int
    value: float
    low: float | None
    high: float | None

    @classmethod
    def of_items(cls, items: Sequence[ItemValue]) -> Side | None:
        """None without items."""
        if not items:
            return None
        numerators = [one.value * one.weight for one in items]
        clusters = [one.cluster for one in items]
        estimate, ends = score_interval(numerators, [one.weight for one in items], clusters)
        return cls(len(items), estimate.value, *(ends or (None, None)))

    @property
    def estimate(self) -> tuple[float, float, float] | None:
        """(value, low, high), if it has an interval."""
        if self.low is None or self.high is None:
            return None
        return self.value, self.low, self.high


@dataclass(frozen=True)
class Split:
    """Items whose overlap is at most `threshold`, and the others."""

    threshold: float
    clean: Side | None
    contaminated: Side | None

    @property
    def difference(self) -> tuple[float, float, float] | None:
        """Clean − contaminated with its 95 % interval: other items, so not paired."""
        clean = self.clean.estimate if self.clean else None
        contaminated = self.contaminated.estimate if self.contaminated else None
        if clean is None or contaminated is None:
            return None
        low, high = newcombe_interval(contaminated, clean)
        return clean[0] - contaminated[0], low, high


def split_items(
    items: Sequence[ItemValue], thresholds: Iterable[float] = THRESHOLDS
) -> list[Split]:
    """A split at each threshold."""
    return [
        Split(
            threshold,
            Side.of_items([one for one in items if one.overlap <= threshold]),
            Side.of_items([one for one in items if one.overlap > threshold]),
        )
        for threshold in thresholds
    ]


def read_overlaps(contamination: Input | None) -> dict[ItemName, float]:
    """The share of each item's n-grams that the corpus holds, of items that were hit."""
    if contamination is None:
        return {}
    columns = ["benchmark", "item_id", "ngrams", "ngrams_hit"]
    return {
        (row["benchmark"], row["item_id"]): row["ngrams_hit"] / max(1, row["ngrams"])
        for row in contamination.read_table("items.parquet", columns).to_pylist()
    }


def with_overlap(
    items: Mapping[str, tuple[float, float, str | None]],
    benchmark: str,
    overlaps: Mapping[ItemName, float],
) -> list[ItemValue]:
    """Items of one score as (value, weight, cluster) by id, with their overlap."""
    return [
        ItemValue(*values, overlaps.get((benchmark, item_id), 0.0))
        for item_id, values in items.items()
    ]
