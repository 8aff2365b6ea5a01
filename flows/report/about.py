"""What an artifact says about itself: key, time, config, inputs, outputs, counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import layout
from flows.report.overview import duration
from flows.report.subject import Subject
from stages.engine.figures import Column, Figure, TableFigure, number


def facts_of(manifest: Manifest) -> list[tuple[str, str]]:
    """What stands in the line below a step's name: key, version, time, size."""
    told = manifest.telemetry
    found = [("key", manifest.key[:12]), ("version", str(manifest.version))]
    if isinstance(told.get("seconds"), int | float):
        found.append(("took", duration(told["seconds"])))
    if told.get("finished"):
        found.append(("finished", f"{day(str(told['finished']))} UTC"))
    stored = sum(output.bytes for output in manifest.outputs.values())
    found.append(("stored", f"{stored / 1e6:,.2f} MB"))
    return found


def tables_of(subject: Subject, manifest: Manifest) -> list[Figure]:
    """Config, inputs, outputs and counts of an artifact, as figures like any other."""
    by_name = {(s.stage, s.key): s.instance for s in subject.steps}
    config = tuple(_flat("", manifest.identity))
    inputs = tuple(
        (role, by_name.get((r.stage, r.key), r.stage), r.output, r.kind, r.digest[:12])
        for role, references in manifest.inputs.items()
        for r in references
    )
    outputs = tuple(
        (name, o.kind, len(o.files), o.rows or None, o.bytes / 1e6, o.digest[:12])
        for name, o in manifest.outputs.items()
    )
    tables = [
        TableFigure("Config, where not the default", (Column("field"), Column("value")), config),
        TableFigure(
            "Inputs", tuple(Column(n) for n in ("role", "from", "output", "kind", "digest")), inputs
        ),
        TableFigure(
            "Outputs",
            (Column("output"), Column("kind"), number("files"), number("rows"),
             number("MB", ",.2f"), Column("digest")),
            outputs,
        ),
        TableFigure("Counts", (Column("count"), number("value")), tuple(manifest.counts.items())),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def _flat(path: str, value: Any) -> Iterable[tuple[str, str]]:
    """Nested config as `a.b.0.c` and JSON; short lists stay on one line."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(f"{path}.{name}" if path else str(name), inner)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, inner in enumerate(value):
            yield from _flat(f"{path}.{index}", inner)
    elif path:
        yield path, value if isinstance(value, str) else text


def place(subject: Subject, manifest: Manifest) -> str:
    """Path or URL of the folder that holds an artifact's payload."""
    folder = layout.payload(manifest.stage, manifest.key, manifest.attempt)
    return subject.store.backend.full(folder)


def day(time: str) -> str:
    """A manifest's time to the minute: `2026-11-21 19:22`."""
    return time.replace("T", " ").removesuffix("Z")[:16]
