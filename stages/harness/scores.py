"""Results and samples of lm-eval as scores of an evaluation.

A sample (a row of the data under one filter) becomes an item, named by the hash that lm-eval makes
of the row, so that runs of other models, limits and machines pair item by item. Metrics that are
means over rows get Ingot's intervals; those that only the whole has (perplexity, F1, BLEU) keep
lm-eval's value and standard error.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import KINDS
from stages.scoring.observations import (
    ANSWERS,
    TASKS,
    Observation,
    empty_table,
    items_table,
    results_table,
)
from stages.scoring.uncertainty import Estimate, share_interval, student_interval

if TYPE_CHECKING:
    from stages.engine import Context

NAMES = {
    "acc": "accuracy",
    "acc_norm": "accuracy_by_characters",
    "acc_bytes": "accuracy_by_bytes",
    "acc_mutual_info": "accuracy_by_pmi",
}
"""lm-eval's metrics that Ingot has under another name; see `stages.scoring.metrics`."""
SHARES = (*NAMES, "exact_match")
"""Metrics that are certainly means of 0 and 1 over rows."""
PAIRS = ("word_perplexity", "byte_perplexity", "bits_per_byte")
"""Metrics whose samples are (log-likelihood, words or bytes)."""
OTHERS = ("perplexity", "f1", "mcc", "brier_score", "likelihood", "bleu", "chrf", "ter", "bypass")
"""Metrics that are no mean of their samples."""


@dataclass(frozen=True)
class Score:
    """A result of a task: lm-eval's value, its standard error, and whether more is better."""

    metric: str
    """With the filter behind a slash, where it is not `none`."""
    value: float
    standard_error: float | None
    higher_is_better: bool | None


@dataclass(frozen=True)
class TaskScores:
    """What was measured of one task; `record` is its entry in tasks.json."""

    task: str
    shots: int | None
    count: int
    scores: tuple[Score, ...]
    observed: tuple[Observation, ...]
    record: dict[str, Any] = field(default_factory=dict)


def metric_name(metric: str, filter_name: str) -> str:
    """`acc` → `accuracy`, `exact_match` of a filter → `exact_match/strict-match`."""
    name = NAMES.get(metric, metric)
    return name if filter_name == "none" else f"{name}/{filter_name}"


def read_scores(results: Mapping[str, Any], better: Mapping[str, Any]) -> list[Score]:
    """The entries `METRIC,FILTER` of a task's results, each with `METRIC_stderr,FILTER`."""
    scores = []
    for key, value in results.items():
        metric, comma, filter_name = key.partition(",")
        if not comma or metric.endswith("_stderr") or not _is_number(value):
            continue
        error: Any = results.get(f"{metric}_stderr,{filter_name}")
        scores.append(
            Score(
                metric_name(metric, filter_name),
                float(value),
                float(error) if _is_number(error) else None,
                better.get(metric) if isinstance(better.get(metric), bool) else None,
            )
        )
    return scores


def observe(
    task: str, shots: int | None, samples: Iterable[Mapping[str, Any]], scores: Sequence[Score]
) -> list[Observation]:
    """Items of samples as lm-eval logs them. InputError for samples that are not of these results:
    accuracies must have their mean."""
    observed: list[Observation] = []
    seen: Counter[tuple[str, str]] = Counter()
    for sample in samples:
        filter_name, digest = str(sample.get("filter", "none")), str(sample["doc_hash"])[:16]
        seen[digest, filter_name] += 1
        repeat = seen[digest, filter_name]
        item_id = digest if repeat == 1 else f"{digest}-{repeat}"
        metrics = [str(one) for one in sample.get("metrics", ())]
        chance = _chance(sample, metrics)
        for metric in metrics:
            value: Any = sample.get(metric)
            name = metric_name(metric, filter_name)
            if metric == "bits_per_byte" and _is_pair(value):
                numerator, denominator = -float(value[0]) / math.log(2), float(value[1])
                baseline = None
            elif metric not in (*PAIRS, *OTHERS) and _is_number(value):
                numerator, denominator = float(value), 1.0
                baseline = chance if metric in NAMES else None
            else:
                continue
            observed.append(
                Observation(task, item_id, name, numerator, denominator, baseline, shots=shots)
            )
    return _agreeing(task, observed, scores)


