"""`ingot lineage REF`: what an artifact was made of, or what was made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo


@click.command("lineage")
@click.argument("ref")
@click.option("--down", is_flag=True, help="What was made of it, instead of what it was made of.")
@store_option
@json_option
def command(ref: str, down: bool, store: str, as_json: bool) -> None:
    """Show the tree of artifacts above REF (or below it, with --down)."""
    from artifacts_schema.store.lineage import ancestors, descendants
    from flows.cli.artifacts import edges_json, names_of, open_store
    from flows.cli.output import print_json

    opened = open_store(store)
    manifest, _ = opened.resolve(ref)
    edges = descendants(opened, manifest) if down else ancestors(opened, manifest)
    start = (manifest.stage, manifest.key)
    if as_json:
        top = {"stage": manifest.stage, "key": manifest.key}
        print_json({"artifact": top, "edges": edges_json(opened, edges)})
        return
    names = names_of(opened)
    for line in tree(start, edges, down=down, label=lambda name: _label(opened, name, names)):
        echo(line)


def tree(start: Any, edges: Sequence[Any], *, down: bool, label: Any) -> Iterator[str]:
    """Lines of a tree; an artifact's own branches are drawn where it first comes."""
    drawn = {start}
    yield label(start)
    # A stack of iterators, so that a long chain of artifacts needs no deep recursion.
    stack: list[tuple[str, list[Any]]] = [("", _next(start, edges, down=down))]
    while stack:
        indent, branches = stack[-1]
        if not branches:
            stack.pop()
            continue
        edge, last = branches.pop(0), not branches
        name = edge.child if down else edge.parent
        seen = name in drawn
        below = [] if seen else _next(name, edges, down=down)
        way = f"{edge.output} → {edge.role}" if edge.output != edge.role else edge.role
        more = " (as above)" if seen and _next(name, edges, down=down) else ""
        yield f"{indent}{'└─' if last else '├─'} {way}: {label(name)}{more}"
        drawn.add(name)
        stack.append((indent + ("   " if last else "│  "), below))


def _next(name: Any, edges: Sequence[Any], *, down: bool) -> list[Any]:
    found = [edge for edge in edges if (edge.parent if down else edge.child) == name]
    return list(dict.fromkeys(found))


def _label(store: Any, name: Any, names: Any) -> str:
    from artifacts_schema.errors import CorruptArtifact
    from flows.cli.artifacts import title

    try:
        manifest = store.manifest(*name)
    except CorruptArtifact:
        return f"{name[0]} {name[1][:12]} (damaged)"
    return (
        title(manifest, names) if manifest is not None else f"{name[0]} {name[1][:12]} (collected)"
    )
