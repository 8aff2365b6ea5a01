"""Garbage collection: what nothing refers to any more, and its removal.

Roots are the refs, the inputs of running work and what it has committed on its way, the steps of
running runs, and whatever is younger than a given age. From them the manifests are followed
upwards; a run leads to its interim artifacts. While a manifest cannot be read, it is unknown
what it names, and no artifact is removed. While an artifact is damaged, no attempt at its key is
removed: its manifest may name the wrong one (no checksum covers that name).

Ages are by the clock of the store alone. Payload is listed before leases and leases before
manifests: payload that no run holds any more was committed before, or never will be.

A run may name an artifact while it is being removed. So each removal holds the lease of its key,
and asks for the roots twice: before its manifest goes, and after that. If it is named by then, or
if the second look fails, its manifest is put back. A run names first and looks afterwards, so one
of the two sees the other. Payload goes last; a collection that is killed leaves only payload that
nobody can read, and the next one takes it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain

from artifacts_schema.errors import CorruptArtifact, Stopped, StoreError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend, Entry, LocalBackend
from artifacts_schema.store.commit import announced_keys
from artifacts_schema.store.lease import (
    Lease,
    Record,
    held_keys,
    hold_lease,
    local_work,
    process_is_gone,
    remove_local_work,
)
from artifacts_schema.store.runs import Run
from artifacts_schema.store.store import Store
from artifacts_schema.store.verify import clear_damage, find_committed

Name = tuple[str, str]

LAUNCH_SECONDS = 3600.0
"""A child reads its spec within seconds of its start; older launch files are of killed runs."""
RUN_SECONDS = 30 * 86_400.0
"""A record that says `running` and was not written for so long is of a run that was killed; of a
run of this machine the process tells."""
_AT_ONCE = 64
"""Artifacts, or attempts at them, that are removed between two looks at the roots."""


@dataclass
class Garbage:
    """What a collection removes, or has removed."""

    artifacts: list[Manifest] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    work: list[str] = field(default_factory=list)
    launch: list[str] = field(default_factory=list)
    """Files that started children of runs which are over, on this machine."""
    unreadable: list[CorruptArtifact] = field(default_factory=list)
    """Manifests, names and run records that cannot be read: every artifact is kept meanwhile."""
    kept: int = 0
    idle_work: bool = False
    by_name: bool = False
    """Whether the artifacts go although something refers to them."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each attempt, work folder and launch file."""
    known: dict[Name, Manifest] = field(default_factory=dict)
    young: frozenset[Name] = frozenset()
    roots: dict[str, list[Name]] = field(default_factory=dict)
    """What keeps artifacts apart from names: in words → the artifacts that it leads to first."""

    @property
    def bytes(self) -> int:
        """Bytes of all that is listed."""
        names = (*self.attempts, *self.work, *self.launch)
        return sum(m.size for m in self.artifacts) + sum(self.sizes[name] for name in names)


