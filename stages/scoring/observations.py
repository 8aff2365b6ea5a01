"""What was measured, item by item, and the scores that follow from it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from artifacts_schema.kinds import KINDS
from stages.engine import Input
from stages.scoring.metrics import NATS, PERPLEXITY, SAVED
from stages.scoring.uncertainty import score_interval

ANSWERS, TASKS = "answers.parquet", "tasks.json"
"""Files of an evaluation."""

ItemName = tuple[str, str]
"""(benchmark, item_id)."""


def prompt_digest(prompt: str) -> str:
    """16 hex digits that name a prompt in tables."""
    return hashlib.blake2b(prompt.encode(), digest_size=8).hexdigest()


_SCHEMA = pa.schema(
    [
        ("benchmark", pa.string()),
        ("item_id", pa.string()),
        ("formulation", pa.string()),
        ("shots", pa.int32()),
        ("metric", pa.string()),
        ("numerator", pa.float64()),
        ("denominator", pa.float64()),
        ("baseline", pa.float64()),
    ]
)


class ScoreName(NamedTuple):
    """What names a score: items put to a model in one way, under one metric."""

    benchmark: str
    formulation: str | None
    shots: int | None
    metric: str


@dataclass(frozen=True)
class Observation:
    """One item under one metric: `numerator / denominator` is its value.

    Denominators are 1 for metrics that are means over items, bytes for bits per byte. `baseline` is
    what chance or the unigram model has in the place of the numerator. `formulation` and `shots`
    say how the item was put to the model, None: as its row came.
    """

    benchmark: str
    item_id: str
    metric: str
    numerator: float
    denominator: float = 1.0
    baseline: float | None = None
    formulation: str | None = None
    shots: int | None = None

    @property
    def score(self) -> ScoreName:
        """The score that it is of."""
        return ScoreName(self.benchmark, self.formulation, self.shots, self.metric)


def with_saved_bits(observations: Sequence[Observation]) -> list[Observation]:
    """Observations, and behind each of bits per byte what was saved against its baseline.

    Both are of the same text, so that the share has an interval of its own, which is narrower than
    that of two separate scores.
    """
    saved = []
    for one in observations:
        saved.append(one)
        if one.metric == "bits_per_byte" and one.baseline:
            less = one.baseline - one.numerator
            saved.append(replace(one, metric=SAVED, numerator=less, denominator=one.baseline,
                                 baseline=None))  # fmt: skip
    return saved


def to_table(observations: Iterable[Observation]) -> pa.Table:
    """Observations as a table, for a worker to hand over."""
    return pa.Table.from_pylist([asdict(item) for item in observations], schema=_SCHEMA)


def from_table(table: pa.Table) -> list[Observation]:
    """The inverse of `to_table`."""
    return [Observation(**row) for row in table.to_pylist()]


def results_table(
    observations: Sequence[Observation],
    contaminated: Mapping[ItemName, bool] | None = None,
    clusters: Mapping[ItemName, str | None] | None = None,
) -> pa.Table:
    """A row for each score, in the order of first appearance.

    Value = Σ numerators / Σ denominators, with the standard error of that ratio over items, or over
    their clusters, and a 95 % interval: Wilson's for shares of items, else Student's t.
    Where items are contaminated, a row `<metric>_clean` follows without them; `perplexity` follows
    the nats that it is made of.
    """
    names = clusters or {}
    groups: dict[ScoreName, list[Observation]] = {}
    for item in observations:
        groups.setdefault(item.score, []).append(item)
    rows = []
    for name, group in groups.items():
        rows.append(_result(name, group, names))
        if name.metric == NATS:
            rows.append(_perplexity(rows[-1]))
        if contaminated is not None:
            clean = [i for i in group if not contaminated.get((i.benchmark, i.item_id), False)]
            if 0 < len(clean) < len(group):
                rows.append(_result(name._replace(metric=f"{name.metric}_clean"), clean, names))
    return pa.Table.from_pylist(rows, schema=KINDS["evaluation"].tables["results.parquet"].arrow())


def items_table(
    observations: Sequence[Observation],
    contaminated: Mapping[ItemName, bool] | None = None,
    clusters: Mapping[ItemName, str | None] | None = None,
) -> pa.Table:
    """A row for each observation; `contaminated` is null where nothing is known of the item."""
    rows = [
        {
            "benchmark": item.benchmark,
            "item_id": item.item_id,
            "formulation": item.formulation,
            "shots": item.shots,
            "metric": item.metric,
            "value": item.numerator / item.denominator,
            "weight": item.denominator,
            "cluster": (clusters or {}).get((item.benchmark, item.item_id)),
            "contaminated": (contaminated or {}).get((item.benchmark, item.item_id)),
        }
        for item in observations
    ]
    return pa.Table.from_pylist(rows, schema=KINDS["evaluation"].tables["items.parquet"].arrow())


def _perplexity(nats: dict[str, Any]) -> dict[str, Any]:
    """The row of nats as one of perplexity: ends of its interval too, the error by its slope."""
    values = {
        field: None if nats[field] is None else math.exp(min(nats[field], 700.0))
        for field in ("value", "low", "high")
    }
    error = nats["standard_error"]
    slope = None if error is None else values["value"] * error
    return {**nats, **values, "metric": PERPLEXITY, "standard_error": slope}


def empty_table(path: str) -> pa.Table:
    """A table of an evaluation without rows."""
    return KINDS["evaluation"].tables[path].arrow().empty_table()


def merge_tasks(inputs: Sequence[Input]) -> list[dict[str, Any]]:
    """The tasks of benchmarks or evaluations, by name; empty where rows came without a task.

    InputError for two different tasks of one name: their items would be one score.
    """
    tasks: dict[str, dict[str, Any]] = {}
    for one in inputs:
        for task in one.read_json(TASKS) if one.has(TASKS) else ():
            name, version = task["name"], task["version"]
            if tasks.setdefault(name, task) != task:
                raise InputError(
                    f"two tasks called '{name}' differ: version {tasks[name]['version']}, and "
                    f"version {version} of {one.stage} {short(one.key)}",
                    where="tasks",
                    hint="make both benchmarks from one version of the task, or evaluate apart",
                )
    return [tasks[name] for name in sorted(tasks)]


def _result(
    name: ScoreName,
    group: Sequence[Observation],
    names: Mapping[ItemName, str | None],
) -> dict[str, Any]:
    clusters = [names.get((item.benchmark, item.item_id)) for item in group]
    numerators = [item.numerator for item in group]
    denominators = [item.denominator for item in group]
    estimate, ends = score_interval(numerators, denominators, clusters)
    low, high = ends or (None, None)
    baselines = [item.baseline for item in group if item.baseline is not None]
    known = len(baselines) == len(group)
    return {
        **name._asdict(),
        "value": estimate.value,
        "standard_error": estimate.standard_error,
        "low": low,
        "high": high,
        "count": round(sum(denominators)),
        "baseline": sum(baselines) / sum(denominators) if known else None,
    }
