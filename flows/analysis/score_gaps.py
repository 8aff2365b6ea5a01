"""One evaluation by parts of its items, as languages or functional tests, and gaps between them.

Parts are the values of a field of the items' metadata, or benchmarks that differ in a part of their
name (`belebele_*`). Parts whose items have the same names are translations of each other: their gap
is paired by item. Else they are independent samples. Many gaps are looked at together, so p values
are adjusted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.score_comparison import read_items
from flows.analysis.unpaired_scores import evaluation_of, score_of
from stages.engine.inputs import Input
from stages.scoring.differences import (
    LEVEL,
    PairedDifference,
    adjust,
    paired_difference,
    unpaired_difference,
)
from stages.scoring.metrics import label
from stages.scoring.observations import Observation, results_table

BENCHMARK = "benchmark"
"""In the place of a field: the part of a benchmark's name that the pattern leaves open."""
REST = "the rest"

Item = tuple[float, float, str | None]
"""Value, weight and cluster."""


@dataclass(frozen=True)
class ScorePart:
    """A part of a score. `gap` is its difference to the reference, whose value is `gap.a`."""

    score: str
    """Its benchmark, and how its items were put to the model."""
    part: str
    value: float
    low: float | None
    high: float | None
    count: int
    gap: PairedDifference | None = None
    """None of the reference itself."""
    by_item: bool = False
    adjusted: float | None = None
    lower_is_better: bool = False

    @property
    def reading(self) -> str:
        """`ahead`, `behind`, `no gap seen`, or `reference`."""
        if self.gap is None:
            return "reference"
        note = "" if self.by_item else ", not paired"
        if self.adjusted is None or self.adjusted >= LEVEL:
            return f"no gap seen{note}"
        ahead = (self.gap.value < 0) == self.lower_is_better
        return f"{'ahead' if ahead else 'behind'}{note}"

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "reading": self.reading}


def score_parts(
    store: Store,
    manifest: Manifest,
    field: str,
    *,
    benchmarks: str = "*",
    metric: str = "accuracy",
    reference: str | None = None,
) -> list[ScorePart]:
    """Parts of each score of an evaluation, against the part `reference`, or each against the rest.

    UsageError for a metric, benchmark, field or reference that there is not.
    """
    scores: dict[str, dict[str, dict[str, Item]]] = {}
    for score, part, item_id, item in _items(store, manifest, field, benchmarks, metric):
        scores.setdefault(score, {}).setdefault(part, {})[item_id] = item
    known = {part for parts in scores.values() for part in parts}
    if reference is not None and reference not in known:
        raise UsageError(
            f"no part '{reference}'{did_you_mean(reference, known)}",
            where="reference",
            hint=f"parts: {', '.join(sorted(known))[:500]}",
        )
    lower = "bits_per_byte" in metric
    made = [
        replace(one, lower_is_better=lower)
        for score, parts in scores.items()
        for one in _parts(score, parts, reference)
    ]
    tested = iter(adjust([p for one in made if (p := _p(one)) is not None]))
    return [one if _p(one) is None else replace(one, adjusted=next(tested)) for one in made]


def _p(one: ScorePart) -> float | None:
    return None if one.gap is None else one.gap.p


def _items(
    store: Store, manifest: Manifest, field: str, pattern: str, metric: str
) -> Iterator[tuple[str, str, str, Item]]:
    """Score, part, item's name and the item, of one metric."""
    groups = read_items(store, manifest)
    metrics = {name.metric for name in groups}
    if metric not in metrics:
        raise UsageError(
            f"the evaluation has no items of '{metric}'{did_you_mean(metric, metrics)}",
            where="metric",
            hint=f"metrics: {', '.join(sorted(metrics))[:500]}",
        )
    chosen = {
        name: items
        for name, items in groups.items()
        if name.metric == metric and fnmatchcase(name.benchmark, pattern)
    }
    if not chosen:
        raise UsageError(f"no benchmark is named like '{pattern}'", where="benchmark")
    if field == BENCHMARK:
        for name, items in chosen.items():
            score = label(pattern, name.formulation, name.shots)
            for item_id, item in items.items():
                yield score, _open_part(name.benchmark, pattern), item_id, item
        return
    values = _read_field(store, manifest, field)
    for name, items in chosen.items():
        score = label(name.benchmark, name.formulation, name.shots)
        for item_id, item in items.items():
            if (value := values.get((name.benchmark, item_id))) is not None:
                yield score, value, item_id, item


