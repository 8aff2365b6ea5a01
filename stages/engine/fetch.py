"""Copies of remote files on this machine: fetched once, gone on with after a kill, bounded in size.

A copy lies in the cache under `sources/`, named by its checksum where that is known, else by URL,
size and ETag:

    NAME.part      what has arrived; locked by the process that fetches, others wait for it
    NAME-SHA256    the whole file with its checksum, taken while it arrived

The least recently opened ones make room for new ones (`INGOT_CACHE`, `INGOT_CACHE_SIZE`).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from artifacts_schema.errors import StoreError
from artifacts_schema.identity import sha256_of
from artifacts_schema.store.cache import Room, cache_folder
from stages.engine.remote import BLOCK, Identity, Interrupted, Patience, SourceChanged, blocks
from stages.engine.transfers import TICK, check_stop, pause, stoppable, told
from stages.engine.turns import turn
from stages.engine.urls import without_secrets

if TYPE_CHECKING:
    from hashlib import _Hash

PROGRESS = 1 << 20
"""Bytes that must arrive for a fault not to count as one more in a row."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


def open_copy(
    url: str,
    pinned: Identity,
    *,
    name: str | None = None,
    check: bool = True,
    patience: Patience | None = None,
) -> BinaryIO:
    """The file behind `url`, fetched if there is no copy yet, open for reading and seekable.

    `name` is what its progress is told under; `check` hashes a copy that lay there already. Raises
    SourceChanged if the file is not the pinned one any more, InputError if it cannot be had,
    StoreError if there is no room for it, Stopped if the stage is asked to stop.
    """
    copy = _Copy(cache_folder() / "sources", url, pinned, name or url.partition("?")[0])
    for _ in range(3):  # Whoever fetched it, or removed it, may have been another process.
        found = copy.opened(check=check)
        if found is not None:
            return found
        copy.fetch(patience or Patience())
        check = False
    raise StoreError(
        f"the copy of {without_secrets(url)} is removed before it can be read",
        where=str(copy.folder),
        hint="leave the cache alone while something runs, and run again",
    )


class _Copy:
    """The copy of one state of one file."""

    def __init__(self, sources: Path, url: str, pinned: Identity, shown: str) -> None:
        self.sources, self.url, self.pinned, self.shown = sources, url, pinned, shown
        known = ["sha256", pinned.sha256] if pinned.sha256 else [url, pinned.bytes, pinned.etag]
        self.name = sha256_of(known)
        self.folder = sources / self.name[:2]
        self.part = self.folder / f"{self.name}.part"

    def opened(self, *, check: bool) -> BinaryIO | None:
        """The whole copy, or None if there is none; a damaged one is removed."""
        for path in self.folder.glob(f"{self.name}-*"):
            with suppress(FileNotFoundError):
                file = path.open("rb")
                if os.fstat(file.fileno()).st_size == self.pinned.bytes and (
                    not check or _sha256(file) == path.name.partition("-")[2]
                ):
                    os.utime(path)
                    return file
                file.close()
                path.unlink()
        return None

    def fetch(self, patience: Patience) -> None:
        """Make the copy whole, or wait for the process that does."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            room = Room(self.sources)
            room.make(self.pinned.bytes)
            with (
                open(self.part, "a+b", buffering=0) as file,
                told(self.shown, self.pinned.bytes) as come,
            ):
                _lock(file, come)
                if not _is_at(file, self.part):
                    return  # It was made, or taken away, while this process waited.
                try:
                    sha256 = self._fill(file, patience, room, come)
                except SourceChanged:
                    self.part.unlink()
                    raise
                os.replace(self.part, self.folder / f"{self.name}-{sha256}")
        except OSError as error:
            hint = "set INGOT_CACHE to a folder that can be written and has room"
            if error.errno in _FULL:
                hint = (
                    "what has arrived is kept: free space and run again, "
                    "or set INGOT_CACHE to a folder on a larger disk"
                )
            raise StoreError(
                f"no copy of {without_secrets(self.url)} can be made: {error.strerror}",
                where=str(self.folder),
                hint=hint,
            ) from error

    def _fill(
        self, file: FileIO, patience: Patience, room: Room, come: Callable[[int], None]
    ) -> str:
        """Append what is missing, and once more from the start if that is not what was pinned."""
        for _ in range(2):
            sha256 = self._append_rest(file, patience, room, come)
            if self.pinned.sha256 in (None, sha256):
                return sha256
            file.truncate(0)
        raise SourceChanged("the bytes are not those of the pinned checksum", where=self.url)

    def _append_rest(
        self, file: FileIO, patience: Patience, room: Room, come: Callable[[int], None]
    ) -> str:
        """Append what is missing, and again after faults; the sha256 of all of it."""
        total = self.pinned.bytes
        file.seek(0)
        digest = checksum(file, hashlib.sha256())
        have, failures = file.tell(), 0
        with turn(self.sources.parent, self.url):
            while have < total:
                before = have
                try:
                    for block in stoppable(partial(blocks, self.url, self.pinned, have)):
                        have += len(block)
                        if have > total:
                            raise SourceChanged(
                                f"more came than the {total:,} bytes that were pinned",
                                where=self.url,
                            )
                        _append(file, block, room)
                        digest.update(block)
                        come(have)
                    if have < total:
                        raise Interrupted(f"the connection ended after {have:,} of {total:,} bytes")
                except Interrupted as error:
                    failures = 1 if have - before >= PROGRESS else failures + 1
                    patience.pause(failures, error, self.url)
        return digest.hexdigest()


def checksum(file: IO[bytes], digest: _Hash) -> _Hash:
    """`digest` with the rest of `file`; Stopped if the stage is asked to stop meanwhile."""
    while block := file.read(BLOCK):
        digest.update(block)
        check_stop()
    return digest


def _lock(file: FileIO, come: Callable[[int], None]) -> None:
    """Wait for the process that fetches the same file, telling how far that one is."""
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            come(os.fstat(file.fileno()).st_size)
            pause(TICK)


def _append(file: FileIO, block: bytes, room: Room) -> None:
    """Write at once, so that what has arrived outlives this process; a full cache makes room."""
    left, cleared = memoryview(block), False
    while left:
        try:
            left = left[file.write(left) :]
        except OSError as error:
            if cleared or error.errno not in _FULL:
                raise
            room.clear()
            cleared = True


def _sha256(file: BinaryIO) -> str:
    digest = checksum(file, hashlib.sha256()).hexdigest()
    file.seek(0)
    return digest


def _is_at(file: FileIO, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
