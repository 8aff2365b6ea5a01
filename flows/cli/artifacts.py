"""Artifacts as people name and see them: by ref or key, with their other names beside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from artifacts_schema.errors import CorruptArtifact, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.lineage import ancestors
from flows.cli.output import echo

Name = tuple[str, str]
"""(stage, key)."""


def open_store(url: str) -> Store:
    """The store at `url`, which must be there already."""
    return Store.open(url, create=False)


def warn_damaged(error: CorruptArtifact) -> None:
    """Say on stderr that a manifest or a name cannot be read; the command goes on without it."""
    echo(f"warning: {error}", err=True)


def all_manifests(store: Store) -> list[Manifest]:
    """Every artifact whose manifest can be read, with a warning for each other one."""
    return list(store.manifests(on_damage=warn_damaged))


def readable(store: Store, name: Name) -> Manifest | None:
    """The manifest of an artifact; None, with a warning, if it cannot be read."""
    try:
        return store.manifest(*name)
    except CorruptArtifact as error:
        warn_damaged(error)
        return None


def names_of(store: Store) -> dict[Name, list[str]]:
    """Refs by what they point at, sorted."""
    names: dict[Name, list[str]] = {}
    for name, ref in sorted(store.refs(on_damage=warn_damaged).items()):
        names.setdefault((ref.stage, ref.key), []).append(name)
    return names


def title(manifest: Manifest, names: dict[Name, list[str]]) -> str:
    """`filter 3fa4bc90d1e2 (quickstart/filter)`."""
    own = names.get((manifest.stage, manifest.key), [])
    shown = f" ({', '.join(own[:3])}{' …' if len(own) > 3 else ''})" if own else ""
    return f"{manifest.stage} {short(manifest.key)}{shown}"


def in_scope(store: Store, prefix: str | None, *, everything: bool = False) -> list[Manifest]:
    """Artifacts that names lead to: those of refs beginning with `prefix`, and their ancestors.

    Without any ref, or with `everything`, all artifacts. UsageError if no ref begins with `prefix`.
    """
    refs = store.refs(prefix or "", on_damage=warn_damaged)
    if prefix and not refs:
        raise UsageError(f"no ref begins with '{prefix}'", where=store.url, hint="see `ingot ls`")
    if everything or not refs:
        return all_manifests(store)
    found: dict[Name, Manifest] = {}
    for ref in refs.values():
        manifest = readable(store, (ref.stage, ref.key))
        if manifest is not None:
            found.update(with_ancestors(store, manifest, found))
    return [found[name] for name in sorted(found)]


def with_ancestors(
    store: Store, manifest: Manifest, known: dict[Name, Manifest] | None = None
) -> dict[Name, Manifest]:
    """An artifact and everything it was made of, sources first; collected ones are left out."""
    found: dict[Name, Manifest] = {}

    def visit(current: Manifest) -> None:
        name = (current.stage, current.key)
        if name in found or (known is not None and name in known):
            return
        for references in current.inputs.values():
            for reference in references:
                parent = readable(store, (reference.stage, reference.key))
                if parent is not None:
                    visit(parent)
        found[name] = current

    visit(manifest)
    return found


def edges_json(store: Store, edges: Iterable[Any]) -> list[dict[str, Any]]:
    """Lineage edges as plain values."""
    return [
        {
            "parent": {"stage": edge.parent[0], "key": edge.parent[1]},
            "output": edge.output,
            "role": edge.role,
            "child": {"stage": edge.child[0], "key": edge.child[1]},
        }
        for edge in edges
    ]


def whole_run(store: Store, manifest: Manifest, *, where: str) -> Manifest:
    """The run that committed an artifact on its way; any other artifact is itself.

    UsageError if that run is not over.
    """
    if manifest.interim_of is None:
        return manifest
    run = store.manifest(manifest.stage, manifest.interim_of.run)
    if run is None:
        raise UsageError(
            f"{manifest.stage} {short(manifest.interim_of.run)} is not over, or was collected",
            where=where,
            hint="ask again when it is; ingot watch follows it",
        )
    return run


def collected_parents(store: Store, manifest: Manifest) -> list[Name]:
    """Ancestors that are named by manifests but no longer in the store."""
    parents = dict.fromkeys(edge.parent for edge in ancestors(store, manifest))
    there = set(store.keys())
    return [name for name in parents if name not in there]
