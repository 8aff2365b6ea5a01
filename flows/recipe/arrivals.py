"""New snapshots: which folders of a place are complete, and taking each of them once.

A place is a folder or a bucket: each folder right below it becomes one snapshot of a series. Or it
is Common Crawl's list of crawls, whose crawls are complete when they are listed.

A folder is complete when two looks, some seconds apart by this machine's monotonic clock, see the
same files with the same sizes and times; or, where a marker is agreed on, as soon as its file is
there. A folder that is still written to is looked at again. A snapshot that was taken is never
taken again: where its folder changed since, that is said, and it stays what it was.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from artifacts_schema.errors import IngotError, InputError, UsageError, printable
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.recipe.recipe import SNAPSHOT_NAME, snapshot_entry
from flows.recipe.remote_files import read_lines
from flows.recipe.series import REFS, series_order
from flows.recipe.snapshot_entry import SnapshotFiles, is_crawl_id
from flows.recipe.snapshots import OUTPUT, take_snapshot
from stages.engine.inputs import Input
from stages.engine.remote import OBJECTS, is_url, list_objects

CRAWLS = "https://index.commoncrawl.org/collinfo.json"
"""Common Crawl's list of its crawls, newest first: [{"id": "CC-MAIN-2024-33", …}, …]."""
State = tuple[tuple[str, int, str], ...]
"""Name, bytes and time (or ETag) of every file of a folder, sorted."""


@dataclass(frozen=True)
class Place:
    """What is watched: folders below `location`, or the crawls of a list.

    `entry` are further fields of each snapshot (of crawls, how much is taken); `since` is the first
    name that is taken. A snapshot has the name of its folder, behind `SERIES-` if there is one.
    """

    location: str
    series: str = ""
    marker: str | None = None
    since: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lists_crawls(self) -> bool:
        """Whether it is a list of crawls."""
        return self.location.endswith(".json")

    def name(self, folder: str) -> str:
        """The name of the snapshot of a folder."""
        if not self.series or folder.startswith(f"{self.series}-"):
            return folder
        return f"{self.series}-{folder}"

    def files(self, name: str, folder: str) -> SnapshotFiles:
        """The entry that takes a snapshot."""
        if self.lists_crawls:
            return snapshot_entry(name, {**self.entry, "crawl": folder}, f"snapshot {name}")
        place = f"{self.location.rstrip('/')}/{folder}"
        pattern = f"{place}/**" if is_url(place) else place
        entry = snapshot_entry(name, {"files": [pattern]}, f"snapshot {name}")
        return replace(entry, marker=self.marker)


def look(place: Place) -> dict[str, State]:
    """The files of every folder of a place, by folder. InputError where it cannot be listed."""
    if place.lists_crawls:
        return dict.fromkeys(_listed_crawls(place.location), ())
    if place.location.startswith(OBJECTS):
        return _objects_by_folder(place.location)
    if is_url(place.location):
        raise UsageError("a web server does not list its files", where=place.location)
    folders = {}
    try:
        for entry in sorted(os.scandir(place.location), key=lambda one: one.name):
            if entry.is_dir() and not entry.name.startswith("."):
                folders[entry.name] = tuple(sorted(_files_below(entry.path)))
    except OSError as error:
        raise InputError(
            f"cannot be listed: {error.strerror}", where=error.filename or place.location
        ) from None
    return folders


