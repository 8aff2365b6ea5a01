"""What a run has committed while it goes on: an index beside its work, then in its manifest.

An entry is written before the payload it announces, so that a collection knows whose that payload
is, and again, with digests, once the artifact stands. A run that commits lists them in its own
manifest; until then, or until its work is given up, the index keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.manifest import Interim
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.store import Ref, Store
from artifacts_schema.store.verify import readable_manifest

_FOLDER = "interim"


def announce(backend: Backend, run: str, entry: Interim) -> None:
    """Write the entry of an artifact: first without outputs, then, once it stands, with them.

    An entry of the same artifact that has outputs stays: a run that was succeeded while it wrote
    this must not take back what its successor announced.
    """
    place = _place(run, entry.at)
    raw = json.dumps(entry.model_dump(), sort_keys=True).encode()
    if not entry.outputs and (
        backend.put_if_absent(place, raw) or _key_at(backend, place) == entry.key
    ):
        return
    backend.replace(place, raw)


def withdraw(backend: Backend, run: str, *, after: int) -> None:
    """Take entries behind `after` off the index: the run went back to there."""
    for place in _places(backend, run):
        if _at(place) > after:
            backend.remove(place)


def announced(backend: Backend, files: Iterable[str]) -> dict[str, list[str]]:
    """Keys of artifacts that runs announced, by run, from the index entries among `files`."""
    places = [path for path in files if _is_entry(path)]
    found: dict[str, list[str]] = {}
    for path, raw in backend.read_many(places).items():
        found.setdefault(path.split("/")[1], []).append(_parsed(path, raw).key)
    return found


def interims(store: Store, stage: str, run: str) -> list[Interim]:
    """What the run of `stage` with key `run` has committed on its way, in order.

    From its manifest, if it is over and that can be read, else from its index.
    """
    manifest = readable_manifest(store, stage, run)
    if manifest is not None:
        return list(manifest.interims)
    return noted(store.backend, run)


def noted(backend: Backend, run: str) -> list[Interim]:
    """The entries of a run's index whose artifacts stand, in order."""
    found = backend.read_many(_places(backend, run))
    entries = [_parsed(path, raw) for path, raw in found.items()]
    return sorted((one for one in entries if one.outputs), key=lambda one: one.at)


def name_interims(store: Store, name: str, stage: str, entries: Sequence[Interim]) -> None:
    """Let `NAME@LABEL` mean what a run called `name` committed on its way.

    Names of that form that an earlier run of the name left, and this one has not, are removed.
    """
    if not entries:
        return
    mine = {f"{name}@{one.label}": one.key for one in entries}
    standing = store.refs(f"{name}@")
    for ref, key in mine.items():
        if ref not in standing or standing[ref].key != key:
            store.set_ref(ref, stage, key)
    for ref, target in standing.items():
        if ref not in mine and _is_of_a_run(store, ref, target):
            store.backend.remove(layout.ref(ref))


def _is_of_a_run(store: Store, name: str, target: Ref) -> bool:
    """Whether a name is one that `name_interims` gave, and not a person's own.

    Nobody can tell while the manifest cannot be read, and the name stays.
    """
    manifest = readable_manifest(store, target.stage, target.key)
    made = manifest.interim_of if manifest is not None else None
    return made is not None and name.endswith(f"@{made.label}")


def _key_at(backend: Backend, place: str) -> str | None:
    """The key of the artifact that an entry announces."""
    raw = backend.read_many([place]).get(place)
    return None if raw is None else _parsed(place, raw).key


def _place(run: str, at: int) -> str:
    return layout.work(run, _FOLDER, f"{at:012d}.json")


def _places(backend: Backend, run: str) -> list[str]:
    folder = layout.work(run, _FOLDER)
    return [f"{folder}/{name}" for name in backend.files(folder) if name.endswith(".json")]


def _is_entry(path: str) -> bool:
    parts = path.split("/")
    return len(parts) == 4 and parts[2] == _FOLDER and path.endswith(".json")


def _at(place: str) -> int:
    return int(place.rsplit("/", 1)[1].removesuffix(".json"))


def _parsed(path: str, raw: bytes) -> Interim:
    try:
        return Interim.model_validate_json(raw)
    except ValueError:
        raise CorruptArtifact("not an index entry", where=path, hint="remove the file") from None
