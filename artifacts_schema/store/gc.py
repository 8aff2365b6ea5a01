"""What nothing refers to any more, and how to be rid of it.

Roots are the refs, the inputs of running work and what it has committed on its way, and whatever is
younger than a given age. From them the manifests are followed upwards; a run leads to what it
committed on its way. A manifest is removed before its payload, so an interrupted
collection leaves only payload that nobody can read, and the next one takes it.

Ages are by the clock of the store alone. Payload is listed before leases and leases before
manifests: payload that no run holds any more was committed before, or never will be.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend, Entry
from artifacts_schema.store.interim import announced
from artifacts_schema.store.lease import held_keys, is_held
from artifacts_schema.store.store import Store
from artifacts_schema.store.work import remove_work

Name = tuple[str, str]


@dataclass
class Garbage:
    """What a collection removes; nothing has been removed yet."""

    artifacts: list[Manifest] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    work: list[str] = field(default_factory=list)
    bytes: int = 0
    kept: int = 0


def plan_gc(
    store: Store,
    *,
    min_age_seconds: float = 86_400.0,
    idle_work: bool = False,
    now: float | None = None,
) -> Garbage:
    """List what is unreachable.

    `min_age_seconds` protects fresh artifacts that no ref names yet (by the time of their
    manifest); `idle_work` also takes resume state that no run holds.
    """
    backend = store.backend
    payloads = _sizes(backend, "data", backend.listing("data"), depth=3)
    work = _sizes(backend, "work", running := backend.listing("work"), depth=1)
    files = [f"work/{name}" for name in running]
    held = held_keys(backend, files)
    by_run = announced(backend, files)
    kept_work = by_run if not idle_work else held.intersection(by_run)
    on_the_way = {key for run in kept_work for key in by_run[run]}
    dated = {
        _manifest_name(path): entry.modified for path, entry in backend.listing("artifacts").items()
    }
    manifests = {(m.stage, m.key): m for m in store.manifests()}
    cutoff = (backend.now() if now is None else now) - min_age_seconds
    young = [name for name in manifests if dated.get(name, cutoff + 1) > cutoff]
    young += [name for name in manifests if name[1] in on_the_way]
    alive = _reachable(store, manifests, young, held)
    garbage = Garbage(kept=len(alive))
    for name, manifest in manifests.items():
        if name not in alive:
            garbage.artifacts.append(manifest)
            garbage.bytes += sum(output.bytes for output in manifest.outputs.values())
    written = held.union(*(by_run.get(run, ()) for run in held))
    for path, size in payloads.items():
        _, stage, key, attempt = path.split("/")
        standing = manifests.get((stage, key))
        if key not in written and (standing is None or standing.attempt != attempt):
            garbage.attempts.append(path)
            garbage.bytes += size
    committed = {key for _, key in manifests}
    for path, size in work.items():
        key = path.split("/")[1]
        if key not in held and (key in committed or idle_work):
            garbage.work.append(key)
            garbage.bytes += size
    return garbage


def collect(store: Store, garbage: Garbage) -> None:
    """Remove what `plan_gc` found."""
    for manifest in garbage.artifacts:
        remove_artifact(store, manifest)
    for path in garbage.attempts:
        store.backend.remove(path)
    for key in garbage.work:
        if not is_held(store.backend, key):
            remove_work(store.backend, key)


def remove_artifact(store: Store, manifest: Manifest) -> None:
    """Remove one artifact: first the manifest, then the payload."""
    store.backend.remove(layout.manifest(manifest.stage, manifest.key))
    store.backend.remove(layout.payload(manifest.stage, manifest.key))


def _reachable(
    store: Store, manifests: dict[Name, Manifest], young: Iterable[Name], held: Collection[str]
) -> set[Name]:
    waiting = [(ref.stage, ref.key) for ref in store.refs().values()]
    waiting += young
    specs = store.backend.read_many(layout.work(key, "spec.json") for key in held)
    for raw in specs.values():
        waiting += _inputs_of(raw)
    alive: set[Name] = set()
    while waiting:
        name = waiting.pop()
        if name in alive or name not in manifests:
            continue
        alive.add(name)
        waiting += [(name[0], one.key) for one in manifests[name].interims]
        for references in manifests[name].inputs.values():
            waiting += [(reference.stage, reference.key) for reference in references]
    return alive


def _inputs_of(spec: bytes) -> list[Name]:
    try:
        inputs = json.loads(spec)["inputs"].values()
    except ValueError:
        return []
    return [(r["stage"], r["key"]) for references in inputs for r in references]


def _manifest_name(path: str) -> Name:
    stage, _, name = path.partition("/")
    return stage, name.removesuffix(".json")


def _sizes(backend: Backend, root: str, files: Mapping[str, Entry], depth: int) -> dict[str, int]:
    """Bytes in each folder `depth` levels below `root`, by its path; a bucket has no empty ones."""
    found = dict.fromkeys(_folders(backend, root, depth) if backend.local else (), 0)
    for name, entry in files.items():
        parts = name.split("/")
        if len(parts) > depth:
            folder = "/".join((root, *parts[:depth]))
            found[folder] = found.get(folder, 0) + entry.bytes
    return dict(sorted(found.items()))


def _folders(backend: Backend, root: str, depth: int) -> list[str]:
    if depth == 0:
        return [root]
    below = (f"{root}/{name}" for name in backend.folders(root))
    return [folder for place in below for folder in _folders(backend, place, depth - 1)]