def _agreeing(
    task: str, observed: Sequence[Observation], scores: Sequence[Score]
) -> list[Observation]:
    """Those of metrics whose mean is the value of the results; others have an aggregation of their
    own, and InputError for accuracies, which have none."""
    values = {one.metric: one.value for one in scores}
    sums: dict[str, list[float]] = {}
    for one in observed:
        total = sums.setdefault(one.metric, [0.0, 0.0])
        total[0] += one.numerator
        total[1] += one.denominator
    shares = {NAMES.get(metric, metric) for metric in SHARES}
    kept = set()
    for metric, (numerator, denominator) in sums.items():
        mean = numerator / denominator
        if metric not in values or math.isclose(mean, values[metric], rel_tol=1e-6, abs_tol=1e-9):
            kept.add(metric)
        elif metric.partition("/")[0] in shares:
            raise InputError(
                f"{metric} of the samples is {mean:.6f}, that of the results {values[metric]:.6f}",
                where=f"task {task}",
                hint="take results and samples of one run, and all of its samples",
            )
    return [one for one in observed if one.metric in kept]


def _chance(sample: Mapping[str, Any], metrics: Sequence[str]) -> float | None:
    """One over the choices, each of which is a request; asked twice for mutual information."""
    requests = len(sample.get("arguments", ()))
    choices = requests // 2 if "acc_mutual_info" in metrics else requests
    return 1 / choices if choices > 1 else None


def write_evaluation(context: Context, tasks: Sequence[TaskScores]) -> None:
    """The evaluation: results, items, and a record of each task; what lm-eval has none of is empty.

    InputError for scores of nothing.
    """
    import pyarrow as pa

    observed = [one for task in tasks for one in task.observed]
    results = results_table(observed)
    measured = {one.score for one in observed}
    more = [
        _result(task, score)
        for task in tasks
        for score in task.scores
        if (task.task, None, task.shots, score.metric) not in measured
    ]
    if not observed and not more:
        raise InputError("no task has a score", where="harness")
    schema = KINDS["evaluation"].tables["results.parquet"].arrow()
    table = pa.concat_tables([results, pa.Table.from_pylist(more, schema=schema)])
    context.write_table("evaluation", "results.parquet", table)
    context.write_table("evaluation", "items.parquet", items_table(observed))
    for path in ("choices.parquet", ANSWERS, "generations.parquet"):
        context.write_table("evaluation", path, empty_table(path))
    records = sorted((task.record for task in tasks), key=lambda one: str(one["name"]))
    context.write_json("evaluation", TASKS, records)
    context.count(tasks=len(tasks), scores=table.num_rows, observations=len(observed))


def _result(task: TaskScores, score: Score) -> dict[str, Any]:
    """A row of `results.parquet` by lm-eval's own figures; a share has Wilson's interval."""
    hits = score.value * task.count
    share = score.metric.partition("/")[0] in {NAMES.get(one, one) for one in SHARES}
    # A group's mean over tasks is no share of its rows.
    share &= task.record.get("harness", {}).get("weighted_by", {}).get(score.metric) != "tasks"
    ends: tuple[float, float] | None
    if share and task.count and abs(hits - round(hits)) < 1e-6 * task.count:
        right = round(hits)
        ends = share_interval([1.0] * right + [0.0] * (task.count - right))
    else:
        ends = student_interval(Estimate(score.value, score.standard_error))
    low, high = ends or (None, None)
    return {
        "benchmark": task.task,
        "formulation": None,
        "shots": task.shots,
        "metric": score.metric,
        "value": score.value,
        "standard_error": score.standard_error,
        "low": low,
        "high": high,
        "count": task.count,
        "baseline": None,
    }


def make_record(
    task: str,
    version: str,
    scores: Sequence[Score],
    *,
    harness: str,
    model: str | None,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """A task's entry in tasks.json: the fields that all tasks have, and what lm-eval says of it."""
    return {
        "name": task,
        "version": version,
        "licence": None,
        "source": f"lm-evaluation-harness {harness}",
        "formulations": {},
        "chat": bool(settings.get("chat")),
        "harness": {
            "version": harness,
            "model": model,
            "higher_is_better": {one.metric: one.higher_is_better for one in scores},
            **settings,
        },
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(map(_is_number, value))
        and value[1] > 0
    )
