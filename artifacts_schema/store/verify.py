"""Whether an artifact's bytes are the bytes that its manifest names, and records of damage.

Sizes are compared whenever an artifact is looked at; other damage is known once `ingot verify` has
read the bytes. It writes a record of what it found, so that a plan makes the artifact again. A
record belongs to one attempt and is ignored once the artifact has been made again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.blocks import hash_blocks
from artifacts_schema.errors import CorruptArtifact, StoreError
from artifacts_schema.file_table import File, digest_sizes
from artifacts_schema.identity import canonical_sha256, short
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import WITHOUT_PROGRAM, InputRef, Manifest
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend, Entry
from artifacts_schema.store.cache import cached_copy, is_hashed
from artifacts_schema.store.store import Store

if TYPE_CHECKING:
    import pyarrow.parquet as pq


log = logging.getLogger(__name__)
_FOOTER = 64 << 10
"""Bytes at the end of a Parquet file that nearly always hold its footer."""


@dataclass(frozen=True)
class Problem:
    """One file, or a statement of a manifest, that is not what it should be."""

    path: str
    what: str


def verify(store: Store, manifest: Manifest, *, full: bool = True) -> list[Problem]:
    """Every payload file that is missing, of another size, or (`full`) of other bytes.

    `full` also compares what the manifest says with the payload and with the artifacts it names:
    rows of tables, inputs, permanent checkpoints, what a snapshot or a list of documents holds.
    Raises StoreError if a folder cannot be read, or if no payload at all is in the store.
    """
    there = store.backend.listing(layout.payload(*manifest.name, manifest.attempt))
    if not there and manifest.count_files:
        store.check_mounted()
    problems = _table_problems(store, manifest, there, full=full)
    if not problems and (full or not _has_listed_sizes(manifest, there)):
        problems = _file_problems(store, manifest, there, full=full)
    if full and not problems:
        place = layout.manifest(*manifest.name)
        problems = [Problem(place, what) for what in _wrong_statements(store, manifest)]
    return problems


def _table_problems(
    store: Store, manifest: Manifest, there: Mapping[str, Entry], *, full: bool
) -> list[Problem]:
    """What is wrong with the file table; without it no file can be compared."""
    table = manifest.file_table
    if table is None:
        return []
    path = layout.file_table(*manifest.name, manifest.attempt)
    name = path.rpartition("/")[2]
    size = there[name].bytes if name in there else None
    file = File(path=name, bytes=table.bytes, sha256=table.sha256)
    what = _difference(store.backend, path, file, size, full=full)
    return [Problem(path, what)] if what else []


def _has_listed_sizes(manifest: Manifest, there: Mapping[str, Entry]) -> bool:
    """Whether the payload has exactly the names and sizes of the file table, which stays unread.

    False also where the manifest has no table, or where other files lie among the payload.
    """
    table = manifest.file_table
    if table is None:
        return False
    own = ((n, entry.bytes) for n, entry in there.items() if n.split("/", 1)[0] in manifest.outputs)
    return digest_sizes(own) == table.sizes


def _file_problems(
    store: Store, manifest: Manifest, there: Mapping[str, Entry], *, full: bool
) -> list[Problem]:
    """Every payload file that is not as the manifest says."""
    problems = []
    for name, output in manifest.outputs.items():
        try:
            files = output.files
        except CorruptArtifact as error:
            place = layout.manifest(*manifest.name)
            return [Problem(place, error.what)]
        for file in files:
            path = store.payload(manifest, name, file.path)
            entry = there.get(f"{name}/{file.path}")
            size = entry.bytes if entry is not None else None
            what = _difference(store.backend, path, file, size, full=full, output=name)
            # The tables of a snapshot come from outside: their rows were not counted.
            if what is None and full and output.kind != "snapshot":
                what = _wrong_rows(store.backend, path, file)
            if what:
                problems.append(Problem(path, what))
    return problems


def readable_manifest(store: Store, stage: str, key: str) -> Manifest | None:
    """The manifest of an artifact; None also if it cannot be read."""
    try:
        return store.manifest(stage, key)
    except CorruptArtifact:
        return None


def checked_path(
    backend: Backend,
    path: str,
    file: File,
    *,
    full: bool,
    owner: str,
    copied: bool = False,
    shared: bool = False,
) -> Path:
    """A file of this machine with the bytes of `file`: the store's own, or a verified copy of it.

    `copied` asks for a copy even of a store in a folder; that one is hashed when it is made, not
    again. `shared` says that other processes of this machine ask as well: one of them hashes the
    store's own file for all. Raises CorruptArtifact unless the stored bytes are those of `file`:
    its size, and `full` its sha256 (of a copy that is made now, always).
    """
    if backend.local and not copied:
        what = _difference(backend, path, file, backend.size(path), full=full and not shared)
        place = backend.local_path(path)
        if what is None and full and shared:
            is_same = is_hashed(
                place, file, lambda: hash_blocks(backend.blocks(path, file.bytes), 0)[0]
            )
            what = None if is_same else "the file's bytes changed"
        if what is None:
            return place
    else:
        try:
            return cached_copy(backend, path, file, full=full and not backend.local)
        except FileNotFoundError:
            what = "the file is gone"
        except CorruptArtifact as error:
            what = error.what
    raise CorruptArtifact(
        f"{what} since it was committed by {owner}",
        where=backend.full(path),
        hint="restore it, or make the artifact again: "
        f"ingot verify --repair {short(owner.split()[-1])}",
    )


def _difference(
    backend: Backend,
    path: str,
    file: File,
    size: int | None,
    *,
    full: bool,
    output: str | None = None,
) -> str | None:
    """How the stored file, of `size` bytes if it is there, differs from its manifest, or None.

    With `output` its table of blocks, which follows from its bytes, is put right where it is not.
    """
    if size is None:
        return "the file is gone"
    if size != file.bytes:
        return f"the file changed from {file.bytes:,} to {size:,} bytes"
    if full:
        sha256, hasher = hash_blocks(
            backend.blocks(path, size), file.blocks.bytes if file.blocks is not None else 0
        )
        if sha256 != file.sha256:
            return "the file's bytes changed"
        if file.blocks is not None and hasher.blocks != file.blocks:
            return "the manifest's checksum of its blocks is not that of its bytes"
        if output is not None and hasher.table is not None:
            _restore_table(backend, layout.block_table(path, output, file.path), hasher.table)
    return None


def _restore_table(backend: Backend, place: str, table: bytes) -> None:
    """Write a table of blocks that is gone or changed. One that cannot be written costs readers
    whole files, no more."""
    try:
        if backend.read_many([place]).get(place) != table:
            backend.replace(place, table)
            log.warning("%s: the table of blocks was gone or changed; written again", place)
    except StoreError as error:
        log.warning("%s: the table of blocks is gone or changed: %s", place, error)


def _wrong_rows(backend: Backend, path: str, file: File) -> str | None:
    """How the rows of a table differ from those that its manifest states; no digest covers them."""
    if not path.endswith(".parquet"):
        return None
    try:
        rows = _footer(backend, path, file.bytes).num_rows
    except ValueError:  # pyarrow.ArrowInvalid is one.
        return "it is not a Parquet file"
    return None if rows == file.rows else f"the manifest says {file.rows} rows, the file has {rows}"


def _footer(backend: Backend, path: str, size: int) -> pq.FileMetaData:
    """The footer of a Parquet file whose bytes were verified."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tail = backend.read(path, max(0, size - _FOOTER))
    needed = int.from_bytes(tail[-8:-4], "little") + 8
    if needed > len(tail):
        tail = backend.read(path, max(0, size - needed))
    return pq.read_metadata(pa.BufferReader(tail))