def plan_gc(
    store: Store,
    *,
    min_age_seconds: float = 86_400.0,
    idle_work: bool = False,
    now: float | None = None,
) -> Garbage:
    """List what is unreachable.

    `min_age_seconds` protects fresh artifacts that no ref names yet (by the time of their
    manifest); `idle_work` also takes resume state that no run holds. Raises StoreError if the
    store's payload is not mounted.
    """
    if not min_age_seconds < float("inf"):
        raise ValueError(f"min_age_seconds is {min_age_seconds}, and must be a finite number")
    store.check_mounted()
    backend = store.backend
    payloads = _sizes(backend, "data", backend.listing("data"), depth=3)
    work = _sizes(backend, "work", files := backend.listing("work"), depth=1)
    running = _running(backend, [f"work/{name}" for name in files])
    held = running.held
    dated = {
        tuple(path.removesuffix(".json").split("/", 1)): entry.modified
        for path, entry in backend.listing("artifacts").items()
    }
    garbage = Garbage(idle_work=idle_work)
    garbage.known = {m.name: m for m in store.manifests(on_damage=garbage.unreadable.append)}
    cutoff = (backend.now() if now is None else now) - min_age_seconds
    garbage.young = frozenset(n for n in garbage.known if dated.get(n, cutoff + 1) > cutoff)
    alive = _reachable(store, garbage, garbage.known, running)
    garbage.kept = len(alive)
    garbage.artifacts = [m for name, m in garbage.known.items() if name not in alive]
    committed = set(store.keys())
    written = held.union(*(running.announced.get(run, ()) for run in held))
    committed_artifact = cache(partial(find_committed, store))
    for path, size in payloads.items():
        _, stage, key, attempt = path.split("/")
        name = (stage, key)
        manifest = garbage.known.get(name)
        if key in written or (manifest is not None and manifest.attempt == attempt):
            continue
        if name in committed and (manifest is None or committed_artifact(*name).damage is not None):
            continue
        garbage.attempts.append(path)
        garbage.sizes[path] = size
    done = {key: stage for stage, key in committed}
    for path, size in work.items():
        key = path.split("/")[1]
        if key == "launch" or key in held:
            continue
        if idle_work or (key in done and committed_artifact(done[key], key).whole):
            garbage.work.append(key)
            garbage.sizes[key] = size
    _add_launch_files(backend, garbage, held, max(LAUNCH_SECONDS, min_age_seconds))
    return garbage


def collect(store: Store, garbage: Garbage) -> Garbage:
    """Remove what `plan_gc` listed and nothing needs by now; returns what was removed."""
    store.check_mounted()
    removed = Garbage(kept=garbage.kept, unreadable=garbage.unreadable, sizes=garbage.sizes)
    for start in range(0, len(garbage.artifacts), _AT_ONCE):
        batch = garbage.artifacts[start : start + _AT_ONCE]
        removed.artifacts += _remove_artifacts(store, garbage, batch)
    removed.kept += len(garbage.artifacts) - len(removed.artifacts)
    for start in range(0, len(garbage.attempts), _AT_ONCE):
        removed.attempts += _remove_attempts(store, garbage.attempts[start : start + _AT_ONCE])
    removed.work = [key for key in garbage.work if _remove_work(store.backend, key)]
    launch = LocalBackend(str(local_work(store.backend, "launch")))
    for name in garbage.launch:
        launch.remove(name)
    removed.launch = garbage.launch
    return removed


def remove_artifact(store: Store, manifest: Manifest) -> None:
    """Remove one artifact even if others need it: first the manifest, then the payload."""
    store.backend.remove(layout.manifest(*manifest.name))
    _remove_payload(store, manifest)


def _remove_payload(store: Store, manifest: Manifest) -> None:
    store.backend.remove(layout.payload(manifest.stage, manifest.key, manifest.attempt))
    store.backend.remove_empty(layout.payload(*manifest.name))
    clear_damage(store, *manifest.name)


def _remove_artifacts(store: Store, garbage: Garbage, batch: Sequence[Manifest]) -> list[Manifest]:
    """Returns those of `batch` that are removed: not held, made again or named meanwhile."""
    backend = store.backend
    away: dict[Name, bytes] = {}
    with ExitStack() as leases:
        mine = _take_all(leases, backend, [m.key for m in batch])
        held = [m for m in batch if m.key in mine]
        try:
            for manifest in _unneeded(store, garbage, held):
                path = layout.manifest(*manifest.name)
                raw = backend.read_many([path]).get(path)
                if raw is None or manifest.attempt.encode() not in raw:
                    continue
                if mine[manifest.key].is_mine():  # It may have been suspended and succeeded.
                    away[manifest.name] = raw
                    backend.remove(path)
            taken = [m for m in held if m.name in away]
            removed = _unneeded(store, garbage, taken)
            needed = away.keys() - {m.name for m in removed}
            _put_back(backend, {name: away[name] for name in needed})
            for manifest in removed:
                del away[manifest.name]
                _remove_payload(store, manifest)
        except BaseException:
            _put_back(backend, away)
            raise
        return removed


