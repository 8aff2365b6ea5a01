"""Comparisons as scores of an evaluation: win rates, agreement with people, effects of order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.identity import canonical_sha256
from artifacts_schema.kinds import KINDS
from stages.judge.verdicts import Comparison
from stages.scoring.observations import (
    ANSWERS,
    TASKS,
    ItemName,
    Observation,
    empty_table,
    items_table,
    results_table,
)
from stages.scoring.uncertainty import NORMAL_95

if TYPE_CHECKING:
    from stages.engine import Context

WIN_RATE, AGREEMENT, KAPPA = "win_rate", "agreement", "cohen_kappa"
FLIPPED, NO_VERDICT = "changed_with_order", "no_verdict"


def observe(comparisons: Sequence[Comparison]) -> list[Observation]:
    """Of each pair: A's share of the win (or people's choice's, where they are known), whether the
    order decided, and whether there was no verdict."""
    observed = []
    for one in comparisons:
        name = one.pair.benchmark, _item(one)
        worth = one.worth_of_a
        if worth is not None:
            human = one.pair.human
            share = worth if human in (None, "a") else 1 - worth
            metric = WIN_RATE if human is None else AGREEMENT
            observed.append(Observation(*name, metric, share, baseline=0.5))
            observed.append(Observation(*name, FLIPPED, float(one.flipped)))
        observed.append(Observation(*name, NO_VERDICT, float(worth is None)))
    order = {WIN_RATE: 0, AGREEMENT: 0, FLIPPED: 1, NO_VERDICT: 2}
    return sorted(observed, key=lambda one: order[one.metric])


def write_scores(
    context: Context, labelled: Sequence[Comparison], judged: Sequence[Comparison]
) -> None:
    """The evaluation: agreement with people first, then win rates; a prompt is one unit of both."""
    import pyarrow as pa

    clusters: dict[ItemName, str | None] = {
        (one.pair.benchmark, _item(one)): one.pair.cluster for one in (*labelled, *judged)
    }
    observed = [*observe(labelled), *observe(judged)]
    schema = KINDS["evaluation"].tables["results.parquet"].arrow()
    rows = _kappa_rows(labelled) + results_table(observed, None, clusters).to_pylist()
    results = pa.Table.from_pylist(rows, schema=schema)
    context.write_table("evaluation", "results.parquet", results)
    context.write_table("evaluation", "items.parquet", items_table(observed, None, clusters))
    for path in ("choices.parquet", ANSWERS, "generations.parquet"):
        context.write_table("evaluation", path, empty_table(path))
    context.write_json("evaluation", TASKS, [_record(context)])


def _kappa_rows(labelled: Sequence[Comparison]) -> list[dict[str, Any]]:
    rows = []
    for name in dict.fromkeys(one.pair.benchmark for one in labelled):
        measured = agreement([one for one in labelled if one.pair.benchmark == name])
        if measured is not None:
            rows.append(
                {
                    "benchmark": name,
                    "formulation": None,
                    "shots": None,
                    "metric": KAPPA,
                    "value": measured.value,
                    "standard_error": measured.standard_error,
                    "low": measured.low,
                    "high": measured.high,
                    "count": measured.count,
                    "baseline": 0.0,
                }
            )
    return rows


def _record(context: Context) -> dict[str, Any]:
    """Who judged, and by what: scores of another criterion are of another version."""
    config = context.config
    checkpoint = context.maybe("checkpoint")
    judge = config.model if checkpoint is None else f"{checkpoint.stage} {checkpoint.key[:12]}"
    settings = {"criterion": config.criterion, "parameters": config.parameters}
    return {
        "name": f"judge {judge}",
        "version": canonical_sha256(settings)[:12],
        "licence": None,
        "source": judge,
        "formulations": {},
        "chat": False,
        "judge": settings,
    }


def comparison_rows(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Rows of `comparisons.parquet`."""
    return [
        {
            "benchmark": one.pair.benchmark,
            "item_id": one.pair.item_id,
            "sample": one.pair.sample,
            "prompt": one.pair.prompt,
            "a": one.pair.a,
            "b": one.pair.b,
            "outcome": one.outcome,
            "flipped": one.flipped,
            "human": one.pair.human,
        }
        for one in comparisons
    ]


def _item(one: Comparison) -> str:
    return one.pair.item_id if one.pair.sample == 0 else f"{one.pair.item_id}-{one.pair.sample}"


# Agreement with people


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