def _wrong_statements(store: Store, manifest: Manifest) -> Iterator[str]:
    """What a manifest says that neither its key nor a digest covers, and that can be looked up."""
    for name, output in manifest.outputs.items():
        known = KINDS.get(output.kind)
        if known is None or not 1 <= output.kind_version <= known.version:
            yield f"output '{name}' is of an unknown kind: {output.kind} {output.kind_version}"
    for role, references in manifest.inputs.items():
        for reference in references:
            if wrong := _wrong_reference(store, reference):
                yield f"input {role}: {wrong}"
    for one in manifest.interims:
        made = readable_manifest(store, manifest.stage, one.key)
        if made is None:
            continue  # Collected, or damaged itself: then it is reported there.
        digests = {name: output.digest for name, output in made.outputs.items()}
        mine = made.interim_of
        if mine is None or (mine.run, mine.at, mine.label) != (manifest.key, one.at, one.label):
            yield f"its checkpoint {one.label} is not of this run"
        elif digests != one.outputs:
            yield f"its checkpoint {one.label} holds other bytes"
    if manifest.stage in WITHOUT_PROGRAM:
        yield from _wrong_content(store, manifest)


def _wrong_reference(store: Store, reference: InputRef) -> str | None:
    """How the artifact that an input names differs from it; None also if it was collected."""
    made = readable_manifest(store, *reference.name)
    if made is None:
        return None
    name = f"{reference.stage} {short(reference.key)}"
    output = made.outputs.get(reference.output)
    if output is None:
        return f"{name} has no output '{reference.output}'"
    if (output.digest, output.kind) != (reference.digest, reference.kind):
        return f"'{reference.output}' of {name} holds other bytes"
    return None


