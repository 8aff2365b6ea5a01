"""Finding, naming and tracing artifacts: manifests, refs, ancestors and descendants.

Writing artifacts is `commit`, holding a key is `lease`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import CorruptArtifact, StoreError, UsageError
from artifacts_schema.identity import SCHEMA_VERSION, short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import layout
from artifacts_schema.store.modes import explain_denied
from artifacts_schema.store.remote import backend_at

_HEX = re.compile(r"[0-9a-f]{6,64}")
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@\[\]-]*(/[A-Za-z0-9][A-Za-z0-9._@\[\]-]*)*")

_AT_ONCE = 64
"""Manifests read together."""


@dataclass(frozen=True)
class Ref:
    """A movable name's target."""

    stage: str
    key: str


@dataclass(frozen=True)
class WorkState:
    """The work folder of a run that has not committed."""

    exists: bool
    finished_shards: int
    running: bool


class Store:
    """All artifacts under one URL. Reading needs no lock: what has a manifest never changes."""

    def __init__(self, url: str) -> None:
        self.backend = backend_at(url)

    @property
    def url(self) -> str:
        """The place, as it was given."""
        return self.backend.url

    @classmethod
    def open(cls, url: str, *, create: bool = True) -> Self:
        """Open the store at `url`, making it if there is none.

        Raises StoreError if the place cannot be written, belongs to something else, or was laid out
        by another schema version.
        """
        store = cls(str(url))
        mark = {"format": "ingot-store", "schema": SCHEMA_VERSION}
        try:
            actual = json.loads(store.read_mark())
            if not isinstance(actual, dict):
                raise ValueError("no object")
        except FileNotFoundError:
            if not create:
                raise StoreError(
                    "no store here",
                    where=store.url,
                    hint="check --store; if it is on a volume, is that mounted here?",
                ) from None
            store._claim(mark)
            return store
        except (ValueError, NotADirectoryError):
            raise StoreError(
                "not an Ingot store", where=store.url, hint="choose another --store"
            ) from None
        if {**actual, **mark} != actual:
            raise StoreError(
                f"store of schema {actual.get('schema')!r}, this Ingot reads {SCHEMA_VERSION}",
                where=store.url,
                hint="use the Ingot that made it, or a new store",
            )
        return store

    def read_mark(self) -> bytes:
        """The file that marks the store; FileNotFoundError if there is none.

        A user who is no member of the group that shares the store gets a StoreError that says so.
        """
        try:
            return self.backend.read(layout.FORMAT)
        except StoreError:
            denied = explain_denied(self.backend.local_path("")) if self.backend.local else None
            if denied is None:
                raise
            raise denied from None

    def _claim(self, mark: dict[str, Any]) -> None:
        if not self.backend.is_empty() and "artifacts" not in self.backend.folders(""):
            raise StoreError(
                "the folder holds other files",
                where=self.url,
                hint="choose an empty folder as --store",
            )
        try:
            self.backend.put_if_absent(layout.FORMAT, json.dumps(mark).encode())
            if self.backend.put_if_absent(layout.FORMAT, b"{}"):
                self.backend.remove(layout.FORMAT)
                raise StoreError(
                    "this server ignores conditional writes (If-None-Match)",
                    where=self.url,
                    hint="two runs could overwrite each other there; choose another --store",
                )
        except (NotADirectoryError, FileExistsError, FileNotFoundError) as error:
            raise StoreError(
                f"cannot make a store: {error}", where=self.url, hint="choose another --store"
            ) from None

    # Artifacts -----------------------------------------------------------------------------------

    def manifest(self, stage: str, key: str) -> Manifest | None:
        """The manifest of an artifact, or None if nothing was committed under this key."""
        path = layout.manifest(stage, key)
        try:
            return self._manifest(stage, key, self.backend.read(path))
        except FileNotFoundError:
            return None

    def _manifest(self, stage: str, key: str, raw: bytes) -> Manifest:
        path = layout.manifest(stage, key)
        manifest = Manifest.load(raw, where=path)
        if manifest.name != (stage, key):
            raise CorruptArtifact(
                f"the manifest names {manifest.stage} {short(manifest.key)}",
                where=path,
                hint="it was moved; run its step again, or `ingot verify --repair`",
            )
        self.open_table(manifest)
        return manifest

    def open_table(self, manifest: Manifest) -> None:
        """Let a manifest read its file table, if it has one, when somebody asks for a file."""
        table = layout.file_table(*manifest.name, manifest.attempt)
        manifest.open_table(partial(self.backend.read, table), where=self.backend.full(table))

    def check_mounted(self) -> None:
        """Raise StoreError if manifests name files and no payload at all is there.

        Then the volume under `data/` is not mounted, and every artifact would be taken for damaged.
        A bucket is whole or cannot be reached.
        """
        stages = set(self.backend.folders("artifacts")) if self.backend.local else set()
        if not stages or stages.intersection(self.backend.folders("data")):
            return
        unreadable: list[CorruptArtifact] = []
        manifests = self.manifests(on_damage=unreadable.append)
        named = any(manifest.count_files for manifest in manifests)
        if named or unreadable:
            raise StoreError(
                "the store has manifests, and none of their files is there",
                where=self.backend.full("data"),
                hint="mount the volume that holds it; nothing was changed. If these files are lost "
                "for good, start a new store",
            )

    def keys(self, stage: str | None = None) -> list[tuple[str, str]]:
        """(stage, key) of every artifact, sorted."""
        names = self.backend.files(f"artifacts/{stage}" if stage else "artifacts")
        keys = []
        for name in names:
            path = f"{stage}/{name}" if stage else name
            if path.endswith(".json") and path.count("/") == 1 and "/." not in path:
                owner, key = path.removesuffix(".json").split("/")
                keys.append((owner, key))
        return sorted(keys)

    def manifests(
        self,
        stage: str | None = None,
        *,
        on_damage: Callable[[CorruptArtifact], None] | None = None,
    ) -> Iterator[Manifest]:
        """Every artifact, by stage, then key.

        A manifest that cannot be read is passed to `on_damage` and skipped; without that it raises.
        """
        names = self.keys(stage)
        for start in range(0, len(names), _AT_ONCE):
            paths = {layout.manifest(*name): name for name in names[start : start + _AT_ONCE]}
            contents = self.backend.read_many(paths)
            for path in paths:
                if path not in contents:
                    continue
                try:
                    manifest = self._manifest(*paths[path], contents[path])
                except CorruptArtifact as error:
                    if on_damage is None:
                        raise
                    on_damage(error)
                else:
                    yield manifest

    def find(self, prefix: str) -> Manifest:
        """The artifact whose key or output digest begins with `prefix` (6 digits or more)."""
        if not _HEX.fullmatch(prefix):
            raise UsageError(f"'{prefix}' is neither a ref nor a key of at least 6 hex digits")
        damaged: list[CorruptArtifact] = []
        by_key = [pair for pair in self.keys() if pair[1].startswith(prefix)]
        matches = [m for pair in by_key if (m := self.manifest(*pair)) is not None] or [
            m
            for m in self.manifests(on_damage=damaged.append)
            if any(output.digest.startswith(prefix) for output in m.outputs.values())
        ]
        if not matches:
            hint = f"{len(damaged)} manifests cannot be read" if damaged else "see `ingot ls`"
            raise UsageError(f"no artifact '{prefix}'", where=self.url, hint=hint)
        if len(matches) > 1:
            names = ", ".join(f"{m.stage} {short(m.key)}" for m in matches[:5])
            raise UsageError(f"'{prefix}' is ambiguous: {names}", hint="give more digits")
        return matches[0]

    def payload(self, manifest: Manifest, output: str, path: str = "") -> str:
        """The path of a payload file, or of an output's folder, in the store."""
        folder = layout.payload(*manifest.name, manifest.attempt, output)
        return f"{folder}/{path}" if path else folder

    # Names ---------------------------------------------------------------------------------------

    def set_ref(self, name: str, stage: str, key: str) -> None:
        """Point `name` at an artifact, wherever it pointed before."""
        if not _REF.fullmatch(name):
            raise UsageError(f"'{name}' cannot be a ref: use letters, digits, . _ - @ [ ] and /")
        self.backend.replace(layout.ref(name), json.dumps({"stage": stage, "key": key}).encode())

    def name(self, name: str, manifest: Manifest) -> bool:
        """Point `name` at an artifact; returns whether that still exists afterwards.

        A collection looks at the names once more after it took a manifest away, and puts back what
        is named by then: who names first and looks afterwards is never left with an empty name.
        """
        self.set_ref(name, *manifest.name)
        return self.backend.size(layout.manifest(*manifest.name)) is not None

    def ref(self, name: str) -> Ref | None:
        """What `name` points at, or None."""
        if not _REF.fullmatch(name):
            return None
        try:
            return _ref(name, self.backend.read(layout.ref(name)))
        except FileNotFoundError:
            return None

    def refs(
        self, prefix: str = "", *, on_damage: Callable[[CorruptArtifact], None] | None = None
    ) -> dict[str, Ref]:
        """All refs whose name begins with `prefix`, by name.

        One that cannot be read is passed to `on_damage` and skipped; without that it raises.
        """
        names = [n.removesuffix(".json") for n in self.backend.files("refs") if n.endswith(".json")]
        paths = {
            layout.ref(name): name
            for name in names
            if name.startswith(prefix) and _REF.fullmatch(name)
        }
        refs = {}
        for path, raw in self.backend.read_many(paths).items():
            try:
                refs[paths[path]] = _ref(paths[path], raw)
            except CorruptArtifact as error:
                if on_damage is None:
                    raise
                on_damage(error)
        return refs

    def resolve(self, text: str) -> tuple[Manifest, str | None]:
        """The artifact, and the output if named, that `REF[:output]` or `KEY[:output]` means."""
        name, _, output = text.removeprefix("@").partition(":")
        ref = self.ref(name)
        if ref is not None:
            manifest = self.manifest(ref.stage, ref.key)
            if manifest is None:
                raise UsageError(
                    f"ref '{name}' points at {ref.stage} {short(ref.key)}, which is gone",
                    where=self.url,
                    hint="run its recipe again",
                )
        elif _HEX.fullmatch(name):
            manifest = self.find(name)
        else:
            raise UsageError(f"no ref '{name}'{did_you_mean(name, self.refs())}", where=self.url)
        if output and output not in manifest.outputs:
            raise UsageError(
                f"{manifest.stage} has no output '{output}'{did_you_mean(output, manifest.outputs)}"
            )
        return manifest, output or None

    def reference(self, manifest: Manifest, output: str) -> InputRef:
        """`output` of an artifact in the form that a role takes."""
        target = manifest.output(output)
        stage, key = manifest.name
        return InputRef(stage=stage, key=key, output=output, kind=target.kind, digest=target.digest)

    # Snapshots' places ---------------------------------------------------------------------------

    def write_locations(self, digest: str, locations: dict[str, str]) -> None:
        """Record the locations of a snapshot's files: file name → path or URL."""
        self.backend.replace(
            layout.locations(digest), json.dumps(locations, sort_keys=True).encode()
        )

    def locations(self, digest: str) -> dict[str, str]:
        """The locations of a snapshot's files; empty if the snapshot itself holds them."""
        try:
            return dict(json.loads(self.backend.read(layout.locations(digest))))
        except FileNotFoundError:
            return {}

    # Running work --------------------------------------------------------------------------------

    def work_state(self, key: str) -> WorkState:
        """The state of the work folder of `key`."""
        from artifacts_schema.store.lease import held_keys

        files = self.backend.files(layout.work(key))
        shards = sum(1 for name in files if name.startswith("done/") and name.endswith(".json"))
        kept = any(layout.is_resume_state(name) for name in files)
        running = held_keys(self.backend, [layout.work(key, name) for name in files])
        return WorkState(kept, shards, key in running)


