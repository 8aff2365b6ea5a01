"""What nothing refers to any more, and how to be rid of it.

Roots are the refs, the inputs of running work, and whatever is younger than a given age. From them
the manifests are followed upwards. A manifest is removed before its payload, so an interrupted
collection leaves only payload that nobody can read, and the next one takes it.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import layout
from artifacts_schema.store.lease import is_held
from artifacts_schema.store.store import Store

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
    manifests = {(m.stage, m.key): m for m in store.manifests()}
    cutoff = (time.time() if now is None else now) - min_age_seconds
    alive = _reachable(store, manifests, cutoff)
    garbage = Garbage(kept=len(alive))
    for name, manifest in manifests.items():
        if name not in alive:
            garbage.artifacts.append(manifest)
            garbage.bytes += sum(output.bytes for output in manifest.outputs.values())
    _stray_attempts(store, manifests, garbage)
    for key in store.backend.folders("work"):
        committed = any(name[1] == key for name in manifests)
        if not is_held(store.backend, key) and (committed or idle_work):
            garbage.work.append(key)
            garbage.bytes += _size(store, layout.work(key))
    return garbage


def collect(store: Store, garbage: Garbage) -> None:
    """Remove what `plan_gc` found."""
    for manifest in garbage.artifacts:
        remove_artifact(store, manifest)
    for path in garbage.attempts:
        store.backend.remove(path)
    for key in garbage.work:
        store.backend.remove(layout.work(key))


def remove_artifact(store: Store, manifest: Manifest) -> None:
    """Remove one artifact: first the manifest, then the payload."""
    store.backend.remove(layout.manifest(manifest.stage, manifest.key))
    store.backend.remove(layout.payload(manifest.stage, manifest.key))


def _reachable(store: Store, manifests: dict[Name, Manifest], cutoff: float) -> set[Name]:
    waiting = [(ref.stage, ref.key) for ref in store.refs().values()]
    waiting += [name for name in manifests if _modified(store, name) > cutoff]
    for key in store.backend.folders("work"):
        if is_held(store.backend, key):
            waiting += _inputs_of_work(store, key)
    alive: set[Name] = set()
    while waiting:
        name = waiting.pop()
        if name in alive or name not in manifests:
            continue
        alive.add(name)
        for references in manifests[name].inputs.values():
            waiting += [(reference.stage, reference.key) for reference in references]
    return alive


def _inputs_of_work(store: Store, key: str) -> list[Name]:
    try:
        spec = json.loads(store.backend.read(layout.work(key, "spec.json")))
    except (FileNotFoundError, ValueError):
        return []
    return [(r["stage"], r["key"]) for references in spec["inputs"].values() for r in references]


def _stray_attempts(store: Store, manifests: dict[Name, Manifest], garbage: Garbage) -> None:
    for stage in store.backend.folders("data"):
        for key in store.backend.folders(f"data/{stage}"):
            manifest = manifests.get((stage, key))
            if is_held(store.backend, key):
                continue
            for attempt in store.backend.folders(f"data/{stage}/{key}"):
                if manifest is None or attempt != manifest.attempt:
                    path = layout.payload(stage, key, attempt)
                    garbage.attempts.append(path)
                    garbage.bytes += _size(store, path)


def _modified(store: Store, name: Name) -> float:
    path = store.backend.full(layout.manifest(*name))
    try:
        return float(store.backend.fs.modified(path).timestamp())
    except FileNotFoundError:
        return 0.0


def _size(store: Store, folder: str) -> int:
    return sum(store.backend.size(f"{folder}/{name}") or 0 for name in store.backend.files(folder))
