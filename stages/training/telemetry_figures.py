"""What a report shows of events, telemetry, alerts and pre-flight; nothing where there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from artifacts_schema.store import layout
from stages.engine.events import EVENTS_FILE, TELEMETRY_FOLDER
from stages.engine.page import Axis, Column, CurveFigure, Figure, Series, TableFigure, number

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.engine.page import Artifact
    from stages.training.figures import TrainingRun


POINTS = 2_000
"""Rows that are drawn at most, evenly chosen."""
EVENTS, PREFLIGHT = "events.parquet", "preflight.json"
MOST_EVENTS = 200
MOST_RANKS = 16
"""Ranks that have a row of their own; of more, least, median and most."""
_OF_RANK = {"work": "work", "exposed": "waiting", "hidden": "collectives behind work"}

_CURVES = (
    ("Model FLOPs utilisation", Axis("MFU", format=".1%"), {"mfu": "MFU"}),
    (
        "Memory, GB",
        Axis("GB", format=",.2f"),
        {
            "process_bytes": "process",
            "device_bytes": "GPU",
            "device_peak_bytes": "GPU, the most of it",
        },
    ),
    ("GPU temperature", Axis("°C", format=",.0f"), {"temperature": "temperature"}),
    ("GPU clock", Axis("MHz", format=",.0f"), {"clock_mhz": "multiprocessors"}),
    ("GPU power", Axis("W", format=",.0f"), {"power_watts": "power"}),
)
_SPENT = {
    "step_seconds": "training steps",
    "data_seconds": "waiting for data, and the rest",
    "held_out_seconds": "held-out losses",
    "checkpoint_seconds": "standing still for checkpoints",
}


def telemetry_figures(run: TrainingRun) -> list[Figure]:
    """Events, where the time went, curves of utilisation, memory and GPU, alerts, pre-flight."""
    rows = _rows(run.artifact)
    results: list[Figure] = [*events(run)]
    if rows is not None and rows.num_rows:
        results += [time_spent(rows), *curves(rows, run)]
    results += rank_figures(run.artifact)
    return [*results, *alerts(run.artifact), *preflight(run.artifact)]


def events(run: TrainingRun) -> list[Figure]:
    """What the run met and did about it: spikes, skipped updates, rollbacks."""
    if not run.output.has(EVENTS):
        return []
    entries = run.output.read_table(EVENTS).to_pylist()
    rows = tuple(
        (
            one["training_step"],
            one["tokens"],
            one["kind"].replace("_", " "),
            _format_details(one["details"]),
        )
        for one in entries[:MOST_EVENTS]
    )
    more = len(entries) - len(rows)
    note = f"The first {MOST_EVENTS:,} of {len(entries):,}." if more else ""
    columns = (number("training step"), number("tokens"), Column("event"), Column("details"))
    return [TableFigure("Events", columns, rows, note)] if rows else []


def time_spent(rows: pa.Table) -> TableFigure:
    """Seconds by what they were spent on, over all starts of the run."""
    import pyarrow.compute as pc

    total = pc.sum(rows["seconds"]).as_py()
    parts = {text: pc.sum(rows[name]).as_py() for name, text in _SPENT.items()}
    starts = pc.max(rows["session"]).as_py() + 1
    again = "" if starts == 1 else f" in {starts:,} starts, steps that were done twice included"
    return TableFigure(
        "Where the time went",
        (Column("on"), number("seconds", ",.1f"), number("share", ".1%")),
        tuple((text, value, value / total if total else 0.0) for text, value in parts.items()),
        f"{total:,.1f} seconds{again}.",
    )


def curves(rows: pa.Table, run: TrainingRun) -> Iterator[CurveFigure]:
    """One figure for each quantity that was measured."""
    thinned = rows.take(list(range(0, rows.num_rows, -(-rows.num_rows // POINTS))))
    x = tuple(float(value) for value in thinned[run.axis_column].to_pylist())
    for title, axis, names in _CURVES:
        scale = 1e-9 if axis.label == "GB" else 1.0
        measured = {text: thinned[name].to_pylist() for name, text in names.items()}
        series = [
            Series(text, x, tuple(None if v is None else v * scale for v in values))
            for text, values in measured.items()
            if any(value is not None for value in values)
        ]
        if series:
            yield CurveFigure(title, run.axis, axis, tuple(series), run.marks)


def alerts(artifact: Artifact) -> list[Figure]:
    """What people were told while the run went on."""
    entries = [
        (event.get("training_step"), event.get("kind"), event.get("text"))
        for event in _alerts(artifact)
    ]
    if not entries:
        return []
    columns = (number("training step"), Column("alert"), Column("what was said"))
    return [TableFigure("Alerts", columns, tuple(entries))]


def preflight(artifact: Artifact) -> list[Figure]:
    """What was found before the first step."""
    content = _read(artifact, PREFLIGHT)
    if content is None:
        return []
    report: Mapping[str, Any] = json.loads(content)
    findings: Sequence[Mapping[str, Any]] = report["findings"]
    rows = tuple((one["check"], one["level"], _with_hint(one)) for one in findings)
    columns = (Column("check"), Column("verdict"), Column("found"))
    note = f"It took {report['seconds']:.1f} s, before the last start of the run."
    return [TableFigure("Pre-flight", columns, rows, note)]


def rank_figures(artifact: Artifact) -> list[Figure]:
    """What ranks did in the training steps that were profiled, and their collectives."""
    from stages.training.rank_telemetry import LINES
    from stages.training.telemetry import read_lines

    rows = list(read_lines(_read(artifact, LINES) or b""))
    if not rows:
        return []
    steps = len({row["training_step"] for row in rows})
    by_rank: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_rank.setdefault(row["rank"], []).append(row)
    means = [
        (f"rank {rank}", *(fmean(one[name] for one in ones) for name in _OF_RANK),
         max(one["device_peak_bytes"] or one["process_bytes"] for one in ones) / 1e9)
        for rank, ones in sorted(by_rank.items())
    ]  # fmt: skip
    lines = [*means] if len(means) <= MOST_RANKS else []
    for text, choose in (("least", min), ("median", median), ("most", max)):
        lines.append((text, *(choose(one[place] for one in means) for place in range(1, 5))))
    columns = (Column("rank"), *(number(f"{name}, s", ".3f") for name in _OF_RANK.values()),
               number("memory, GB", ",.2f"))  # fmt: skip
    note = f"Mean of {steps:,} profiled training steps; work is operations, waiting is collectives."
    kinds: dict[str, dict[str, float]] = {}
    for row in rows:
        for kind, sums in row["collectives"].items():
            total = kinds.setdefault(kind, dict.fromkeys(sums, 0.0))
            for name, value in sums.items():
                total[name] += value / len(rows)
    return [TableFigure("Ranks", columns, tuple(lines), note), _collectives(artifact, kinds)]


def _collectives(artifact: Artifact, kinds: Mapping[str, Mapping[str, float]]) -> TableFigure:
    """Calls, bytes and seconds by kind; and what a ring would take, where links were measured."""
    from stages.parallel.links import ring_seconds

    checks = json.loads(_read(artifact, PREFLIGHT) or b'{"findings": []}')["findings"]
    links = next((one for one in checks if one["check"] == "links"), None)
    columns = [Column("kind"), number("calls", ",.1f"), number("MB", ",.2f"), number("s", ".3f")]
    note = "Of one rank in one training step, the mean over ranks."
    if links is not None:
        columns.append(number("ring, s", ".3f"))
        note += (
            f" Ring is what its bytes take over a ring of all {links['ranks']} ranks at the rate of"
            " the slowest link, as the pre-flight measured it; what is above that is waiting for"
            " other ranks, and many small messages."
        )
    entries: list[tuple[str | float | None, ...]] = []
    for kind, one in sorted(kinds.items()):
        modelled: tuple[float | None, ...] = ()
        if links is not None:
            rate = links["slowest_link_bytes_per_second"]
            modelled = (ring_seconds(kind, one["bytes"], links["ranks"], rate),)
        measured = one["calls"], one["bytes"] / 1e6, one["seconds"]
        entries.append((kind.replace("_", "-"), *measured, *modelled))
    return TableFigure("Collectives", tuple(columns), tuple(entries), note)


def _with_hint(finding: Mapping[str, Any]) -> str:
    """What was found, and where it is not as it should be, what helps."""
    text, hint = finding["said"], finding["hint"]
    return f"{text} ({hint})" if hint and finding["level"] != "ok" else text


def _format_details(details: str) -> str:
    """Details of an event in a line: `z 12.3, loss 9.1`."""
    values: dict[str, Any] = json.loads(details) if details else {}
    labels = (f"{v:.4g}" if isinstance(v, float) else str(v) for v in values.values())
    return ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in zip(values, labels, strict=True))


def _rows(artifact: Artifact) -> pa.Table | None:
    from stages.training.telemetry import TABLE, read_table

    content = _read(artifact, TABLE)
    return None if content is None else read_table(content)


def _alerts(artifact: Artifact) -> Iterator[dict[str, Any]]:
    for line in (_read(artifact, EVENTS_FILE) or b"").split(b"\n"):
        if b'"alert"' in line:
            try:
                event = json.loads(line)
            except ValueError:  # What a kill left of a line.
                continue
            if event.get("type") == "alert":
                yield event


def _read(artifact: Artifact, name: str) -> bytes | None:
    made = artifact.manifest
    folder = layout.payload(made.stage, made.key, made.attempt, TELEMETRY_FOLDER)
    try:
        return artifact.store.backend.read(f"{folder}/{name}")
    except FileNotFoundError:
        return None
