"""Snapshots: files from outside, pinned by name, size and checksum when a plan is made.

A snapshot is identified by its name and its files alone, so a changed file is a new snapshot and a
moved folder is not. The locations of the files are written next to the store's refs, unhashed.
Checksums are cached by (path, size, change time), so planning again costs one `stat` a file. A file
behind a URL is pinned by its server's ETag: a provisional identity, since nobody has read its bytes
yet.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from artifacts_schema.errors import InputError, UsageError, is_utf8
from artifacts_schema.files import file_state, open_regular
from artifacts_schema.identity import artifact_key, canonical_json, canonical_sha256
from artifacts_schema.manifest import Code, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.commit import Attempt, commit
from artifacts_schema.store.lease import hold_lease
from artifacts_schema.store.listed import list_snapshots
from artifacts_schema.store.verify import find_committed, record_damage, verify
from flows.recipe.remote_files import (
    fetch_identities,
    list_hub_files,
    match_urls,
    read_path_list,
)
from flows.recipe.snapshot_entry import MAGIC, ProgressCallback, SnapshotFiles, anchor_folder
from stages.engine.remote import Identity, is_url
from stages.engine.sources import KnownFiles

_BLOCK = 1 << 20


def match_files(source: SnapshotFiles, pattern: str) -> list[tuple[str, str]]:
    """(name, absolute path) of every file that matches `pattern`, hidden ones skipped."""
    anchor = os.path.realpath(anchor_folder(source))
    full = os.path.normpath(os.path.join(anchor, os.path.expanduser(pattern)))
    # Names begin in the root, in the folder itself, or in the fixed folder of a pattern.
    start = Path(anchor if source.root is not None else full)
    if source.root is None and not os.path.isdir(full):
        parts = full.split(os.sep)
        fixed = next((i for i, part in enumerate(parts) if MAGIC & set(part)), len(parts) - 1)
        start = Path(os.sep.join(parts[:fixed]) or os.sep)
    matches = _expand_pattern(full) if MAGIC & set(pattern) else [full]
    files = [path for match in matches for path in _list_files(match)]
    for path in files:
        if not Path(path).is_relative_to(start):
            raise UsageError(f"'{path}' is outside the root {start}", where=source.where)
        if not is_utf8(path):
            raise InputError("the file's name is not UTF-8", where=path, hint="rename it")
    return [(Path(path).relative_to(start).as_posix(), path) for path in files]


def hash_files(
    known: KnownFiles, paths: Sequence[str], progress: ProgressCallback | None = None
) -> dict[str, tuple[int, str]]:
    """Size and sha256 by path; only files that changed since they were last read are read.

    Raises InputError for a file that cannot be read, is not regular, or changes meanwhile.
    """
    sums: dict[str, tuple[int, str]] = {}
    unknown: list[tuple[str, int]] = []
    for path in paths:
        try:
            status = os.stat(path)
        except OSError as error:
            _raise_unreadable(error, path)
        sha256 = known.sha256(path, status)
        if sha256 is None:
            unknown.append((path, status.st_size))
        else:
            sums[path] = status.st_size, sha256
    total, done = sum(size for _, size in unknown), 0
    for path, _ in unknown:
        digest = hashlib.sha256()
        try:
            with open_regular(path) as raw:
                status = os.fstat(raw.fileno())
                while block := raw.read(_BLOCK):
                    digest.update(block)
                    done += len(block)
                    if progress is not None:
                        progress(done, total)
                changed = file_state(os.fstat(raw.fileno())) != file_state(status)
        except OSError as error:
            _raise_unreadable(error, path)
        if changed:
            raise InputError("the file changed while it was read", where=path, hint="run again")
        sums[path] = status.st_size, digest.hexdigest()
        known.note_sha256(path, status, digest.hexdigest())
    return sums


def _expand_pattern(pattern: str) -> list[str]:
    """The paths that match a pattern, sorted; InputError for a folder that cannot be listed.

    `glob` treats such a folder as empty, and the snapshot would silently miss files.
    """
    parts = pattern.split(os.sep)
    for depth, part in enumerate(parts):
        if MAGIC & set(part):
            parents = glob.glob(os.sep.join(parts[:depth]) or os.sep, recursive=True)
            for parent in filter(os.path.isdir, parents):
                for _, folders, _ in os.walk(parent, onerror=_raise_unreadable):
                    folders[:] = [n for n in folders if n[0] != "."] if part == "**" else []
    return sorted(glob.glob(pattern, recursive=True))


def _raise_unreadable(error: OSError, path: str | None = None) -> NoReturn:
    hint = "check the path" if isinstance(error, FileNotFoundError) else "make it readable"
    where = path or str(error.filename)
    raise InputError(f"cannot be read: {error.strerror}", where=where, hint=hint) from None


def _list_files(path: str) -> list[str]:
    """The file, or all files below the folder; InputError for a folder that cannot be listed."""
    if not os.path.isdir(path):
        return [path] if os.path.lexists(path) else []
    files = []
    for folder, folders, names in os.walk(path, onerror=_raise_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files += [os.path.join(folder, name) for name in sorted(names) if name[0] != "."]
    return files


STAGE = "snapshot"
"""Stage name under which snapshots lie in the store; no program of that name exists."""
VERSION = 1
"""Of snapshots and of the other artifacts that no program makes."""
OUTPUT = "snapshot"


@dataclass(frozen=True)
class SnapshotFile:
    """The name that a file gets, its path or URL, and its identity in a bucket's listing."""

    name: str
    location: str
    identity: Identity | None = None