def _open_part(name: str, pattern: str) -> str:
    """What `*` stands for in the name, where the pattern has one; else the name."""
    before, star, after = pattern.partition("*")
    if not star or any(sign in before + after for sign in "*?["):
        return name
    return name[len(before) : len(name) - len(after)] or name


def _read_field(store: Store, manifest: Manifest, field: str) -> dict[tuple[str, str], str]:
    """The field of every item's metadata, in the benchmarks that the evaluation was made of."""
    values: dict[tuple[str, str], str] = {}
    fields: set[str] = set()
    for made in evaluation_of(store, manifest).lineage():
        for name in (name for name, one in made.outputs.items() if one.kind == "benchmarks"):
            for shard in Input.from_manifest(store, made, name).shards():
                for row in shard.read(["benchmark", "item_id", "metadata"]).to_pylist():
                    metadata = json.loads(row["metadata"])
                    fields |= metadata.keys()
                    if metadata.get(field) is not None:
                        value = metadata[field]
                        text = value if isinstance(value, str) else json.dumps(value)
                        values[row["benchmark"], row["item_id"]] = text
    if not values:
        raise UsageError(
            f"no item's metadata has '{field}'{did_you_mean(field, fields)}",
            where="by",
            hint=f"fields: {', '.join(sorted(fields))[:500] or 'none'}; or `{BENCHMARK}`",
        )
    return values


def _parts(
    score: str, parts: Mapping[str, Mapping[str, Item]], reference: str | None
) -> Iterator[ScorePart]:
    """The reference first, then the others by their names."""
    if reference is not None and reference not in parts:
        return
    order = sorted(parts, key=lambda part: (part != reference, part))
    for part in order:
        own = _result(score, part, list(parts[part].values()))
        if part == reference:
            yield _score_part(score, part, own)
            continue
        if reference is not None:
            other = dict(parts[reference])
        else:
            other = {
                f"{name}/{item_id}": item
                for name, items in parts.items()
                if name != part
                for item_id, item in items.items()
            }
        if not other:
            yield _score_part(score, part, own)
            continue
        shared = [name for name in parts[part] if name in other]
        by_item = len(shared) == len(parts[part])
        if by_item:
            mine = [parts[part][name] for name in shared]
            gap = paired_difference(
                [other[name][0] for name in shared],
                [item[0] for item in mine],
                [1.0] * len(mine) if all(i[1] == 1 for i in mine) else [i[1] for i in mine],
                [item[2] for item in mine],
            )
        else:
            rest = _result(score, REST, list(other.values()))
            gap = unpaired_difference(score_of(rest), score_of(own))
        yield replace(_score_part(score, part, own), gap=gap, by_item=by_item)


def _result(score: str, part: str, items: Sequence[Item]) -> dict[str, Any]:
    """Value, error and interval of some items, as an evaluation has them."""
    observed = [
        Observation(part, str(number), score, value * weight, weight)
        for number, (value, weight, _) in enumerate(items)
    ]
    clusters = {(part, str(number)): item[2] for number, item in enumerate(items)}
    rows: list[dict[str, Any]] = results_table(observed, None, clusters).to_pylist()
    return rows[0]


def _score_part(score: str, part: str, row: Mapping[str, Any]) -> ScorePart:
    return ScorePart(score, part, row["value"], row["low"], row["high"], row["count"])
