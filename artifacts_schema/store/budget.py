"""Which names to drop so that a store takes no more than a budget, the longest unused first.

A name is as old as its file: every run writes the names of what it made or reused. What a name
frees is what no newer name, no run and no young artifact needs, so artifacts that several names
share are counted once, with the newest of them. Names whose drop would free nothing are kept.
Names of snapshots and of lists of forgotten documents are never dropped: no run makes those again.

Bytes are those of all files below `artifacts`, `data`, `damage`, `refs`, `work` and `runs`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from artifacts_schema.manifest import WITHOUT_PROGRAM, Manifest
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Entry
from artifacts_schema.store.gc import Garbage, Name, parents_of, plan_gc
from artifacts_schema.store.store import Ref, Store

_FOLDERS = ("artifacts", "data", "damage", "refs", "work", "runs")
_NAMES, _KEPT_NAMES = "names", "names that are kept"
_REST = "resume state, records and unfinished work"


@dataclass(frozen=True)
class Drop:
    """A name to drop, and what goes with it once those before it in the list are dropped."""

    ref: str
    target: Ref
    named: float
    """When it was last written, by the store's clock."""
    artifacts: int
    bytes: int


@dataclass(frozen=True)
class BudgetPlan:
    """A proposal; `bytes_after` is what the store takes once it is carried out."""

    budget: int
    bytes_now: int
    bytes_after: int
    garbage: Garbage
    """What goes already, without a name being dropped."""
    garbage_bytes: int
    drops: tuple[Drop, ...]
    held: dict[str, int]
    """Bytes that stay, by what holds them; an artifact that several hold is counted once."""

    @property
    def is_reached(self) -> bool:
        """Whether the store keeps within the budget afterwards."""
        return self.bytes_after <= self.budget


def plan_budget(
    store: Store,
    budget: int,
    *,
    min_age_seconds: float = 86_400.0,
    idle_work: bool = False,
    keep: Callable[[str], bool] = lambda ref: False,
) -> BudgetPlan:
    """Propose names to drop until the store takes `budget` bytes or less; changes nothing.

    `keep` tells which names stay whatever they hold; the rest as for `plan_gc`. While a manifest, a
    name or a run record cannot be read, nothing is proposed. Raises StoreError if the store's
    payload is not mounted.
    """
    garbage = plan_gc(store, min_age_seconds=min_age_seconds, idle_work=idle_work)
    files = {
        f"{folder}/{name}": entry
        for folder in _FOLDERS
        for name, entry in store.backend.listing(folder).items()
    }
    now = sum(entry.bytes for entry in files.values())
    sizes = _artifact_sizes(garbage.known, files)
    freed = sum(sizes[m.name] for m in garbage.artifacts)
    freed += sum(garbage.sizes[name] for name in (*garbage.attempts, *garbage.work))
    if store.backend.local:  # Else they lie on this machine, outside of the store.
        freed += sum(garbage.sizes[name] for name in garbage.launch)
    if garbage.unreadable:
        unread = {"artifacts, while something cannot be read": now - freed}
        return BudgetPlan(budget, now, now - freed, garbage, freed, (), unread)
    refs = {
        name: ref for name, ref in store.refs().items() if (ref.stage, ref.key) in garbage.known
    }
    fixed = {name for name, ref in refs.items() if ref.stage in WITHOUT_PROGRAM or keep(name)}
    dated = {name: files[layout.ref(name)] for name in refs if layout.ref(name) in files}
    oldest = sorted(dated.keys() - fixed, key=lambda name: (dated[name].modified, name))
    holders: dict[str, Collection[Name]] = {**garbage.roots}
    holders[_KEPT_NAMES] = [(refs[name].stage, refs[name].key) for name in sorted(fixed)]
    newest = {f"{_NAMES} {n}": [(refs[n].stage, refs[n].key)] for n in reversed(oldest)}
    owned = _first_holders(garbage.known, {**holders, **newest})
    goes: dict[str, list[Name]] = {}
    for one, holder in owned.items():
        goes.setdefault(holder, []).append(one)
    drops = []
    for name in oldest:
        mine = goes.get(f"{_NAMES} {name}", [])
        size = sum(sizes[one] for one in mine) + dated[name].bytes
        drops.append(Drop(name, refs[name], dated[name].modified, len(mine), size))
    drops = _choose(drops, owned, now - freed, budget)
    dropped = {f"{_NAMES} {drop.ref}" for drop in drops}
    after = now - freed - sum(drop.bytes for drop in drops)
    held: dict[str, int] = {}
    for holder, names in goes.items():
        if holder not in dropped:
            group = holder if holder in holders else _NAMES
            held[group] = held.get(group, 0) + sum(sizes[one] for one in names)
    held[_REST] = after - sum(held.values())
    return BudgetPlan(budget, now, after, garbage, freed, tuple(drops), held)


def _choose(drops: Sequence[Drop], owned: Mapping[Name, str], size: int, budget: int) -> list[Drop]:
    """The first of `drops` that bring `size` bytes down to the budget, without the needless ones.

    A name whose artifact stays for another holder frees no more than its own file.
    """
    chosen: list[Drop] = []
    for drop in drops:
        if size <= budget:
            break
        chosen.append(drop)
        size -= drop.bytes
    dropped = {f"{_NAMES} {drop.ref}" for drop in chosen}
    reached = size <= budget
    for drop in tuple(chosen):
        needless = owned[drop.target.stage, drop.target.key] not in dropped
        if needless and not (reached and size + drop.bytes > budget):
            chosen.remove(drop)
            size += drop.bytes
    return chosen


def drop_refs(store: Store, plan: BudgetPlan) -> list[str]:
    """Drop the names of a proposal; returns those dropped.

    One that was written since, or points elsewhere by now, stays. A collection follows it.
    """
    dated = store.backend.listing("refs")
    dropped = []
    for drop in plan.drops:
        entry = dated.get(layout.ref(drop.ref).removeprefix("refs/"))
        unchanged = entry is not None and entry.modified == drop.named
        if unchanged and store.ref(drop.ref) == drop.target:
            store.backend.remove(layout.ref(drop.ref))
            dropped.append(drop.ref)
    return dropped


def _first_holders(
    known: Mapping[Name, Manifest], holders: Mapping[str, Collection[Name]]
) -> dict[Name, str]:
    """Each artifact → the first of `holders` (name → roots) that reaches it."""
    owned: dict[Name, str] = {}
    for holder, roots in holders.items():
        waiting = list(roots)
        while waiting:
            one = waiting.pop()
            if one not in owned and one in known:
                owned[one] = holder
                waiting += parents_of(known[one])
    return owned


def _artifact_sizes(known: Mapping[Name, Manifest], files: Mapping[str, Entry]) -> dict[Name, int]:
    """Bytes of all that goes with an artifact: manifest, payload with telemetry, damage record."""
    payload: dict[str, int] = {}
    for path, entry in files.items():
        if path.startswith("data/"):
            folder = "/".join(path.split("/")[:4])
            payload[folder] = payload.get(folder, 0) + entry.bytes
    return {
        name: payload.get(layout.payload(*name, manifest.attempt), 0)
        + sum(
            files[path].bytes
            for path in (layout.manifest(*name), layout.damage(*name))
            if path in files
        )
        for name, manifest in known.items()
    }