def _files_below(folder: str) -> Iterator[tuple[str, int, str]]:
    def fail(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                path = os.path.join(parent, name)
                status = os.stat(path)
                yield os.path.relpath(path, folder), status.st_size, str(status.st_mtime_ns)


def _objects_by_folder(location: str) -> dict[str, State]:
    start = f"{location.rstrip('/')}/"
    folders: dict[str, list[tuple[str, int, str]]] = {}
    for url, identity in list_objects(f"{start}**", glob=True).items():
        folder, slash, name = url.removeprefix(start).partition("/")
        if slash and not any(part[:1] == "." for part in (folder, *name.split("/"))):
            one = (name, identity.bytes, identity.etag or str(identity.sha256))
            folders.setdefault(folder, []).append(one)
    return {folder: tuple(sorted(files)) for folder, files in sorted(folders.items())}


def _listed_crawls(location: str) -> list[str]:
    """The ids of a list of crawls, oldest first; entries that are no crawl are left out."""
    try:
        listing = json.loads("\n".join(read_lines(location, location)))
    except ValueError:
        listing = None
    if not isinstance(listing, list):
        raise InputError("expected a JSON list of crawls", where=location)
    ids = [one.get("id") for one in listing if isinstance(one, dict)]
    return sorted({one for one in ids if isinstance(one, str) and is_crawl_id(one)})


class Watch:
    """Looks at a place again and again; takes each snapshot once it is complete.

    `settle` seconds lie between two looks that must agree; `say` gets lines for people; `clock` is
    monotonic, in seconds.
    """

    def __init__(
        self,
        store: Store,
        place: Place,
        *,
        settle: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store, self.place, self.settle, self.say, self._clock = (
            store, place, settle, say, clock,
        )  # fmt: skip
        self._seen: dict[str, tuple[State, float]] = {}
        """By folder: what was seen last, and since when it is so."""
        self._lines: set[str] = set()

    def once(self) -> list[tuple[str, Manifest]]:
        """Look once; the snapshots that were taken, as (name, manifest), in the order of names.

        A place or a folder that cannot be read is told in a line, and looked at again next time.
        """
        try:
            folders = look(self.place)
        except IngotError as error:
            self._tell(str(error))
            return []
        now, taken, refs = self._clock(), list[tuple[str, Manifest]](), self.store.refs(REFS)
        names = {folder: self.place.name(folder) for folder in sorted(folders, key=series_order)}
        wanted = {folder: name for folder, name in names.items() if self._is_wanted(name, folder)}
        known = [name for name in wanted.values() if f"{REFS}{name}" in refs]
        for folder, name in wanted.items():
            if name in known:
                ref = refs[f"{REFS}{name}"]
                self._compare(name, folders[folder], ref.stage, ref.key)
            elif self._is_complete(folder, folders[folder], now):
                taken += self._take(name, folder)
        for name, _ in taken:
            if later := [one for one in known if series_order(one) > series_order(name)]:
                first = min(later, key=series_order)
                self._tell(f"{name} sorts before {first}: steps of later snapshots will run again")
        self._seen = {name: seen for name, seen in self._seen.items() if name in folders}
        return taken

    def waits(self) -> bool:
        """Whether some folder was seen that is not complete yet."""
        return bool(self._seen)

    def _is_wanted(self, name: str, folder: str) -> bool:
        if not SNAPSHOT_NAME.fullmatch(name):
            self._tell(f"{printable(folder)}: no name for a snapshot: letters, digits, . _ and -")
            return False
        return not self.place.since or series_order(name) >= series_order(self.place.since)

    def _is_complete(self, folder: str, state: State, now: float) -> bool:
        if self.place.lists_crawls:
            return True
        if self.place.marker is not None:
            return any(name.rpartition("/")[2] == self.place.marker for name, *_ in state)
        before = self._seen.get(folder)
        if before is None or before[0] != state or not any(size for _, size, _ in state):
            self._seen[folder] = state, now
            return False
        return now - before[1] >= self.settle

    def _take(self, name: str, folder: str) -> list[tuple[str, Manifest]]:
        source = self.place.files(name, folder)
        try:
            manifest = take_snapshot(self.store, source)
            while not self.store.name(f"{REFS}{name}", manifest):  # Collected before it was named.
                manifest = take_snapshot(self.store, source)
        except InputError as error:  # It changed while it was read, or cannot be read.
            self._tell(f"{name} is not taken: {error}")
            self._seen.pop(folder, None)
            return []
        self._seen.pop(folder, None)
        return [(name, manifest)]

    def _compare(self, name: str, state: State, stage: str, key: str) -> None:
        """Say so where a folder is not what was taken of it."""
        manifest = self.store.manifest(stage, key)
        if manifest is None or self.place.lists_crawls:
            return
        listing = Input.from_manifest(self.store, manifest, OUTPUT).read_json("snapshot.json")
        taken = {file["name"]: file["bytes"] for file in listing["files"]}
        there = {
            name: size for name, size, _ in state if name.rpartition("/")[2] != self.place.marker
        }
        more, fewer = len(there.keys() - taken.keys()), len(taken.keys() - there.keys())
        other = sum(there[name] != taken[name] for name in there.keys() & taken.keys())
        if more or fewer or other:
            self._tell(
                f"{name} was taken and has changed since ({more:,} files more, {fewer:,} fewer, "
                f"{other:,} of another size): it stays as it was; give new files a folder of "
                "their own"
            )

    def _tell(self, line: str) -> None:
        """A line, once as long as it says the same."""
        if line not in self._lines:
            self._lines.add(line)
            self.say(line)
