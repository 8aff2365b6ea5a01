"""Snapshots: files from outside, pinned by name, size and checksum when a plan is made.

What a snapshot is follows from its name and its files alone, so a changed file is a new snapshot
and a moved folder is not. Where the files lie is written beside the store's refs, unhashed.
Checksums are remembered by (path, size, time of change), so planning again costs one `stat` a
file. A file behind a URL is pinned by what its server calls it, its ETag: a provisional identity,
since nobody has seen its bytes yet.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import artifact_key, canonical_json, sha256_of
from artifacts_schema.manifest import Code, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.commit import Attempt, commit
from artifacts_schema.store.damage import find_committed, record_damage
from artifacts_schema.store.verify import verify
from artifacts_schema.store.work import holding
from flows.recipe.local_files import Progress, anchor_of, checksums, match_files
from flows.recipe.snapshot_entry import SnapshotFiles
from stages.engine.known_files import KnownFiles
from stages.engine.remote import Identity
from stages.engine.urls import is_url

STAGE = "snapshot"
"""Stage name under which snapshots lie in the store; no program of that name exists."""
VERSION = 1
OUTPUT = "snapshot"


@dataclass(frozen=True)
class FoundFile:
    """The name that a file gets, its path or URL, and what a bucket's listing tells of it."""

    name: str
    location: str
    listed: Identity | None = None


def take_snapshot(
    store: Store, source: SnapshotFiles, progress: Progress | None = None
) -> Manifest:
    """Commit the snapshot of `source` (or find it committed) and note where its files lie.

    Raises InputError if a pattern matches nothing, a file cannot be read, or all files are empty;
    StoreError if the store's payload is not mounted.
    """
    store.check_mounted()
    found = find_files(source)
    files = pinned(store, found, progress)
    if not any(file["bytes"] for file in files):
        raise InputError(f"every file of {source.told} is empty", where=source.where)
    manifest = commit_snapshot(store, source.name, files)
    digest = manifest.output(OUTPUT).digest
    locations = {file.name: file.location for file in found}
    if store.locations(digest) != locations:
        store.write_locations(digest, locations)
    return manifest


def commit_snapshot(store: Store, name: str, files: list[dict[str, Any]]) -> Manifest:
    """The snapshot of these files (name, bytes, sha256 or etag of each), committed once.

    Of a key that another process commits meanwhile, what that one wrote.
    """
    identity: dict[str, Any] = {"name": name, "files": sha256_of(files)}
    key = artifact_key(STAGE, VERSION, identity, {})
    standing = _standing(store, key)
    if standing is not None:
        return standing
    with holding(store.backend, key):
        return _standing(store, key) or _write(store, key, identity, name, files)


def provisional(snapshots: Mapping[str, Manifest]) -> dict[str, int]:
    """Snapshot → how many of its files are pinned by their server's word alone, where any are."""
    counts = {name: manifest.counts.get("provisional", 0) for name, manifest in snapshots.items()}
    return {name: int(count) for name, count in counts.items() if count}


def provisional_note(snapshots: Mapping[str, Manifest]) -> str | None:
    """The line that says so under a plan, or None."""
    counts = provisional(snapshots)
    if not counts:
        return None
    told = ", ".join(f"{count:,} of {name}" for name, count in counts.items())
    return f"provisional: files known by their server's ETag, not by a checksum: {told}"


def find_files(source: SnapshotFiles) -> list[FoundFile]:
    """The files that `source` means and takes, sorted by the name they get."""
    found: dict[str, FoundFile] = {}
    for file in _all_files(source):
        if found.setdefault(file.name, file).location != file.location:
            raise UsageError(
                f"two files would both be named '{file.name}': {found[file.name].location} "
                f"and {file.location}",
                where=source.where,
                hint="give the snapshot a root, so that names begin there",
            )
    taken = [file for file in found.values() if _is_in_share(file.name, source.share)]
    if not taken:
        raise InputError(
            f"share {source.share} takes none of {len(found):,} files",
            where=source.where,
            hint="raise it, or set `first` alone",
        )
    return sorted(taken[: source.first], key=lambda file: file.name)


def pinned(
    store: Store, files: list[FoundFile], progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Name, size and sha256 of each file; for those behind a URL that has none, its ETag."""
    known = KnownFiles(store)
    remote = {f.location: f.listed for f in files if f.listed is not None}
    asked = [f.location for f in files if is_url(f.location) and f.listed is None]
    try:
        sums = checksums(known, [f.location for f in files if not is_url(f.location)], progress)
        if asked:
            from flows.recipe.remote_files import identities

            remote |= identities(known, asked, progress)
    finally:
        known.save()
    rows: list[dict[str, Any]] = []
    for file in files:
        if (seen := remote.get(file.location)) is not None:
            pin = {"sha256": seen.sha256} if seen.sha256 else {"etag": seen.etag}
            rows.append({"name": file.name, "bytes": seen.bytes, **pin})
        else:
            size, sha256 = sums[file.location]
            rows.append({"name": file.name, "bytes": size, "sha256": sha256})
    return rows


def _all_files(source: SnapshotFiles) -> list[FoundFile]:
    """Every file that the entry names, in the order of the list, or of patterns, then names."""
    if source.paths is not None:
        from flows.recipe.path_list import listed_files

        return [FoundFile(name, place) for name, place in listed_files(source)]
    if source.on_hub is not None:
        from flows.recipe.hub_files import hub_files

        return [FoundFile(*file) for file in hub_files(source)]
    found = []
    for pattern in source.files:
        matched = _matched(source, pattern)
        if not matched:
            remote = is_url(pattern) or (source.root is not None and is_url(source.root))
            place = source.root if remote else os.path.realpath(anchor_of(source))
            raise InputError(
                f"no file matches '{pattern}'",
                where=source.where,
                hint=f"looked in {place}" if place else "check the bucket and the prefix",
            )
        found += matched
    return found


def _matched(source: SnapshotFiles, pattern: str) -> list[FoundFile]:
    if is_url(pattern) or (source.root is not None and is_url(source.root)):
        from flows.recipe.remote_files import match_urls

        matched = match_urls(source, pattern)
        return [FoundFile(name, url, listed) for url, (name, listed) in matched.items()]
    return [FoundFile(name, path) for name, path in match_files(source, pattern)]


def _is_in_share(name: str, share: float | None) -> bool:
    """Whether the name's hash, as a number from 0 to 1, is below `share`: a larger share holds a
    smaller one, and a longer list the part of a shorter one."""
    if share is None:
        return True
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return number < share * 2**64


def _standing(store: Store, key: str) -> Manifest | None:
    """The committed snapshot, if its listing is whole."""
    manifest = find_committed(store, STAGE, key).whole
    if manifest is not None and (problems := verify(store, manifest, full=True)):
        record_damage(store, manifest, problems)
        return None
    return manifest


def _write(
    store: Store, key: str, identity: dict[str, Any], name: str, files: list[dict[str, Any]]
) -> Manifest:
    attempt = Attempt(store.backend, STAGE, key, {OUTPUT: "snapshot"})
    with attempt.create(OUTPUT, "snapshot.json") as file:
        file.write(canonical_json({"name": name, "files": files}) + b"\n")
    counts = {"files": len(files), "bytes": sum(f["bytes"] for f in files)}
    etags = sum("etag" in f for f in files)
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
        counts={**counts, **({"provisional": etags} if etags else {})},
    )
    standing = commit(store, manifest)
    if standing.attempt != attempt.name:
        attempt.discard()
    return standing
