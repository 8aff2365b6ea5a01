"""Files from outside, as a snapshot pins them: name, size, checksum, and where they lie today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from artifacts_schema.errors import InputError
from artifacts_schema.store import Store
from stages.engine.inputs import Input


@dataclass(frozen=True)
class SourceFile:
    """One file of a snapshot. Picklable; opens nothing until asked."""

    id: str
    name: str
    bytes: int
    sha256: str
    snapshot: Input
    location: str | None

    def open(self) -> BinaryIO:
        """Open for reading, seekable. InputError if it is missing or not of the pinned size."""
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
