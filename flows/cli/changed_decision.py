"""Two decisions about the same documents, held against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stages.filter.checks import CONTAMINATION, NEAR_DUPLICATE
from stages.filter.config import FilterConfig
from stages.filter.verdicts import Verdicts

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Amount:
    """Documents with their characters and tokens; tokens are None where no tokenizer read them."""

    documents: int
    characters: int
    tokens: int | None = None


@dataclass(frozen=True)
class Moved:
    """Documents that one rule gains or loses: their values, and its threshold before and after."""

    reason: str
    documents: int
    characters: int
    least: float | None
    most: float | None
    before: float | None
    after: float | None

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


class Sizes(NamedTuple):
    """[documents] What is summed over documents."""

    characters: NDArray[np.int64]
    tokens: NDArray[np.float64] | None

    def amount(self, chosen: Bools) -> Amount:
        """The sums over some documents."""
        tokens = None if self.tokens is None else round(float(self.tokens[chosen].sum()))
        return Amount(int(chosen.sum()), int(self.characters[chosen].sum()), tokens)


@dataclass(frozen=True, eq=False)
class Change:
    """The decisions `before` and `after`, and the configs that made them."""

    before: Verdicts
    after: Verdicts
    configs: tuple[FilterConfig, FilterConfig]
    sizes: Sizes

    @property
    def gained(self) -> Bools:
        """[documents] Dropped before, kept after."""
        return ~self.before.kept & self.after.kept

    @property
    def lost(self) -> Bools:
        """[documents] Kept before, dropped after."""
        return self.before.kept & ~self.after.kept

    def by_source(self) -> Iterator[tuple[str, Amount, Amount, Amount]]:
        """Each source, sorted: all its documents, those kept before, those kept after."""
        sources = self.before.sources
        for source in sorted(pc.unique(sources).to_pylist()):
            of = pc.equal(sources, source).to_numpy(zero_copy_only=False)
            parts = (of, of & self.before.kept, of & self.after.kept)
            one, two, three = (self.sizes.amount(part) for part in parts)
            yield source, one, two, three

    def moved(self) -> dict[str, list[Moved]]:
        """`gained` and `lost` by the rule that dropped them, most documents first."""
        return {
            "gained": self._by_reason(self.before, self.gained),
            "lost": self._by_reason(self.after, self.lost),
        }

    def reason(self, row: int) -> Moved:
        """Why one document that moved was dropped, before or after, as a `Moved` of its own."""
        chosen = np.zeros(len(self.gained), dtype=bool)
        chosen[row] = True
        decided = self.before if self.gained[row] else self.after
        return self._by_reason(decided, chosen)[0]

    def _by_reason(self, decided: Verdicts, chosen: Bools) -> list[Moved]:
        before, after = (thresholds(config) for config in self.configs)
        found = []
        for code in np.unique(decided.first[chosen]).tolist():
            rows = chosen & (decided.first == code)
            values = decided.findings.value[rows]
            values = values[~np.isnan(values)]
            name = decided.names[code]
            found.append(
                Moved(
                    reason=name,
                    documents=int(rows.sum()),
                    characters=int(self.sizes.characters[rows].sum()),
                    least=float(values.min()) if len(values) else None,
                    most=float(values.max()) if len(values) else None,
                    before=before.get(name),
                    after=after.get(name),
                )
            )
        return sorted(found, key=lambda moved: (-moved.documents, moved.reason))


def thresholds(config: FilterConfig) -> dict[str, float]:
    """The number behind each check that has one and the same for all documents."""
    found = {
        rule.name: rule.threshold
        for rule in config.rule_order()
        if not rule.allowed and not np.isnan(rule.threshold)
    }
    found[CONTAMINATION] = float(config.contamination.min_ngrams_hit)
    if config.duplicates.threshold is not None:
        found[NEAR_DUPLICATE] = config.duplicates.threshold
    return found


def failing_counts(decided: Verdicts) -> Mapping[str, tuple[int, int]]:
    """By check: documents that fail it, and those that fail nothing else."""
    found, names = decided.findings, decided.names
    all_of = np.bincount(found.codes, minlength=len(names))
    single = np.flatnonzero(np.diff(found.offsets) == 1)
    alone = np.bincount(found.codes[found.offsets[single]], minlength=len(names))
    counts = zip(all_of.tolist(), alone.tolist(), strict=True)
    return dict(zip(names, counts, strict=True))


def least_ids(doc_ids: pa.StringArray, chosen: Bools, most: int) -> list[int]:
    """Rows of the chosen documents with the least ids: an even choice, the same each time."""
    rows = np.flatnonzero(chosen)
    order = pc.sort_indices(doc_ids.take(pa.array(rows))).to_numpy()[:most]
    return [int(row) for row in rows[order]]