@dataclass(frozen=True)
class KnownSnapshots:
    """What a store knows of snapshots and of files outside, read once for all that are taken."""

    listed: Store
    files: KnownFiles

    @classmethod
    def read(cls, store: Store) -> KnownSnapshots:
        """As of now."""
        return cls(list_snapshots(store), KnownFiles(store))


def take_snapshot(
    store: Store,
    source: SnapshotFiles,
    progress: ProgressCallback | None = None,
    known: KnownSnapshots | None = None,
) -> Manifest:
    """Commit the snapshot of `source` (or find it committed) and record where its files are.

    Raises InputError if a pattern matches nothing, a file cannot be read, or all files are empty;
    StoreError if the store's payload is not mounted.
    """
    known = known or KnownSnapshots(store, KnownFiles(store))
    store.check_mounted()
    if source.ref is not None:
        return _taken_before(store, source)
    files = find_files(source)
    pins = pin_files(known.files, files, progress)
    if not any(pin["bytes"] for pin in pins):
        raise InputError(f"every file of {source.location} is empty", where=source.where)
    manifest = find_snapshot(known.listed, source.name, pins)
    if manifest is None:
        manifest = commit_snapshot(store, source.name, pins)
    digest = manifest.output(OUTPUT).digest
    locations = {file.name: file.location for file in files}
    if known.listed.locations(digest) != locations:
        store.write_locations(digest, locations)
    return manifest


def _taken_before(store: Store, source: SnapshotFiles) -> Manifest:
    """The snapshot that a name of the store points at."""
    assert source.ref is not None
    manifest, _ = store.resolve(source.ref)
    if manifest.stage != STAGE:
        raise UsageError(f"'{source.ref}' is no snapshot but {manifest.stage}", where=source.where)
    return manifest


def find_snapshot(store: Store, name: str, files: list[dict[str, Any]]) -> Manifest | None:
    """The committed snapshot of these files (name, bytes, sha256 or etag of each)."""
    return _find_committed_snapshot(store, artifact_key(STAGE, VERSION, _identity(name, files), {}))


def _identity(name: str, files: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "files": canonical_sha256(files)}


def commit_snapshot(store: Store, name: str, files: list[dict[str, Any]]) -> Manifest:
    """The snapshot of these files, committed once.

    If another process commits the key meanwhile, the snapshot that it wrote.
    """
    identity = _identity(name, files)
    key = artifact_key(STAGE, VERSION, identity, {})
    counts = {"files": len(files), "bytes": sum(file["bytes"] for file in files)}
    if etags := sum("etag" in file for file in files):
        counts["provisional"] = etags
    with hold_lease(store.backend, key):
        if (committed := _find_committed_snapshot(store, key)) is not None:
            return committed
        attempt = Attempt(store.backend, STAGE, key, {OUTPUT: "snapshot"})
        with attempt.create(OUTPUT, "snapshot.json") as file:
            file.write(canonical_json({"name": name, "files": files}) + b"\n")
        return commit_record(store, attempt, identity, counts, config={"name": name})


def commit_record(
    store: Store,
    attempt: Attempt,
    identity: dict[str, Any],
    counts: dict[str, Any],
    *,
    config: Mapping[str, Any] = MappingProxyType({}),
    libraries: Mapping[str, str] = MappingProxyType({}),
) -> Manifest:
    """Commit an artifact that no program makes; the caller holds the lease.

    If another process commits the key meanwhile, returns the artifact that it wrote.
    """
    manifest = Manifest(
        stage=attempt.stage,
        version=VERSION,
        key=attempt.key,
        reproducible="bytes",
        config=dict(config),
        identity=identity,
        inputs={},
        outputs=attempt.outputs(),
        attempt=attempt.name,
        code=Code(digest="", libraries=dict(libraries)),
        counts=counts,
    )
    committed = commit(store, manifest)
    if committed.attempt != attempt.name:
        attempt.discard()
    return committed


