"""Scores of `long_context` items by length of the context and depth of the needle.

Length, depth and family are in the metadata of the items, so the benchmarks that were measured
must still be in the store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stages.engine.page import Artifact, Figure, MatrixFigure, make_table

if TYPE_CHECKING:
    import pyarrow as pa

METRICS = {
    "accuracy": "right answer ranked first among wrong ones",
    "string_match_all": "right answers that the written text holds",
    "string_match_part": "a right answer that the written text holds",
}
"""Metrics that are drawn, and what their value is the share of."""
NOTE = (
    "Rows: per cent of the haystack before the needle. Columns: tokens of prompt and answer. All "
    "families with one needle together; values and intervals are in the table below."
)

Name = tuple[str, str]
Values = dict[tuple[Any, Any], list[float]]


def figures(artifact: Artifact, items: pa.Table) -> list[Figure]:
    """A picture length × depth and its table for each way to measure, then families by length."""
    facts = read_facts(artifact)
    figures: list[Figure] = []
    for metric, meaning in METRICS.items():
        by_depth: Values = {}
        by_family: Values = {}
        for row in items.to_pylist():
            fact = facts.get((row["benchmark"], row["item_id"]))
            if fact is None or row["metric"] != metric:
                continue
            by_family.setdefault((fact["family"], fact["length"]), []).append(row["value"])
            if fact["depth"] is not None:
                by_depth.setdefault((fact["depth"], fact["length"]), []).append(row["value"])
        if by_depth:
            title = f"Needles by length and depth: {meaning}"
            figures += [_matrix(title, by_depth, NOTE), _table(title, by_depth)]
        if by_family:
            title = f"Families of long context: {meaning}"
            note = "Columns: tokens of prompt and answer; intervals are in the table below."
            figures += [_matrix(title, by_family, note), _table(title, by_family, "family")]
    return figures


def read_facts(artifact: Artifact) -> dict[Name, Mapping[str, Any]]:
    """Length, depth and family of each item that `long_context` made.

    A `score` has the benchmarks of the evaluation that it was made of.
    """
    from stages.engine.tally import available_inputs
    from stages.evaluate.extremes import measuring

    facts = {}
    for source in available_inputs(measuring(artifact), "benchmarks"):
        if source.stage != "long_context":
            continue
        for shard in source.shards():
            for row in shard.read(["benchmark", "item_id", "metadata"]).to_pylist():
                facts[row["benchmark"], row["item_id"]] = json.loads(row["metadata"])
    return facts


def _matrix(title: str, values: Values, note: str) -> MatrixFigure:
    rows, columns = (sorted({place[axis] for place in values}) for axis in (0, 1))
    means = tuple(tuple(_mean(values.get((row, column))) for column in columns) for row in rows)
    return MatrixFigure(
        title,
        tuple(row if isinstance(row, str) else f"{row:g} %" for row in rows),
        tuple(f"{column:,}" for column in columns),
        means,
        ".2f",
        note,
    )


def _mean(values: Sequence[float] | None) -> float | None:
    return sum(values) / len(values) if values else None


def _table(title: str, values: Values, rows: str = "depth, %") -> Figure:
    """The same with intervals: Wilson's for shares of items, Student's for parts of answers."""
    from stages.evaluate.figures import interval_text
    from stages.scoring.uncertainty import score_interval

    cells = []
    for (row, length), held in sorted(values.items(), key=lambda one: one[0][::-1]):
        estimate, ends = score_interval(held, [1.0] * len(held))
        name = row if isinstance(row, str) else f"{row:g}"
        cells.append(
            (length, name, estimate.value, interval_text(*(ends or (None, None))), len(held))
        )
    return make_table(title, f"length:, | {rows} | share:.3f | 95 % interval: | n:,", cells)
