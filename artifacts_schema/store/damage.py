"""What is known to be wrong with artifacts, so that a plan makes them again.

Sizes are compared whenever an artifact is looked at; other damage is known once `ingot verify` has
read the bytes. It writes down what it found. A record is of one attempt, so it means nothing any
more once the artifact has been made again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import layout
from artifacts_schema.store.store import Store
from artifacts_schema.store.verify import Problem, verify


@dataclass(frozen=True)
class Committed:
    """What was committed under a key: whole if `damage` is None, else what is wrong with it.

    `manifest` is None if nothing was committed, or if the manifest cannot be read.
    """

    manifest: Manifest | None
    damage: str | None = None

    @property
    def whole(self) -> Manifest | None:
        """The manifest, unless the artifact is damaged."""
        return self.manifest if self.damage is None else None


def find_committed(
    store: Store,
    stage: str,
    key: str,
    *,
    outputs: Collection[str] = (),
    records: Collection[str] | None = None,
) -> Committed:
    """The artifact under a key, checked by sizes and by what `ingot verify` found.

    `outputs` are those that it must have. `records` are the places of all records of damage, for a
    caller that asks about many artifacts and has listed them (`damage_records`); None: each is
    looked for. Raises StoreError if the store cannot be read.
    """
    try:
        manifest = store.manifest(stage, key)
    except CorruptArtifact as error:
        return Committed(None, error.what)
    if manifest is None:
        return Committed(None)
    missing = sorted(set(outputs) - manifest.outputs.keys())
    if missing:
        return Committed(manifest, f"the manifest has no output '{missing[0]}'")
    problems = verify(store, manifest, full=False)
    if not problems and (records is None or layout.damage(stage, key) in records):
        problems = recorded_damage(store, manifest)
    return Committed(manifest, describe(problems) if problems else None)


def describe(problems: Sequence[Problem]) -> str:
    """The first problem in a few words, and how many more there are."""
    first = problems[0]
    file = f"{first.path.split('/', 4)[-1]}: " if first.path.startswith("data/") else ""
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    return f"{file}{first.what}{more}"


def record_damage(store: Store, manifest: Manifest, problems: Sequence[Problem]) -> None:
    """Write down what is wrong with an artifact; with no problems, remove what was written."""
    if not problems:
        clear_damage(store, manifest.stage, manifest.key)
        return
    plain = [{"path": problem.path, "what": problem.what} for problem in problems]
    raw = json.dumps({"attempt": manifest.attempt, "problems": plain}, indent=1).encode()
    store.backend.replace(layout.damage(manifest.stage, manifest.key), raw)


def clear_damage(store: Store, stage: str, key: str) -> None:
    """Remove what was written about an artifact."""
    path = layout.damage(stage, key)
    store.backend.remove(path)
    store.backend.remove_empty(path.rpartition("/")[0])


def damage_records(store: Store) -> set[str]:
    """The places of all records of damage, by one listing."""
    return {f"damage/{name}" for name in store.backend.files("damage")}


def recorded_damage(store: Store, manifest: Manifest) -> list[Problem]:
    """What was written about this very attempt at the artifact."""
    path = layout.damage(manifest.stage, manifest.key)
    try:
        value = json.loads(store.backend.read(path))
        if value["attempt"] != manifest.attempt:
            return []
        return [Problem(str(one["path"]), str(one["what"])) for one in value["problems"]]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError):
        return [Problem(path, "the record of its damage cannot be read: run `ingot verify`")]