def count_provisional(snapshots: Mapping[str, Manifest]) -> dict[str, int]:
    """Snapshot → the number of its files that are pinned by their server's ETag alone, if any."""
    counts = {name: manifest.counts.get("provisional", 0) for name, manifest in snapshots.items()}
    return {name: int(count) for name, count in counts.items() if count}


def format_provisional(snapshots: Mapping[str, Manifest]) -> str | None:
    """The line about provisional files under a plan, or None."""
    counts = count_provisional(snapshots)
    if not counts:
        return None
    files = ", ".join(f"{count:,} of {name}" for name, count in counts.items())
    return f"provisional: files known by their server's ETag, not by a checksum: {files}"


def find_files(source: SnapshotFiles) -> list[SnapshotFile]:
    """The files that `source` selects, sorted by the name they get."""
    files: dict[str, SnapshotFile] = {}
    for file in _list_all_files(source):
        if source.marker is not None and file.name.rpartition("/")[2] == source.marker:
            continue
        if files.setdefault(file.name, file).location != file.location:
            raise UsageError(
                f"two files would both be named '{file.name}': {files[file.name].location} "
                f"and {file.location}",
                where=source.where,
                hint="give the snapshot a root, so that names begin there",
            )
    if not files:
        raise InputError(f"no file in {source.location}", where=source.where)
    selected = [file for file in files.values() if _is_in_share(file.name, source.share)]
    if not selected:
        raise InputError(
            f"share {source.share} takes none of {len(files):,} files",
            where=source.where,
            hint="raise it, or set `first` alone",
        )
    return sorted(selected[: source.first], key=lambda file: file.name)


def pin_files(
    known: KnownFiles, files: list[SnapshotFile], progress: ProgressCallback | None = None
) -> list[dict[str, Any]]:
    """Name, size and sha256 of each file; for those behind a URL that has none, its ETag."""
    remote = {f.location: f.identity for f in files if f.identity is not None}
    unlisted = [f.location for f in files if is_url(f.location) and f.identity is None]
    try:
        sums = hash_files(known, [f.location for f in files if not is_url(f.location)], progress)
        if unlisted:
            remote |= fetch_identities(known, unlisted, progress)
    finally:
        known.save()
    identities = {path: Identity(size, "", sha256) for path, (size, sha256) in sums.items()}
    identities |= remote
    rows: list[dict[str, Any]] = []
    for file in files:
        identity = identities[file.location]
        pin = {"sha256": identity.sha256} if identity.sha256 else {"etag": identity.etag}
        rows.append({"name": file.name, "bytes": identity.bytes, **pin})
    return rows


def _list_all_files(source: SnapshotFiles) -> list[SnapshotFile]:
    """Every file that the entry names, in the order of the list, or of patterns, then names."""
    if source.paths is not None:
        return [SnapshotFile(name, place) for name, place in read_path_list(source)]
    if source.on_hub is not None:
        return [SnapshotFile(*file) for file in list_hub_files(source)]
    files = []
    for pattern in source.files:
        if is_url(pattern) or (source.root is not None and is_url(source.root)):
            matches = [SnapshotFile(*file) for file in match_urls(source, pattern)]
            place = source.root
        else:
            matches = [SnapshotFile(*file) for file in match_files(source, pattern)]
            place = os.path.realpath(anchor_folder(source))
        if not matches:
            raise InputError(
                f"no file matches '{pattern}'",
                where=source.where,
                hint=f"looked in {place}" if place else "check the bucket and the prefix",
            )
        files += matches
    return files


def _is_in_share(name: str, share: float | None) -> bool:
    """Whether the name's hash, as a number from 0 to 1, is below `share`.

    So a larger share contains a smaller one, and a longer list the selection of a shorter one.
    """
    if share is None:
        return True
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return number < share * 2**64


def _find_committed_snapshot(store: Store, key: str) -> Manifest | None:
    """The committed snapshot, if its listing is whole."""
    manifest = find_committed(store, STAGE, key).whole
    if manifest is not None and (problems := verify(store, manifest, full=True)):
        record_damage(store, manifest, problems)
        return None
    return manifest