def _wrong_content(store: Store, manifest: Manifest) -> Iterator[str]:
    """Of a snapshot or a list of documents: whether it holds what its identity says."""
    try:
        says, counts, config = _content(store, manifest)
    except (ValueError, KeyError, TypeError):
        yield f"it does not hold what a {manifest.stage} holds"
        return
    if manifest.identity != says:
        yield "its identity is not that of what it holds"
    if not counts.items() <= manifest.counts.items() or manifest.config != config:
        yield "its counts or its config are not those of what it holds"


def _content(
    store: Store, manifest: Manifest
) -> tuple[dict[str, Any], dict[str, int], dict[str, Any]]:
    """Identity, counts and config that follow from the payload."""
    ((name, output),) = manifest.outputs.items()
    (file,) = (one for one in output.files if "/" not in one.path)
    raw = store.backend.read(store.payload(manifest, name, file.path))
    if manifest.stage == "snapshot":
        listing = json.loads(raw)
        rows = listing["files"]
        counts = {"files": len(rows), "bytes": sum(row["bytes"] for row in rows)}
        snapshot = str(listing["name"])
        return {"name": snapshot, "files": canonical_sha256(rows)}, counts, {"name": snapshot}
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pq.read_table(pa.BufferReader(raw)).to_pylist()
    return {"documents": canonical_sha256(rows)}, {"documents": len(rows)}, {}


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
    return Committed(manifest, describe_problems(problems) if problems else None)


def describe_problems(problems: Sequence[Problem]) -> str:
    """The first problem in a few words, and how many more there are."""
    first = problems[0]
    file = f"{first.path.split('/', 4)[-1]}: " if first.path.startswith("data/") else ""
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    return f"{file}{first.what}{more}"


def record_damage(store: Store, manifest: Manifest, problems: Sequence[Problem]) -> None:
    """Write down what is wrong with an artifact; with no problems, remove what was written."""
    if not problems:
        clear_damage(store, *manifest.name)
        return
    plain = [{"path": problem.path, "what": problem.what} for problem in problems]
    raw = json.dumps({"attempt": manifest.attempt, "problems": plain}, indent=1).encode()
    store.backend.replace(layout.damage(*manifest.name), raw)


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
    path = layout.damage(*manifest.name)
    try:
        value = json.loads(store.backend.read(path))
        if value["attempt"] != manifest.attempt:
            return []
        return [Problem(str(one["path"]), str(one["what"])) for one in value["problems"]]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError):
        return [Problem(path, "the record of its damage cannot be read: run `ingot verify`")]