def _put_back(backend: Backend, manifests: Mapping[Name, bytes]) -> None:
    """Put back manifests whose payload is whole. One that fails keeps back no other."""
    failure: Exception | None = None
    for name, raw in manifests.items():
        try:
            backend.put_if_absent(layout.manifest(*name), raw)
        except (OSError, StoreError) as error:
            failure = error
    if failure is not None:
        raise failure


def _unneeded(store: Store, garbage: Garbage, artifacts: Sequence[Manifest]) -> list[Manifest]:
    """Those of `artifacts` that nothing needs now."""
    if garbage.by_name or not artifacts:
        return list(artifacts)
    known = dict(garbage.known)
    fresh = Garbage(idle_work=garbage.idle_work)
    running = _running(store.backend)
    committed = store.keys()
    for name in committed:
        if name not in known:
            try:
                manifest = store.manifest(*name)
            except CorruptArtifact as error:
                fresh.unreadable.append(error)
                continue
            if manifest is not None:
                known[name] = manifest
    fresh.young = garbage.young.union(known.keys() - garbage.known.keys())
    alive = _reachable(store, fresh, known, running)
    return [m for m in artifacts if m.name not in alive]


def _remove_attempts(store: Store, paths: Sequence[str]) -> list[str]:
    """Remove attempts at artifacts; returns those that no run holds or announced, nor committed."""
    backend, removed = store.backend, []
    committed_artifact = cache(partial(find_committed, store))
    with ExitStack() as leases:
        mine = _take_all(leases, backend, [path.split("/")[2] for path in paths])
        running = _running(backend)
        runs = running.held - {key for key, lease in mine.items() if lease.is_mine()}
        on_the_way = {key for run in runs for key in running.announced.get(run, ())}
        for path in paths:
            _, stage, key, attempt = path.split("/")
            if key not in mine or key in on_the_way:
                continue
            artifact = committed_artifact(stage, key)
            named = artifact.manifest is not None and artifact.manifest.attempt == attempt
            if artifact.damage is None and not named and mine[key].is_mine():
                backend.remove(path)
                backend.remove_empty(layout.payload(stage, key))
                removed.append(path)
    return removed


def _remove_work(backend: Backend, key: str) -> bool:
    """Remove the resume state of a key, unless a run holds it."""
    with ExitStack() as leases:
        lease = _take(leases, backend, key)
        if lease is None:
            return False
        mine = layout.work(key, "lease")
        names = {name.split("/")[0] for name in backend.files(layout.work(key))}
        for name in sorted(names | set(backend.folders(layout.work(key)))):
            if not lease.is_mine():
                return False
            if name != "lease":
                backend.remove(layout.work(key, name))
        if not backend.local:
            remove_local_work(backend, key)
        for name in backend.files(mine)[:-1]:
            backend.remove(f"{mine}/{name}")
    return True


def _take_all(leases: ExitStack, backend: Backend, keys: Iterable[str]) -> dict[str, Lease]:
    """The leases of those of `keys` that no run holds, held until `leases` ends."""
    taken = {key: _take(leases, backend, key) for key in dict.fromkeys(keys)}
    return {key: lease for key, lease in taken.items() if lease is not None}


def _take(leases: ExitStack, backend: Backend, key: str) -> Lease | None:
    """Hold the lease of `key` until `leases` ends; None if a run holds it."""
    try:
        return leases.enter_context(hold_lease(backend, key, wait=False))
    except Stopped:
        return None


def _reachable(
    store: Store, garbage: Garbage, known: Mapping[Name, Manifest], running: _Running
) -> set[Name]:
    """What some root reaches, of the manifests at hand: all, while something cannot be read."""
    by_run = running.announced
    kept_work = by_run if not garbage.idle_work else running.held.intersection(by_run)
    on_the_way = {key for run in kept_work for key in by_run[run]}
    garbage.roots = {
        "running work": running.inputs,
        "runs in progress": _steps_of_runs(store.backend, garbage.unreadable),
        "resume state": [name for name in known if name[1] in on_the_way],
        "their age": sorted(garbage.young),
    }
    named = store.refs(on_damage=garbage.unreadable.append).values()
    waiting = [(ref.stage, ref.key) for ref in named]
    waiting += chain.from_iterable(garbage.roots.values())
    if garbage.unreadable:
        return set(known)
    alive: set[Name] = set()
    while waiting:
        name = waiting.pop()
        if name in alive or name not in known:
            continue
        alive.add(name)
        waiting += parents_of(known[name])
    return alive


