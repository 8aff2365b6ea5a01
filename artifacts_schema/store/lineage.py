"""Where an artifact comes from and what was made of it, read from the manifests alone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.manifest import Manifest
from artifacts_schema.store.store import Store

ON_ITS_WAY = "on its way"


@dataclass(frozen=True)
class Edge:
    """`parent`'s output went into `role` of `child`; (stage, key) each.

    Of what a run committed on its way, the run is a parent too, with `on its way` as the role.
    """

    parent: tuple[str, str]
    output: str
    role: str
    child: tuple[str, str]


def ancestors(store: Store, manifest: Manifest) -> list[Edge]:
    """Every edge above an artifact, nearest first.

    A parent that was collected, or whose manifest cannot be read, is still named.
    """
    edges: list[Edge] = []
    waiting, seen = [manifest], {(manifest.stage, manifest.key)}
    while waiting:
        child = waiting.pop(0)
        for role, references in child.inputs.items():
            for reference in references:
                parent = (reference.stage, reference.key)
                edges.append(Edge(parent, reference.output, role, (child.stage, child.key)))
                if parent not in seen:
                    seen.add(parent)
                    with suppress(CorruptArtifact):
                        found = store.manifest(*parent)
                        waiting += [found] if found is not None else []
    return edges


def descendants(store: Store, manifest: Manifest) -> list[Edge]:
    """Every edge below an artifact, nearest first, of what can be read; see `ingot ls`."""
    children: dict[tuple[str, str], list[Edge]] = {}
    damaged: list[CorruptArtifact] = []
    for child in store.manifests(on_damage=damaged.append):
        for role, references in child.inputs.items():
            for reference in references:
                parent = (reference.stage, reference.key)
                edge = Edge(parent, reference.output, role, (child.stage, child.key))
                children.setdefault(parent, []).append(edge)
        if child.interim_of is not None:
            run = (child.stage, child.interim_of.run)
            for output in child.outputs:
                edge = Edge(run, output, ON_ITS_WAY, (child.stage, child.key))
                children.setdefault(run, []).append(edge)
    edges: list[Edge] = []
    waiting, seen = [(manifest.stage, manifest.key)], {(manifest.stage, manifest.key)}
    while waiting:
        for edge in children.get(waiting.pop(0), []):
            edges.append(edge)
            if edge.child not in seen:
                seen.add(edge.child)
                waiting.append(edge.child)
    return edges
