"""A bucket's artifacts as of one listing: what a plan of a thousand steps needs, in few requests.

A bucket answers one question a request, and a plan asks two of each step: its manifest, and whether
its files are there. Here the manifests are listed once, and those whose entry (ETag, size, time) is
known on this machine are read from the node's cache; others are fetched together. Payload is listed
by stage where that takes fewer requests than asking for each artifact.

The store decides: what the listing does not have does not exist, and what has another entry is read
again. A manifest is checked against its checksum as any other. A cache that is lost or cut costs
requests only. A store in a folder is read as it is.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from artifacts_schema.errors import CorruptArtifact, StoreError
from artifacts_schema.manifest import count_files
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Entry
from artifacts_schema.store.cache import CacheQuota, cache_folder
from artifacts_schema.store.remote import RemoteBackend
from artifacts_schema.store.runs import Run, run_ids
from artifacts_schema.store.store import Store

_PAGE = 1000
"""Files that S3 and GCS list in one request."""
_TELEMETRY_FILES = 8
"""Added to the files of a manifest, for an estimate of how long a listing of payload is."""
_SHA256 = 64


def list_artifacts(store: Store, recipe: str, needed: Mapping[str, int]) -> Store:
    """`store` as of now, for a reader that asks about many artifacts; to be used for one plan.

    `needed` says how many artifacts of each stage will be asked for. The steps that the newest run
    of `recipe` made or reused are read ahead.
    """
    if store.backend.local:
        return store
    view = Store(store.url)
    view.backend = ListedBackend(store.url, needed)
    view.backend.read_many(_last_steps(store, recipe))
    return view


_SNAPSHOT_FOLDERS = ("artifacts/snapshot", "data/snapshot", "damage/snapshot", "refs/.locations")
"""What a committed snapshot consists of: small files, and few."""


def list_snapshots(store: Store) -> Store:
    """`store` as of now, for a reader that asks about many snapshots; to be used once."""
    if store.backend.local:
        return store
    view = Store(store.url)
    view.backend = ListedBackend(store.url, {}, _SNAPSHOT_FOLDERS)
    return view


def _last_steps(store: Store, recipe: str) -> list[str]:
    """The manifests that the newest run of a recipe names; none if its record cannot be read."""
    names = run_ids(store, recipe)
    if not names:
        return []
    path = layout.run(recipe, names[-1])
    try:
        run = Run.load(store.backend.read(path), where=path)
    except (FileNotFoundError, CorruptArtifact):
        return []
    return [layout.manifest(step.stage, step.key) for step in run.steps if step.key is not None]


class ListedBackend(RemoteBackend):
    """A bucket of which `folders` are listed once, and payload by stage; the rest is asked for.

    The folders hold small files, such as manifests, which are kept in the node's cache. Only for
    reading: it does not see what is written after its listings.
    """

    def __init__(
        self, url: str, needed: Mapping[str, int], folders: tuple[str, ...] = ("artifacts",)
    ) -> None:
        super().__init__(url)
        self._bucket = RemoteBackend(url)
        self._needed = needed
        self._folders = tuple(f"{folder}/" for folder in folders)
        self._known = {
            f"{folder}/{name}": entry
            for folder in folders
            for name, entry in self._bucket.listing(folder).items()
        }
        self._read: dict[str, bytes] = {}
        self._made_room = False
        self._payload: dict[str, dict[str, dict[str, Entry]] | None] = {}
        """By stage: the files of each attempt; None if every artifact is asked for by itself."""

    def read(self, path: str, start: int = 0) -> bytes:
        """The bytes of a file; of one that is listed, from this machine if its entry is known."""
        if not path.startswith(self._folders):
            return self._bucket.read(path, start)
        raw = self.read_many([path]).get(path)
        if raw is None:
            raise FileNotFoundError(path)
        return raw[start:]

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Several small files; listed ones that are not known here are fetched and kept."""
        paths = list(paths)
        ours = [path for path in paths if path in self._known]
        for path in ours:
            if path not in self._read:
                raw = _load(self._cached(path))
                if raw is not None:
                    self._read[path] = raw
        fetched = self._bucket.read_many(path for path in ours if path not in self._read)
        self._read |= fetched
        self._keep(fetched)
        known = {path: self._read[path] for path in ours if path in self._read}
        others = [path for path in paths if not path.startswith(self._folders)]
        return known | (self._bucket.read_many(others) if others else {})

    def blocks(self, path: str, size: int) -> Iterator[bytes]:
        """The `size` bytes of a file; of one that is listed, at once."""
        if path in self._known:
            yield self.read(path)[:size]
        else:
            yield from self._bucket.blocks(path, size)

    def listing(self, folder: str) -> dict[str, Entry]:
        """All files below `folder`."""
        start, parts = f"{folder}/", folder.split("/")
        if start.startswith(self._folders):
            return {p[len(start) :]: e for p, e in self._known.items() if p.startswith(start)}
        if parts[0] == "data" and len(parts) == 4:
            by_attempt = self._list_payload(*parts[1:3])
            if by_attempt is not None:
                return by_attempt.get(folder, {})
        return self._bucket.listing(folder)

    def _list_payload(self, stage: str, key: str) -> dict[str, dict[str, Entry]] | None:
        """The files of every attempt of a stage, listed once, if that is worth it."""
        if stage not in self._payload:
            raw = self._read.get(layout.manifest(stage, key))
            files = (count_files(raw) if raw is not None else 0) + _TELEMETRY_FILES
            stored = sum(path.startswith(f"artifacts/{stage}/") for path in self._known)
            together = math.ceil(stored * files / _PAGE)
            alone = self._needed.get(stage, 1) * math.ceil(files / _PAGE)
            self._payload[stage] = self._list_stage(stage) if together <= alone else None
        return self._payload[stage]

    def _list_stage(self, stage: str) -> dict[str, dict[str, Entry]]:
        by_attempt: dict[str, dict[str, Entry]] = {}
        for name, entry in self._bucket.listing(f"data/{stage}").items():
            parts = name.split("/", 2)
            if len(parts) == 3:
                folder = layout.payload(stage, parts[0], parts[1])
                by_attempt.setdefault(folder, {})[parts[2]] = entry
        return by_attempt

    def _cached(self, path: str) -> Path | None:
        """The place of a file in the node's cache; None if the store gave it no ETag."""
        entry = self._known[path]
        if not entry.etag:
            return None
        name = "\n".join((self.url, path, entry.etag, str(entry.bytes), str(entry.modified)))
        digest = hashlib.sha256(name.encode()).hexdigest()
        return cache_folder() / "manifests" / digest[:2] / digest

    def _keep(self, fetched: Mapping[str, bytes]) -> None:
        """Keep files for the next plan. One without a cache works, and only reads again."""
        kept = {place: raw for path, raw in fetched.items() if (place := self._cached(path))}
        if not kept:
            return
        with suppress(OSError, StoreError):
            folder = cache_folder() / "manifests"
            folder.mkdir(exist_ok=True)
            if not self._made_room:  # It looks at the whole cache: once a plan is enough.
                CacheQuota(folder).make(sum(map(len, kept.values())))
                self._made_room = True
            for place, raw in kept.items():
                place.parent.mkdir(parents=True, exist_ok=True)
                partial = place.with_name(f"{place.name}.{secrets.token_hex(4)}.partial")
                partial.write_bytes(hashlib.sha256(raw).hexdigest().encode() + raw)
                os.replace(partial, place)


def _load(place: Path | None) -> bytes | None:
    """What was kept, if it is there and whole; it counts as used now."""
    if place is None:
        return None
    try:
        kept = place.read_bytes()
        os.utime(place)
    except OSError:
        return None
    digest, raw = kept[:_SHA256], kept[_SHA256:]
    return raw if hashlib.sha256(raw).hexdigest().encode() == digest else None