def parents_of(manifest: Manifest) -> list[Name]:
    """What an artifact keeps: all that it read, and what its run committed on its way."""
    interims = [(manifest.stage, one.key) for one in manifest.interims]
    return interims + [reference.name for reference in manifest.references]


@dataclass(frozen=True)
class _Running:
    """The running work of a store."""

    held: set[str]
    """Keys that runs hold."""
    announced: dict[str, list[str]]
    """What each run that has work here announced."""
    inputs: list[Name]
    """What the runs read."""


def _running(backend: Backend, files: Iterable[str] | None = None) -> _Running:
    """The running work, from the files of all work folders.

    Asked before the manifests: what is over by then has committed, and is among them.
    """
    if files is None:
        files = [
            f"{folder}/{name}"
            for key in backend.folders("work")
            for folder in (layout.work(key, "lease"), layout.work(key, "interim"))
            for name in backend.files(folder)
        ]
    files = list(files)
    held = held_keys(backend, files)
    specs = backend.read_many(layout.work(key, "spec.json") for key in held)
    inputs = [name for raw in specs.values() for name in _spec_inputs(raw)]
    return _Running(held, announced_keys(backend, files), inputs)


def _steps_of_runs(backend: Backend, unreadable: list[CorruptArtifact]) -> list[Name]:
    """What running runs have reused or made so far, and the snapshots that they read."""
    since = backend.now() - RUN_SECONDS
    paths = [f"runs/{n}" for n, entry in backend.listing("runs").items() if entry.modified > since]
    names: list[Name] = []
    for path, raw in backend.read_many(paths).items():
        try:
            run = Run.load(raw, where=path)
        except CorruptArtifact as error:
            unreadable.append(error)
            continue
        process = Record("", run.machine, run.process, run.process_started)
        if run.state == "running" and not process_is_gone(process):
            names += [(step.stage, step.key) for step in run.steps if step.key is not None]
            names += [("snapshot", key) for key in run.snapshots.values()]
    return names


def _spec_inputs(spec: bytes) -> list[Name]:
    try:
        inputs = json.loads(spec)["inputs"].values()
    except ValueError:
        return []
    return [(r["stage"], r["key"]) for references in inputs for r in references]


def _add_launch_files(
    backend: Backend, garbage: Garbage, held: Collection[str], min_age: float
) -> None:
    """List what started children that are over: their specs, and what they printed."""
    launch = LocalBackend(str(local_work(backend, "launch")))
    running = tuple(short(key) for key in held)
    for name, entry in launch.listing("").items():
        if time.time() - entry.modified > min_age and not name.startswith(running):
            garbage.launch.append(name)
            garbage.sizes[name] = entry.bytes


def _sizes(backend: Backend, root: str, files: Mapping[str, Entry], depth: int) -> dict[str, int]:
    """Bytes in each folder `depth` levels below `root`, by its path; a bucket has no empty ones."""
    sizes = dict.fromkeys(_folders(backend, root, depth) if backend.local else (), 0)
    for name, entry in files.items():
        parts = name.split("/")
        if len(parts) > depth:
            folder = "/".join((root, *parts[:depth]))
            sizes[folder] = sizes.get(folder, 0) + entry.bytes
    return dict(sorted(sizes.items()))


def _folders(backend: Backend, root: str, depth: int) -> list[str]:
    if depth == 0:
        return [root]
    below = (f"{root}/{name}" for name in backend.folders(root))
    return [folder for place in below for folder in _folders(backend, place, depth - 1)]
