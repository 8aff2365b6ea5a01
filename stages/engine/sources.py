"""Files from outside, as a snapshot pins them: name, size, checksum, and where they lie today."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from artifacts_schema.errors import InputError
from artifacts_schema.store import Store
from stages.engine.inputs import Input

_BLOCK = 1 << 20


@dataclass(frozen=True)
class SourceFile:
    """One file of a snapshot. Picklable; opens nothing until asked."""

    id: str
    name: str
    bytes: int
    sha256: str
    snapshot: Input
    location: str | None
    _checked: list[bool] = field(default_factory=list, compare=False, repr=False)

    def open(self) -> BinaryIO:
        """Open for reading, seekable. InputError if it is missing or not what was pinned."""
        if self.location is None:
            return cast(BinaryIO, self.snapshot.open(f"files/{self.name}"))
        import fsspec

        fs, path = fsspec.core.url_to_fs(self.location)
        try:
            size = fs.size(path)
            if size != self.bytes:
                raise InputError(
                    f"the file has {size:,} bytes, the snapshot pinned {self.bytes:,}",
                    where=self.location,
                    hint="plan again to take the changed file as a new snapshot",
                )
            self._check(fs, path)
            return cast(BinaryIO, fs.open(path, "rb"))
        except FileNotFoundError:
            raise InputError(
                "a file of the snapshot is missing",
                where=self.location,
                hint="restore it, or run `ingot snapshot add` where it lies now",
            ) from None
        except PermissionError:
            raise InputError(
                "permission denied", where=self.location, hint="make it readable"
            ) from None

    def _check(self, fs: Any, path: str) -> None:
        """Hash the file once: a key must not stand for bytes that were never pinned."""
        if self._checked or not self.snapshot.full_check:
            return
        digest = hashlib.sha256()
        with fs.open(path, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        if digest.hexdigest() != self.sha256:
            raise InputError(
                "the file's bytes changed since the snapshot pinned them",
                where=self.location,
                hint="plan again to take the changed file as a new snapshot",
            )
        self._checked.append(True)


def source_files(snapshot: Input) -> list[SourceFile]:
    """The files of a snapshot, sorted by name; ids are their ordinals, "00000" onwards."""
    listed = _listing(snapshot)["files"]
    if not listed:
        raise InputError(
            f"snapshot '{snapshot_name(snapshot)}' is empty", hint="check its patterns"
        )
    locations = (
        Store(snapshot.backend.full("")).locations(snapshot.digest)
        if snapshot.backend.local
        else {}
    )
    return [
        SourceFile(
            id=f"{number:05d}",
            name=file["name"],
            bytes=file["bytes"],
            sha256=file["sha256"],
            snapshot=snapshot,
            location=None
            if snapshot.has(f"files/{file['name']}")
            else _place(file["name"], locations),
        )
        for number, file in enumerate(sorted(listed, key=lambda file: file["name"]))
    ]


def snapshot_name(snapshot: Input) -> str:
    """The name under which the snapshot was taken; part of every document's id."""
    return str(_listing(snapshot)["name"])


def _listing(snapshot: Input) -> dict[str, Any]:
    return cast(dict[str, Any], snapshot.read_json("snapshot.json"))


def _place(name: str, locations: dict[str, str]) -> str:
    if name not in locations:
        raise InputError(
            f"nobody told this store where '{name}' lies",
            hint="run `ingot snapshot add` on the folder, or plan the recipe again",
        )
    return locations[name]
