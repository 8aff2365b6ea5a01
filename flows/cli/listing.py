"""`ingot ls`, `ingot runs`, `ingot show` and `ingot lineage`: what a store holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import CorruptArtifact, UsageError
from artifacts_schema.files import write_whole
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest, Output
from artifacts_schema.store import Store, layout
from artifacts_schema.store.runs import load_runs, recorded_recipes
from artifacts_schema.store.store import Edge, ancestors, descendants
from flows.analysis.artifacts import (
    ArtifactName,
    RefsByArtifact,
    format_title,
    open_store,
    read_manifest,
    refs_by_artifact,
    warn_damaged,
)
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo, print_fields, print_json, print_table, size

FILES_SHOWN = 8
TENSORBOARD_FOLDER = "tensorboard"
"""As `stages/training/dashboards.py` names it, whose import takes seconds."""


@click.command("ls")
@click.argument("what", required=False, metavar="[STAGE|REF]")
@store_option
@json_option
def ls(what: str | None, store: str, as_json: bool) -> None:
    """List artifacts with their outputs, sizes and names, the oldest first.

    With STAGE only those of that stage; with the beginning of a REF only those so named.
    """
    opened = open_store(store)
    refs = refs_by_artifact(opened)
    matches = []
    damaged: list[CorruptArtifact] = []
    for manifest in opened.manifests(on_damage=damaged.append):
        own = refs.get((manifest.stage, manifest.key), [])
        if what is None or manifest.stage == what or any(ref.startswith(what) for ref in own):
            matches.append((manifest, own))
    for error in damaged:
        warn_damaged(error)
    if what is not None and not matches:
        raise UsageError(f"no artifact of stage or name '{what}'", where=opened.url)
    matches.sort(key=lambda pair: (str(pair[0].telemetry.get("finished", "")), pair[0].stage))
    if as_json:
        print_json([_artifact_json(manifest, own) for manifest, own in matches])
        return
    rows = [
        (
            manifest.stage,
            short(manifest.key),
            ", ".join(_format_output(name, output) for name, output in manifest.outputs.items()),
            size(sum(output.bytes for output in manifest.outputs.values())),
            manifest.telemetry.get("finished", "")[:16].replace("T", " "),
            ", ".join(own),
        )
        for manifest, own in matches
    ]
    outputs, total = Column("outputs", wraps=True), Column("size", right=True)
    print_table(["stage", "key", outputs, total, "made (UTC)", Column("names", wraps=True)], rows)


def _format_output(name: str, output: Output) -> str:
    kind = "" if name == output.kind else f" ({output.kind})"
    rows = f" {output.rows:,}" if output.rows else ""
    return f"{name}{kind}{rows}"


def _artifact_json(manifest: Manifest, names: list[str]) -> dict[str, Any]:
    return {
        "stage": manifest.stage,
        "version": manifest.version,
        "key": manifest.key,
        "names": names,
        "interim_of": manifest.interim_of.model_dump() if manifest.interim_of else None,
        "finished": manifest.telemetry.get("finished"),
        "outputs": {
            name: {
                "kind": output.kind,
                "digest": output.digest,
                "files": output.count,
                "bytes": output.bytes,
                "rows": output.rows,
            }
            for name, output in manifest.outputs.items()
        },
    }


@click.command("runs")
@click.argument("recipe", required=False)
@store_option
@json_option
def runs(recipe: str | None, store: str, as_json: bool) -> None:
    """List the runs of RECIPE, or of all recipes, the newest first.

    The name of a run, RECIPE@ID, is what `ingot report`, its --against and `ingot watch` take.
    """
    opened = open_store(store)
    known = recorded_recipes(opened)
    if recipe is not None and recipe not in known:
        raise UsageError(f"no run of a recipe '{recipe}'{did_you_mean(recipe, known)}")
    runs = [run for name in ([recipe] if recipe else known) for run in load_runs(opened, name)]
    runs.sort(key=lambda run: run.id, reverse=True)
    if as_json:
        print_json([run.model_dump(mode="json") for run in runs])
        return
    rows = []
    for run in runs:
        counts = [sum(step.state == state for step in run.steps) for state in ("made", "reused")]
        began, changes = run.started[:16].replace("T", " "), " ".join(run.overrides)
        rows.append((run.name, run.state, began, *counts, len(run.steps), changes))
    numbers = [Column(title, right=True) for title in ("made", "reused", "of")]
    print_table(["run", "state", "began (UTC)", *numbers, Column("changes", wraps=True)], rows)


@click.command("show")
@click.argument("ref")
@store_option
@json_option
def show(ref: str, store: str, as_json: bool) -> None:
    """Show what REF is: config, inputs, outputs and files, counts, samples, how it was made.

    REF is a name in the store, or a key of 6 or more digits; --json prints the whole manifest.
    """
    opened = open_store(store)
    manifest, only = opened.resolve(ref)
    if as_json:
        print_json(manifest.describe())
        return
    echo(f"{format_title(manifest, refs_by_artifact(opened))}\n")
    account, run = manifest.conservation, manifest.interim_of
    print_fields(
        [
            ("key", manifest.key),
            ("version", manifest.version),
            ("reproducible", manifest.reproducible),
            (
                "committed by",
                run and f"{manifest.stage} {run.run[:12]} on its way, at {run.label} ({run.at:,})",
            ),
            ("on its way", "\n".join(f"{i.label}: {i.key[:12]}" for i in manifest.interims)),
            ("config", _format_lines(manifest.identity) or "all defaults"),
            (
                "inputs",
                "\n".join(
                    f"{role}: {r.stage} {r.key[:12]}:{r.output} ({r.digest[:12]})"
                    for role, references in manifest.inputs.items()
                    for r in references
                ),
            ),
            ("records", account and f"{account.records_in:,} in, {account.out:,} out"),
            ("dropped", _format_lines(account.dropped) if account else ""),
            ("counts", _format_lines(manifest.counts)),
            (
                "samples",
                "\n".join(f"{why}: {s}" for why, ss in manifest.samples.items() for s in ss),
            ),
            ("code", manifest.code.digest[:12]),
            ("libraries", ", ".join(f"{n} {v}" for n, v in manifest.code.libraries.items())),
            ("layout", _format_lines(manifest.layout)),
            ("telemetry", _format_lines(manifest.telemetry)),
            ("TensorBoard", _tensorboard(opened, manifest)),
        ]
    )
    for name in [only] if only else manifest.outputs:
        _print_output(opened, manifest, name)


def _tensorboard(store: Store, manifest: Manifest) -> str:
    """The command that shows the event files of a training run; nothing if it wrote none."""
    path = layout.payload(manifest.stage, manifest.key, manifest.attempt, "telemetry")
    folder = f"{path}/{TENSORBOARD_FOLDER}"
    if not store.backend.files(folder):
        return ""
    return f"tensorboard --logdir {store.backend.full(folder)}"


def _print_output(store: Store, manifest: Manifest, name: str) -> None:
    output = manifest.outputs[name]
    count = f", {output.rows:,} rows" if output.rows else ""
    echo(f"\n{name}: {output.kind}, {size(output.bytes)}{count}")
    echo(f"  digest {output.digest}")
    echo(f"  {store.backend.full(store.payload(manifest, name))}")
    rows = [
        (
            f"  {file.path}",
            f"{file.bytes:,}",
            "" if file.rows is None else f"{file.rows:,}",
            file.sha256[:12],
        )
        for file in output.files[:FILES_SHOWN]
    ]
    if rows:
        numbers = [Column("bytes", right=True), Column("rows", right=True)]
        print_table(["  file", *numbers, "sha256"], rows)
    if output.count > FILES_SHOWN:
        echo(f"  and {output.count - FILES_SHOWN} more (--json lists all)")


def _format_lines(values: dict[str, Any]) -> str:
    lines = []
    for name, value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = f"{value:,}"
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{name}: {text}")
    return "\n".join(lines)


@click.command("lineage")
@click.argument("ref")
@click.option("--down", is_flag=True, help="What was made of it, instead of what it was made of.")
@click.option(
    "--openlineage", "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Write events of OpenLineage, a line of JSON each, instead.",
)  # fmt: skip
@store_option
@json_option
def lineage(ref: str, down: bool, file: Path | None, store: str, as_json: bool) -> None:
    """Show the tree of artifacts above REF (or below it, with --down)."""
    opened = open_store(store)
    manifest, _ = opened.resolve(ref)
    edges = descendants(opened, manifest) if down else ancestors(opened, manifest)
    start = (manifest.stage, manifest.key)
    if file is not None:
        names = dict.fromkeys([start, *(edge.child if down else edge.parent for edge in edges)])
        _write_events(opened, names, file)
        return
    if as_json:
        ends = ("parent", "child")
        plain = [
            {**asdict(edge), **{end: _name_json(getattr(edge, end)) for end in ends}}
            for edge in edges
        ]
        print_json({"artifact": _name_json(start), "edges": plain})
        return
    refs = refs_by_artifact(opened)
    for line in _format_tree(start, edges, down, lambda name: _format_label(opened, name, refs)):
        echo(line)


def _write_events(store: Store, names: Iterable[ArtifactName], file: Path) -> None:
    """Write how these artifacts were made; those that were collected are left out."""
    from flows.interchange.openlineage import export_events

    manifests = [one for name in names if (one := read_manifest(store, name)) is not None]
    events = export_events(store, manifests)
    text = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
    write_whole(file, lambda draft: draft.write_text(text, encoding="utf-8"))
    echo(f"{file}  {len(events):,} events")


def _name_json(name: ArtifactName) -> dict[str, str]:
    return {"stage": name[0], "key": name[1]}


def _format_tree(
    start: ArtifactName, edges: Sequence[Edge], down: bool, label: Callable[[ArtifactName], str]
) -> Iterator[str]:
    """Lines of a tree; an artifact's own branches are drawn where it first appears."""
    branches: dict[ArtifactName, list[Edge]] = {}
    for edge in dict.fromkeys(edges):
        branches.setdefault(edge.parent if down else edge.child, []).append(edge)
    drawn = {start}
    yield label(start)
    # A stack, so that a long chain of artifacts needs no deep recursion.
    stack = [("", branches.get(start, []))]
    while stack:
        indent, rest = stack.pop()
        if not rest:
            continue
        edge, *rest = rest
        is_last = not rest
        stack.append((indent, rest))
        name = edge.child if down else edge.parent
        below = branches.get(name, [])
        note = " (as above)" if name in drawn and below else ""
        way = f"{edge.output} → {edge.role}" if edge.output != edge.role else edge.role
        yield f"{indent}{'└─' if is_last else '├─'} {way}: {label(name)}{note}"
        stack.append((indent + ("   " if is_last else "│  "), [] if name in drawn else below))
        drawn.add(name)


def _format_label(store: Store, name: ArtifactName, refs: RefsByArtifact) -> str:
    try:
        manifest = store.manifest(*name)
    except CorruptArtifact:
        return f"{name[0]} {name[1][:12]} (damaged)"
    if manifest is None:
        return f"{name[0]} {name[1][:12]} (collected)"
    return format_title(manifest, refs)
