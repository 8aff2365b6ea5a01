"""Files from outside, as a snapshot pins them: name, size, checksum, and where they are now.

The store remembers checksums and ETags of such files, so that planning again is quick: one JSON
file, `[file_state, sha256]` by path, `[bytes, etag, asked]` by URL. It is safe to remove.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from artifacts_schema.errors import InputError, StoreError
from artifacts_schema.files import file_state, open_regular
from artifacts_schema.store import Store, layout
from stages.engine.inputs import Input
from stages.engine.remote import Identity, SourceChanged, is_url

FRESH_SECONDS = 600.0
"""How long a server's answer is reused, since a plan may need many files."""


class KnownFiles:
    """The memory, as it was when it was loaded; `save` writes what was noted since."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock, self._changed = store, clock, False
        try:
            known = json.loads(store.backend.read(layout.checksums()))
        except (FileNotFoundError, ValueError):
            known = {}  # A lost or broken memory starts empty.
        self._known: dict[str, Any] = known if isinstance(known, dict) else {}

    def sha256(self, path: str, status: os.stat_result) -> str | None:
        """The checksum of a local file that is unchanged since (see `file_state`)."""
        match self._known.get(path):
            case [list(state), str(sha256)] if state == list(file_state(status)):
                return sha256
        return None

    def note_sha256(self, path: str, status: os.stat_result, sha256: str) -> None:
        """Remember a checksum, with the file's status from before it was read."""
        self._known[path] = [list(file_state(status)), sha256]
        self._changed = True

    def identity(self, url: str) -> Identity | None:
        """What a server said of a URL within the last FRESH_SECONDS."""
        match self._known.get(url):
            case [int(size), str(etag), float(asked)]:
                if 0 <= self._clock() - asked < FRESH_SECONDS:
                    return Identity(size, etag)
        return None

    def note_identity(self, url: str, identity: Identity) -> None:
        """Remember what a server said now."""
        self._known[url] = [identity.bytes, identity.etag, float(self._clock())]
        self._changed = True

    def forget(self, path: str) -> None:
        """Remember nothing of a path or URL."""
        self._changed |= self._known.pop(path, None) is not None

    def save(self) -> None:
        """Write the memory, if anything was noted."""
        if self._changed:
            raw = json.dumps(self._known, sort_keys=True).encode()
            self._store.backend.replace(layout.checksums(), raw)
            self._changed = False


def forget_url(store: Store, url: str) -> None:
    """Have the next plan ask the server again: the file at `url` changed while it was read."""
    with suppress(StoreError, OSError):  # A stage that may not write there has lost only time.
        known = KnownFiles(store)
        known.forget(url)
        known.save()


_checked: set[tuple[object, ...]] = set()
"""Files that this process has hashed: a worker opens one file again for each of its parts."""
_AGAIN = "plan again to take the changed file as a new snapshot"


@dataclass(frozen=True)
class SourceFile:
    """One file of a snapshot. Picklable; opens nothing until asked.

    `sha256` is known of files of this machine, and of those at a URL whose server sends it;
    of others the `etag`.
    """

    id: str
    name: str
    bytes: int
    sha256: str | None
    etag: str | None
    snapshot: Input
    location: str | None

    def open(self) -> BinaryIO:
        """Open for reading, seekable. InputError if it is missing or not what was pinned.

        A file at a URL is fetched to this machine first.
        """
        if self.location is None:
            return cast(BinaryIO, self.snapshot.open(f"files/{self.name}"))
        if is_url(self.location):
            return self._open_copy(self.location)
        return self._open_local(self.location)

    def _open_copy(self, url: str) -> BinaryIO:
        from stages.engine.fetch import open_copy

        pinned = Identity(self.bytes, self.etag or "", self.sha256)
        assert pinned.etag or pinned.sha256, "a URL is pinned by its ETag or a checksum"
        checked = (url, pinned)
        check = self.snapshot.full_check and checked not in _checked
        try:
            file = open_copy(url, pinned, name=self.name, check=check)
        except SourceChanged:
            forget_url(_store(self.snapshot), url)
            raise
        _checked.add(checked)
        return file

    def _open_local(self, path: str) -> BinaryIO:
        try:
            size = os.path.getsize(path)
            if size != self.bytes:
                raise InputError(
                    f"the file has {size:,} bytes, the snapshot pinned {self.bytes:,}",
                    where=path,
                    hint=_AGAIN,
                )
            self._check(path)
            return open_regular(path)
        except FileNotFoundError:
            raise InputError(
                "a file of the snapshot is missing",
                where=path,
                hint="restore it, or run `ingot snapshot add` where it is now",
            ) from None
        except PermissionError:
            raise InputError("permission denied", where=path, hint="make it readable") from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=path) from None

    def _check(self, path: str) -> None:
        """Hash the file once: a key must not stand for bytes that were never pinned."""
        from stages.engine.fetch import checksum

        status = os.stat(path)
        checked = (path, file_state(status), self.sha256)
        if not self.snapshot.full_check or checked in _checked:
            return
        with open_regular(path) as file:
            if checksum(file, hashlib.sha256()).hexdigest() != self.sha256:
                raise InputError(
                    "the file's bytes changed since the snapshot pinned them",
                    where=path,
                    hint=_AGAIN,
                )
        _checked.add(checked)


def source_files(snapshot: Input) -> list[SourceFile]:
    """The files of a snapshot, sorted by name; ids are their ordinals, "00000" onwards."""
    files = _listing(snapshot)["files"]
    if not files:
        raise InputError(
            f"snapshot '{snapshot_name(snapshot)}' is empty", hint="check its patterns"
        )
    locations = _store(snapshot).locations(snapshot.digest)
    return [
        SourceFile(
            id=f"{number:05d}",
            name=file["name"],
            bytes=file["bytes"],
            sha256=file.get("sha256"),
            etag=file.get("etag"),
            snapshot=snapshot,
            location=None
            if snapshot.has(f"files/{file['name']}")
            else _place(file["name"], locations),
        )
        for number, file in enumerate(sorted(files, key=lambda file: file["name"]))
    ]


def snapshot_name(snapshot: Input) -> str:
    """The name under which the snapshot was taken; part of every document's id."""
    return str(_listing(snapshot)["name"])


def _listing(snapshot: Input) -> dict[str, Any]:
    return cast(dict[str, Any], snapshot.read_json("snapshot.json"))


def _store(snapshot: Input) -> Store:
    return Store(snapshot.backend.url)


def _place(name: str, locations: dict[str, str]) -> str:
    if name not in locations:
        raise InputError(
            f"this store does not know where '{name}' is",
            hint="run `ingot snapshot add` on the folder, or plan the recipe again",
        )
    return locations[name]
