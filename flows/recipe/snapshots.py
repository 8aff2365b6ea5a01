"""Snapshots: files from outside, pinned by name, size and checksum when a plan is made.

What a snapshot is follows from its name and its files alone, so a changed file is a new snapshot
and a moved folder is not. Where the files lie is written beside the store's refs, unhashed.
Checksums are cached in the store by (path, size, time of change), so planning again costs one
`stat` a file.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import artifact_key, canonical_json, sha256_of
from artifacts_schema.manifest import Code, Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.commit import Attempt, commit
from artifacts_schema.store.gc import remove_artifact
from artifacts_schema.store.verify import verify
from flows.recipe.recipe import SnapshotFiles

STAGE = "snapshot"
"""Stage name under which snapshots lie in the store; no program of that name exists."""
VERSION = 1
OUTPUT = "snapshot"
_BLOCK = 1 << 20
_MAGIC = set("*?[")

Progress = Callable[[int, int], None]
"""Called with bytes hashed and bytes to hash."""


@dataclass(frozen=True)
class FoundFile:
    """A file on this machine and the name it gets in the snapshot."""

    name: str
    path: str
    bytes: int
    mtime_ns: int


def take_snapshot(
    store: Store, source: SnapshotFiles, progress: Progress | None = None
) -> Manifest:
    """Commit the snapshot of `source` (or find it committed) and note where its files lie.

    Raises InputError if a pattern matches nothing, a file cannot be read, or all files are empty.
    """
    found = find_files(source)
    sums = checksums(store, found, progress)
    files: list[dict[str, Any]] = [
        {"name": f.name, "bytes": f.bytes, "sha256": sums[f.path]} for f in found
    ]
    identity: dict[str, Any] = {"name": source.name, "files": sha256_of(files)}
    key = artifact_key(STAGE, VERSION, identity, {})
    manifest = _standing(store, key) or _commit(store, key, identity, source.name, files)
    digest = manifest.output(OUTPUT).digest
    locations = {f.name: f.path for f in found}
    if store.locations(digest) != locations:
        store.write_locations(digest, locations)
    return manifest


def find_files(source: SnapshotFiles) -> list[FoundFile]:
    """The files that the patterns of `source` match, sorted by the name they get."""
    found: dict[str, FoundFile] = {}
    for pattern in source.files:
        matched = list(_matches(source, pattern))
        if not matched:
            raise InputError(
                f"no file matches '{pattern}'",
                where=source.where,
                hint=f"looked in {_anchor(source).resolve()}",
            )
        for name, path in matched:
            try:
                status = os.stat(path)
            except OSError as error:
                raise InputError(
                    f"cannot be read: {error.strerror}", where=f"{source.where}: {path}"
                ) from None
            file = FoundFile(name, path, status.st_size, status.st_mtime_ns)
            if name in found and found[name].path != path:
                raise UsageError(
                    f"two files would both be named '{name}': {found[name].path} and {path}",
                    where=source.where,
                    hint="give the snapshot a root, so that names begin there",
                )
            found[name] = file
    if not any(file.bytes for file in found.values()):
        raise InputError(f"every file of {', '.join(source.files)} is empty", where=source.where)
    return [found[name] for name in sorted(found)]


def checksums(
    store: Store, files: list[FoundFile], progress: Progress | None = None
) -> dict[str, str]:
    """sha256 by path; only files that the store has not seen in this size and time are read."""
    cache = _read_cache(store)
    known = {f.path: cache[f.path][2] for f in files if _is_current(cache.get(f.path), f)}
    missing = [f for f in files if f.path not in known]
    total, done = sum(f.bytes for f in missing), 0
    for file in missing:
        digest = hashlib.sha256()
        try:
            with open(file.path, "rb") as raw:
                while block := raw.read(_BLOCK):
                    digest.update(block)
                    done += len(block)
                    if progress is not None:
                        progress(done, total)
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}", where=file.path, hint="make it readable"
            ) from None
        known[file.path] = digest.hexdigest()
        cache[file.path] = [file.bytes, file.mtime_ns, known[file.path]]
    if missing:
        store.backend.replace(layout.checksums(), json.dumps(cache, sort_keys=True).encode())
    return known


def _matches(source: SnapshotFiles, pattern: str) -> list[tuple[str, str]]:
    """(name, absolute path) of every file that `pattern` means, hidden ones left out."""
    if "://" in pattern:
        raise UsageError(
            f"'{pattern}': sources behind a URL cannot be read yet",
            where=source.where,
            hint="copy the files to this machine first",
        )
    anchor = _anchor(source).resolve()
    full = os.path.normpath(anchor / os.path.expanduser(pattern))
    start = anchor if source.root is not None else Path(_fixed_part(full))
    hits = sorted(glob.glob(full, recursive=True)) if _MAGIC & set(pattern) else [full]
    files = [path for hit in hits for path in _files_at(hit)]
    for path in files:
        if not Path(path).is_relative_to(start):
            raise UsageError(f"'{path}' lies outside the root {start}", where=source.where)
    return [(Path(path).relative_to(start).as_posix(), path) for path in files]


def _anchor(source: SnapshotFiles) -> Path:
    return source.base / Path(source.root).expanduser() if source.root is not None else source.base


def _fixed_part(pattern: str) -> str:
    """The folder below which names begin: a folder itself, or the fixed folder of a pattern."""
    if os.path.isdir(pattern):
        return pattern
    parts = pattern.split(os.sep)
    first = next((i for i, part in enumerate(parts) if _MAGIC & set(part)), len(parts) - 1)
    return os.sep.join(parts[:first]) or os.sep


def _files_at(path: str) -> list[str]:
    if os.path.isfile(path):
        return [path]
    found = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [os.path.join(folder, name) for name in sorted(names) if name[0] != "."]
    return found


def _read_cache(store: Store) -> dict[str, list[Any]]:
    try:
        cache = json.loads(store.backend.read(layout.checksums()))
    except (FileNotFoundError, ValueError):
        return {}  # Only a cache: a lost or broken one is read anew.
    return cache if isinstance(cache, dict) else {}


def _is_current(entry: Any, file: FoundFile) -> bool:
    return isinstance(entry, list) and entry[:2] == [file.bytes, file.mtime_ns]


def _standing(store: Store, key: str) -> Manifest | None:
    """The committed snapshot, if its listing is whole; a damaged one is removed."""
    manifest = store.manifest(STAGE, key)
    if manifest is not None and verify(store, manifest, full=True):
        remove_artifact(store, manifest)
        return None
    return manifest


def _commit(
    store: Store, key: str, identity: dict[str, Any], name: str, files: list[dict[str, Any]]
) -> Manifest:
    attempt = Attempt(store.backend, STAGE, key, {OUTPUT: "snapshot"})
    with attempt.create(OUTPUT, "snapshot.json") as file:
        file.write(canonical_json({"name": name, "files": files}) + b"\n")
    manifest = Manifest(
        stage=STAGE,
        version=VERSION,
        key=key,
        reproducible="bytes",
        config={"name": name},
        identity=identity,
        inputs={},
        outputs=attempt.outputs(),
        attempt=attempt.name,
        code=Code(digest="", libraries={}),
        counts={"files": len(files), "bytes": sum(f["bytes"] for f in files)},
    )
    standing = commit(store, manifest)
    if standing.attempt != attempt.name:
        attempt.discard()
    return standing
