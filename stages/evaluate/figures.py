"""Scores with intervals, how bits per byte are spread over items, and generated texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stages.engine.page import (
    Axis,
    Cell,
    Estimate,
    Figure,
    IntervalFigure,
    Sample,
    SamplesFigure,
    make_histogram,
)
from stages.scoring.metrics import SAVED, row_label

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]

PLANTED, HELD_OUT = "planted/", "held_out/"
CLEAN = "_clean"

HELD_OUT_MEASURE = (
    "`held_out/…` is the held-out text of a source, evenly spaced sequences up to "
    "`max_held_out_tokens`, in float32. A training run measures other sequences "
    "(`max_held_out_sequences`), so its numbers differ."
)
"""Why an evaluation and a training run give different numbers for one model and one source."""

SIMPLER = {
    "accuracy_ngram": "n-gram model",
    "accuracy_unigram": "token frequencies",
    "accuracy_shortest": "shortest choice",
}
"""Metrics of simpler judges on the same items, which are marks in the figure of accuracy."""

NAMED = 8
"""Scores named in a sentence."""

LEAST_FOR_BINS, BINS, GROUPS = 30, 24, 8
"""Items that a group needs to be drawn, bins, and groups drawn at most."""


def score_figures(scores: Sequence[Row]) -> list[Figure]:
    """Estimates with their intervals: a figure for accuracies, one for bits, one for each other."""
    groups: dict[str, list[Row]] = {}
    for row in scores:
        groups.setdefault(family(row["metric"]), []).append(row)
    return [figure for name, rows in groups.items() for figure in _intervals(name, rows)]


def family(metric: str) -> str:
    """What a metric is measured in: metrics of one family share an axis."""
    metric = metric.removesuffix(CLEAN)
    if metric == "accuracy_above_ngram":
        return "accuracy above an n-gram model"
    if metric.startswith("accuracy"):
        return "accuracy"
    return "bits per byte" if metric.endswith("bits_per_byte") else metric.replace("_", " ")


def _intervals(name: str, rows: Sequence[Row]) -> list[Figure]:
    usual = name.replace(" ", "_")
    estimates, broken = [], []
    marks = _simpler_judges(rows)
    for row in rows:
        label, suffix = _label(row, usual), _suffix(row)
        if row["metric"].removesuffix(suffix) in SIMPLER:
            continue
        if not math.isfinite(row["value"]):
            broken.append(label)
            continue
        low, high, baseline = (_finite(row[end]) for end in ("low", "high", "baseline"))
        is_usual = row["metric"].removesuffix(suffix) == "accuracy"
        simpler = tuple(marks.get((row_label(row), suffix), ())) if is_usual else ()
        estimates.append(Estimate(label, row["value"], low, high, baseline, row["count"], simpler))
    if not estimates:
        return []
    note = {
        "accuracy": "Wilson's interval of a share of items; the baseline is chance. Marks, where "
        "measured, are what an n-gram model, token frequencies and the shortest choice get on the "
        "same items.",
        "accuracy above an n-gram model": "Difference by item, with Student's t.",
        "bits per byte": f"Student's t over documents, lower is better; the baseline is the "
        f"token-unigram model, n counts bytes. {HELD_OUT_MEASURE}",
    }.get(name, "Student's t over items.")
    if any(row["metric"].endswith(CLEAN) for row in rows):
        note += f" `{CLEAN}`: without items that the kept corpus holds an n-gram of."
    if broken:
        note += f" Not finite and not drawn: {', '.join(broken)}."
    title = f"{name[:1].upper()}{name[1:]} with 95 % intervals"
    return [IntervalFigure(title, Axis(name, format=".3f"), tuple(estimates), note)]


def _suffix(row: Row) -> str:
    return CLEAN if row["metric"].endswith(CLEAN) else ""


def _simpler_judges(rows: Sequence[Row]) -> dict[tuple[str, str], list[tuple[str, float]]]:
    """What simpler judges get, by benchmark, and of clean items apart."""
    marks: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for row in rows:
        suffix = _suffix(row)
        name = SIMPLER.get(row["metric"].removesuffix(suffix))
        if name and math.isfinite(row["value"]):
            marks.setdefault((row_label(row), suffix), []).append((name, row["value"]))
    return marks


def interval_text(low: float | None, high: float | None) -> Cell:
    """An interval as a table shows it; None without one."""
    return None if low is None or high is None else f"{low:.3f}–{high:.3f}"


def doubtful_intervals(items: pa.Table) -> str:
    """A sentence on scores whose intervals may be too narrow; empty without any."""
    from stages.scoring.uncertainty import doubt_of_interval

    groups: dict[tuple[str, str], tuple[list[float], list[str | None]]] = {}
    columns = ["benchmark", "metric", "value", "cluster"]
    columns += [name for name in ("formulation", "shots") if name in items.column_names]
    for row in items.select(columns).to_pylist():
        if row["benchmark"].startswith(PLANTED) or row["metric"] == SAVED:
            continue  # Counts of the first are shown; the second has the units of bits per byte.
        values, clusters = groups.setdefault((row_label(row), row["metric"]), ([], []))
        values.append(row["value"])
        clusters.append(row["cluster"])
    doubts = [
        f"{name} {metric} ({doubt})"
        for (name, metric), (values, clusters) in groups.items()
        if (doubt := doubt_of_interval(values, clusters))
    ]
    if not doubts:
        return ""
    more = f" and {len(doubts) - NAMED} others" if len(doubts) > NAMED else ""
    return f"Intervals that may be too narrow, or are none: {', '.join(doubts[:NAMED])}{more}."


def spread(items: pa.Table) -> list[Figure]:
    """Bits per byte item by item, of the groups that are large enough for a picture."""
    import numpy as np
    import pyarrow.compute as pc

    bits = with_names(finite_bits(items))
    sizes = bits.group_by(["name", "metric"]).aggregate([([], "count_all")])
    ranked = sizes.sort_by([("count_all", "descending"), ("name", "ascending")]).to_pylist()
    large = [group for group in ranked if group["count_all"] >= LEAST_FOR_BINS][:GROUPS]
    if not large:
        return []
    values = {
        _label({**group, "benchmark": group["name"]}, "bits_per_byte"): bits.filter(
            pc.and_(
                pc.equal(bits["name"], group["name"]),
                pc.equal(bits["metric"], group["metric"]),
            )
        )["value"].to_numpy()
        for group in large
    }
    together = np.concatenate(list(values.values()))
    edges = np.histogram_bin_edges(together, BINS)
    note = f"Of {', '.join(values)}: the largest groups, of at least {LEAST_FOR_BINS} items each."
    return [
        make_histogram(
            "Bits per byte, item by item",
            "bits per byte:.2f",
            edges.tolist(),
            {name: np.histogram(bits, edges)[0].tolist() for name, bits in values.items()},
            count="items",
            note=note,
        )
    ]


def generations(rows: Sequence[Row], temperature: float) -> list[Figure]:
    """What the model wrote, prompt first; answers to questions apart by their benchmark."""
    samples = tuple(
        Sample(
            row.get("benchmark") or row["form"],
            f"{row['form']} {place}",
            f"{row['prompt']}▸{row['completion']}",
            (("characters written", len(row["completion"])),),
        )
        for place, row in enumerate(rows, start=1)
    )
    if not samples:
        return []
    note = f"Drawn at temperature {temperature:g}; ▸ stands where the model took over."
    if any(row.get("benchmark") for row in rows):
        note += " Of questions, the first ones by seed, not chosen."
    return [SamplesFigure("Generated texts", samples, note)]


def finite_bits(items: pa.Table) -> pa.Table:
    """Rows in bits per byte whose value is finite."""
    import pyarrow.compute as pc

    finite = pc.is_finite(items["value"])
    return items.filter(pc.and_(finite, pc.ends_with(items["metric"], "bits_per_byte")))


def with_names(items: pa.Table) -> pa.Table:
    """`items` with a column `name`: the benchmark, and how its items were put to the model."""
    import pyarrow as pa

    columns = [c for c in ("benchmark", "formulation", "shots") if c in items.column_names]
    names = [row_label(row) for row in items.select(columns).to_pylist()]
    return items.append_column("name", pa.array(names, pa.string()))


def _label(row: Row, usual: str) -> str:
    """Benchmark, and metric where it is not the usual one of a figure."""
    name = row_label(row)
    return name if row["metric"] == usual else f"{name} · {row['metric']}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def cell(value: float | None) -> Cell:
    """A number as a table shows it, one that is not finite in words."""
    return value if value is None or math.isfinite(value) else "not finite"
