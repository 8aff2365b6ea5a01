"""What two evaluations have besides items: versions of tasks, and scores without items.

Results of published models often come without their samples. Such a score is compared as that of
two independent samples, whose interval is wider than a paired one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input
from stages.scoring.differences import PairedDifference
from stages.scoring.observations import TASKS, ScoreName
from stages.scoring.uncertainty import NORMAL_95

KIND = "evaluation"
RESULTS = "results.parquet"


def evaluation_of(store: Store, manifest: Manifest) -> Input:
    """The evaluation among the outputs of a manifest that has one."""
    names = (name for name, output in manifest.outputs.items() if output.kind == KIND)
    return Input.from_manifest(store, manifest, next(names))


def check_task_versions(store: Store, a: Manifest, b: Manifest) -> None:
    """UsageError where both have a task of one name in two versions: its items are not the same."""
    before, after = (_versions(evaluation_of(store, one)) for one in (a, b))
    differing = [
        f"{name} ({before[name]} and {after[name]})"
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    ]
    if differing:
        raise UsageError(
            f"tasks are of two versions: {', '.join(differing)[:500]}",
            where=f"{short(a.key)} and {short(b.key)}",
            hint="measure both with one version of the task",
        )


def _versions(evaluation: Input) -> dict[str, str]:
    tasks = evaluation.read_json(TASKS) if evaluation.has(TASKS) else []
    return {task["name"]: str(task["version"]) for task in tasks}


def independent_differences(
    store: Store, a: Manifest, b: Manifest, paired: Collection[ScoreName]
) -> Iterator[tuple[ScoreName, PairedDifference]]:
    """Scores that both have, of which one has no items; in B's order, without those in `paired`."""
    before = dict(_results(evaluation_of(store, a)))
    for name, row in _results(evaluation_of(store, b)):
        if name in before and name not in paired and not name.metric.endswith("_clean"):
            yield name, independent_difference(before[name], row)


def _results(evaluation: Input) -> Iterator[tuple[ScoreName, dict[str, Any]]]:
    for row in evaluation.read_table(RESULTS).to_pylist():
        yield ScoreName(*(row[field] for field in ScoreName._fields)), row


def independent_difference(a: dict[str, Any], b: dict[str, Any]) -> PairedDifference:
    """B − A of two independent scores: their errors add in squares, and p is the normal's.

    Without a standard error of both there is a difference and nothing else.
    """
    value, count = b["value"] - a["value"], min(a["count"], b["count"])
    errors = a["standard_error"], b["standard_error"]
    if errors[0] is None or errors[1] is None:
        return PairedDifference(count, count, a["value"], b["value"], value, None, None, None, None)
    error = math.hypot(errors[0], errors[1])
    width = NORMAL_95 * error
    if error == 0:
        p = 1.0 if value == 0 else 0.0
    else:
        p = math.erfc(abs(value) / error / math.sqrt(2))
    return PairedDifference(
        count, count, a["value"], b["value"], value, error, value - width, value + width, p
    )
