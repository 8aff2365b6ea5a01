"""Artifacts as people refer to them: by ref or key, with their ancestors and refs.

A manifest or ref that cannot be read is skipped here, with a warning on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from artifacts_schema.errors import CorruptArtifact, UsageError, printable_text
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input

ArtifactName = tuple[str, str]
"""(stage, key)."""
RefsByArtifact = dict[ArtifactName, list[str]]


def warn_damaged(error: CorruptArtifact) -> None:
    """Warn on stderr that a manifest or ref cannot be read."""
    print(printable_text(f"warning: {error}"), file=sys.stderr)


def open_store(url: str) -> Store:
    """The existing store at `url`."""
    return Store.open(url, create=False)


def list_manifests(store: Store) -> list[Manifest]:
    """Every artifact whose manifest can be read."""
    return list(store.manifests(on_damage=warn_damaged))


def read_manifest(store: Store, name: ArtifactName) -> Manifest | None:
    """The manifest of an artifact; None if it was collected, or cannot be read."""
    try:
        return store.manifest(*name)
    except CorruptArtifact as error:
        warn_damaged(error)
        return None


def refs_by_artifact(store: Store) -> RefsByArtifact:
    """Sorted refs by the artifact that they name."""
    refs: RefsByArtifact = {}
    for name, ref in sorted(store.refs(on_damage=warn_damaged).items()):
        refs.setdefault((ref.stage, ref.key), []).append(name)
    return refs


def format_title(manifest: Manifest, refs: RefsByArtifact) -> str:
    """`filter 3fa4bc90d1e2 (quickstart/filter)`."""
    own = refs.get((manifest.stage, manifest.key), [])
    names = f" ({', '.join(own[:3])}{' …' if len(own) > 3 else ''})" if own else ""
    return f"{manifest.stage} {short(manifest.key)}{names}"


def list_in_scope(store: Store, prefix: str | None, *, everything: bool = False) -> list[Manifest]:
    """Artifacts that refs beginning with `prefix` name, and their ancestors.

    Without any ref, or with `everything`, all artifacts. UsageError if no ref begins with `prefix`.
    """
    refs = store.refs(prefix or "", on_damage=warn_damaged)
    if prefix and not refs:
        raise UsageError(f"no ref begins with '{prefix}'", where=store.url, hint="see `ingot ls`")
    if everything or not refs:
        return list_manifests(store)
    roots = {(ref.stage, ref.key) for ref in refs.values()}
    manifests = load_ancestry(
        store, *(one for name in roots if (one := read_manifest(store, name)) is not None)
    )
    return [manifests[name] for name in sorted(manifests)]


def load_ancestry(store: Store, *manifests: Manifest) -> dict[ArtifactName, Manifest]:
    """Artifacts and all their ancestors, sources first, without collected ones."""
    ancestry: dict[ArtifactName, Manifest] = {}

    def visit(current: Manifest) -> None:
        for reference in chain.from_iterable(current.inputs.values()):
            name = (reference.stage, reference.key)
            if name not in ancestry and (parent := read_manifest(store, name)) is not None:
                visit(parent)
        ancestry[current.stage, current.key] = current

    for manifest in manifests:
        visit(manifest)
    return ancestry


@dataclass(frozen=True)
class ArtifactTrace:
    """An artifact with all its ancestors, and the files of the snapshots that these read."""

    chain: list[Manifest]
    """Sources first."""
    files: dict[ArtifactName, list[str]]
    """`snapshot: place, bytes` by artifact; place is a location, or the file's name."""
    collected: list[ArtifactName]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        chain = [
            {
                "stage": manifest.stage,
                "key": manifest.key,
                "outputs": {name: output.digest for name, output in manifest.outputs.items()},
                "inputs": {
                    role: [{"stage": r.stage, "key": r.key, "output": r.output} for r in group]
                    for role, group in manifest.inputs.items()
                },
                "conservation": manifest.conservation and manifest.conservation.model_dump(),
                "counts": manifest.counts,
                "files": self.files[manifest.stage, manifest.key],
            }
            for manifest in self.chain
        ]
        collected = [{"stage": stage, "key": key} for stage, key in self.collected]
        return {"chain": chain, "collected": collected}


def trace_artifact(store: Store, manifest: Manifest) -> ArtifactTrace:
    """Follow an artifact back to the files that it came from."""
    ancestry = load_ancestry(store, manifest)
    references = [
        reference
        for one in reversed(ancestry.values())
        for reference in chain.from_iterable(one.inputs.values())
    ]
    digests = {reference.digest for reference in references}
    files = {
        name: [
            line
            for label, output in one.outputs.items()
            if output.kind == "snapshot" and output.digest in digests
            for line in _snapshot_files(store, one, label)
        ]
        for name, one in ancestry.items()
    }
    existing = set(store.keys())
    parents = dict.fromkeys((reference.stage, reference.key) for reference in references)
    collected = [name for name in parents if name not in existing]
    return ArtifactTrace(list(ancestry.values()), files, collected)


def _snapshot_files(store: Store, manifest: Manifest, output: str) -> Iterator[str]:
    listing = Input.from_manifest(store, manifest, output, full_check=False).read_json(
        "snapshot.json"
    )
    locations = store.locations(manifest.output(output).digest)
    for file in listing["files"]:
        place = locations.get(file["name"]) or f"{output}/files/{file['name']}"
        yield f"{listing['name']}: {place}, {file['bytes']:,} bytes"


def load_inputs(
    store: Store, references: Mapping[str, Sequence[InputRef]]
) -> dict[str, list[Input]]:
    """The inputs of an artifact or step by role; InputError if one was collected."""
    return {
        role: [Input.load(store, one, full_check=False) for one in group]
        for role, group in references.items()
    }
