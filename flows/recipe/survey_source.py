"""Where data to survey lies: a folder, a bucket, or a data set of the Hugging Face Hub.

Each lists its files and opens them for a look: at most `MOST_READ` bytes of one file are read, and
of a remote file only the parts that are asked for are fetched, into no cache.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.files import open_regular
from flows.recipe.recipe import snapshot_entry
from flows.recipe.remote_files import PLANNING
from flows.recipe.snapshots import find_files
from stages.engine.fetch import read_blocks
from stages.engine.remote import OBJECTS, Identity, TransientError, is_url

MOST_READ = 64 << 20
"""Bytes of one file: a line, or a row group of Parquet, may be as long as its file."""
MOST_FILES = 100_000
"""More files than that are listed no further."""


@dataclass(frozen=True)
class SampledFile:
    """A file by its name below the source; `location` is a path, or a URL with an identity."""

    name: str
    bytes: int
    location: str
    identity: Identity | None = None

    def open(self) -> BinaryIO:
        """The file for reading, which ends after `MOST_READ` bytes that were read.

        OSError where it cannot be read here, InputError where its server does not send it.
        """
        raw: IO[bytes]
        if self.identity is None:
            raw = open_regular(self.location)
        else:
            raw = cast(IO[bytes], RemoteReader(self.location, self.identity))
        return io.BufferedReader(_BoundedReader(raw, self.bytes), 1 << 16)


class _BoundedReader(io.RawIOBase):
    """A file that seems to end once `MOST_READ` bytes were read, wherever those were."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._size, self._left = file, size, MOST_READ

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._file.tell(), io.SEEK_END: self._size}[whence]
        return self._file.seek(base + offset)

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


class RemoteReader(io.RawIOBase):
    """A file at a URL, fetched from where it is read; a seek ends the request that runs.

    InputError once a server fails as often as a plan puts up with.
    """

    def __init__(self, url: str, identity: Identity) -> None:
        self._url, self._identity = url, identity
        self._at, self._ready = 0, memoryview(b"")
        self._blocks: Iterator[bytes] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET:
            raise ValueError("positions are absolute")
        if offset != self._at:
            self._drop()
            self._at = offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        failures = 0
        while not self._ready and self._at < self._identity.bytes:
            try:
                if self._blocks is None:
                    self._blocks = read_blocks(self._url, self._identity, self._at)
                self._ready = memoryview(next(self._blocks, b""))
                if not self._ready:
                    raise TransientError("the connection ended early")
            except TransientError as error:
                self._drop()
                failures += 1
                PLANNING.pause(failures, error, self._url)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._at, self._ready = self._at + count, self._ready[count:]
        return count

    def close(self) -> None:
        self._drop()
        super().close()

    def _drop(self) -> None:
        if self._blocks is not None:
            cast(Any, self._blocks).close()
        self._blocks, self._ready = None, memoryview(b"")


@dataclass(frozen=True)
class DataSource:
    """Data from outside. `where` names it for messages; `entry` are its keys in `snapshots:`."""

    where: str
    entry: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return not self.entry

    @property
    def name(self) -> str:
        """The last part of what it is called."""
        return Path(self.where).resolve().name if self.is_local else self.where.split("/")[-1]

    def list_files(self) -> list[SampledFile]:
        """Its files in the order of their names, hidden and empty ones left out.

        InputError for what is no folder, cannot be listed, or holds no file.
        """
        files = list(islice(self._walk(), MOST_FILES))
        if not files:
            raise InputError("holds no file", where=self.where, hint="hidden files are left out")
        return files

    def _walk(self) -> Iterator[SampledFile]:
        if self.is_local:
            yield from _walk_folder(Path(self.where))
            return
        values = dict(self.entry)
        if "root" in values:
            values = {"files": values["root"]}
        for file in find_files(snapshot_entry("data", values, self.where)):
            assert file.identity is not None, "buckets and the Hub list identities"
            if file.identity.bytes:
                yield SampledFile(file.name, file.identity.bytes, file.location, file.identity)

    def keys(self, recipe_folder: Path) -> str:
        """Its keys as the beginning of an entry of `snapshots:` in a recipe of that folder."""
        entry = dict(self.entry)
        if self.is_local:
            entry["root"] = os.path.relpath(Path(self.where).resolve(), recipe_folder.resolve())
        return ", ".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in entry.items())


def find_source(place: str | None, dataset: str | None, revision: str | None) -> DataSource:
    """The source of `ingot init`: a folder or bucket at `place`, or a data set of the Hub.

    UsageError unless exactly one is named.
    """
    if (place is None) == (dataset is None):
        raise UsageError("name a folder, a bucket, or a data set: --dataset ORG/NAME")
    if dataset is not None:
        revisions = {"revision": revision} if revision is not None else {}
        return DataSource(dataset, {"dataset": dataset, **revisions})
    assert place is not None
    if revision is not None:
        raise UsageError("--revision goes with --dataset only")
    if not is_url(place):
        return DataSource(place)
    if not place.startswith(OBJECTS):
        raise UsageError(
            "a web server does not list its files", where=place,
            hint="name them in a recipe: files: [URL, …], or paths: a list of them",
        )  # fmt: skip
    return DataSource(place.rstrip("/"), {"root": place.rstrip("/")})


def _walk_folder(root: Path) -> Iterator[SampledFile]:
    if not root.is_dir():
        raise InputError("is no folder", where=str(root), hint="name the folder of your files")

    def fail(error: OSError) -> None:
        raise InputError(f"cannot be read: {error.strerror}", where=str(error.filename))

    for folder, folders, names in os.walk(root, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file() and (size := path.stat().st_size):
                yield SampledFile(path.relative_to(root).as_posix(), size, str(path))
