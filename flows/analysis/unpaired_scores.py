"""Scores that two evaluations have, one of them without items.

Results of published models often come without their samples. Such a score is compared as that of
two independent samples, whose interval is wider than a paired one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input
from stages.scoring.differences import PairedDifference, UnpairedScore, unpaired_difference
from stages.scoring.observations import ScoreName

KIND = "evaluation"
RESULTS = "results.parquet"


def evaluation_of(store: Store, manifest: Manifest) -> Input:
    """The evaluation among the outputs of a manifest that has one."""
    names = (name for name, output in manifest.outputs.items() if output.kind == KIND)
    return Input.from_manifest(store, manifest, next(names))


def independent_differences(
    store: Store, a: Manifest, b: Manifest, paired: Collection[ScoreName]
) -> Iterator[tuple[ScoreName, PairedDifference]]:
    """Scores that both have, of which one has no items; in B's order, without those in `paired`."""
    before = dict(_results(evaluation_of(store, a)))
    for name, row in _results(evaluation_of(store, b)):
        if name in before and name not in paired and not name.metric.endswith("_clean"):
            yield name, unpaired_difference(score_of(before[name]), score_of(row))


def _results(evaluation: Input) -> Iterator[tuple[ScoreName, dict[str, Any]]]:
    for row in evaluation.read_table(RESULTS).to_pylist():
        yield ScoreName(*(row[field] for field in ScoreName._fields)), row


def score_of(row: dict[str, Any]) -> UnpairedScore:
    """A row of `results.parquet`."""
    ends = None if row["low"] is None or row["high"] is None else (row["low"], row["high"])
    return UnpairedScore(row["value"], row["standard_error"], row["count"], ends)