def _ref(name: str, raw: bytes) -> Ref:
    try:
        value = json.loads(raw)
        return Ref(value["stage"], value["key"])
    except (ValueError, KeyError, TypeError):
        raise CorruptArtifact("not a ref", where=layout.ref(name), hint="remove the file") from None


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
    waiting, seen = [manifest], {manifest.name}
    while waiting:
        for edge in _input_edges(waiting.pop(0)):
            edges.append(edge)
            if edge.parent not in seen:
                seen.add(edge.parent)
                with suppress(CorruptArtifact):
                    parent = store.manifest(*edge.parent)
                    waiting += [parent] if parent is not None else []
    return edges


def _input_edges(child: Manifest) -> list[Edge]:
    return [
        Edge(reference.name, reference.output, role, child.name)
        for role, references in child.inputs.items()
        for reference in references
    ]


def descendants(store: Store, manifest: Manifest) -> list[Edge]:
    """Every edge below an artifact, nearest first, of what can be read; see `ingot ls`."""
    children: dict[tuple[str, str], list[Edge]] = {}
    damaged: list[CorruptArtifact] = []
    for child in store.manifests(on_damage=damaged.append):
        upward = _input_edges(child)
        if child.interim_of is not None:
            run = (child.stage, child.interim_of.run)
            upward += [Edge(run, output, ON_ITS_WAY, child.name) for output in child.outputs]
        for edge in upward:
            children.setdefault(edge.parent, []).append(edge)
    edges: list[Edge] = []
    waiting, seen = [manifest.name], {manifest.name}
    while waiting:
        for edge in children.get(waiting.pop(0), []):
            edges.append(edge)
            if edge.child not in seen:
                seen.add(edge.child)
                waiting.append(edge.child)
    return edges
