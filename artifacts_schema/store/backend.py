"""Bytes at a URL: the few operations that the store needs of a file system, over fsspec.

Every write of a small record is whole or absent, and `put_if_absent` lets exactly one of several
writers win: locally by a hard link of a finished temporary file, remotely by a conditional put.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from artifacts_schema.errors import StoreError


class Backend:
    """One place for files, addressed by paths relative to `url`."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.fs, self.root = fsspec.core.url_to_fs(str(url))
        self.root = self.root.rstrip("/")
        self.local = "file" in (
            self.fs.protocol if not isinstance(self.fs.protocol, str) else [self.fs.protocol]
        )
        self.url = self.root if self.local else str(url).rstrip("/")

    def full(self, path: str) -> str:
        """The file system's own name for `path`."""
        return f"{self.root}/{path}" if path else self.root

    def local_path(self, path: str) -> Path:
        """`path` as a file on this machine; StoreError on a remote store."""
        if not self.local:
            raise StoreError("this needs a store on a local file system", where=self.url)
        return Path(self.full(path))

    def read(self, path: str) -> bytes:
        """The bytes of a file; FileNotFoundError if there is none."""
        with _explained(self.full(path)):
            return cast(bytes, self.fs.cat_file(self.full(path)))

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading."""
        with _explained(self.full(path)):
            return cast(IO[bytes], self.fs.open(self.full(path), "rb"))

    def size(self, path: str) -> int | None:
        """Bytes of a file, or None if there is none."""
        try:
            return (
                int(self.fs.size(self.full(path)) or 0) if self.fs.exists(self.full(path)) else None
            )
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        return bool(self.fs.exists(self.full(path)))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create a file whole, unless it exists; True for the one writer that created it."""
        with _explained(self.full(path)):
            if not self.local:
                return self._conditional_put(path, data)
            target = self.local_path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = _write_temporary(target, data)
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            finally:
                temporary.unlink()
            fsync_folder(target.parent)
            return True

    def replace(self, path: str, data: bytes) -> None:
        """Write a file whole, over whatever stood there."""
        with _explained(self.full(path)):
            if not self.local:
                self.fs.pipe_file(self.full(path), data)
                return
            target = self.local_path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = _write_temporary(target, data)
            os.replace(temporary, target)
            fsync_folder(target.parent)

    @contextmanager
    def create(self, path: str) -> Iterator[HashingWriter]:
        """Write a payload file; size and sha256 are the writer's when the block ends."""
        with _explained(self.full(path)):
            self.fs.makedirs(self.fs._parent(self.full(path)), exist_ok=True)
            with self.fs.open(self.full(path), "wb") as raw:
                writer = HashingWriter(raw)
                yield writer
                raw.flush()
                if self.local:
                    os.fsync(raw.fileno())

    def link(self, source: str, target: str) -> None:
        """Give the bytes at `source` a second name; nothing is copied where links exist."""
        with _explained(self.full(target)):
            if not self.local:
                self.fs.copy(self.full(source), self.full(target))
                return
            path = self.local_path(target)
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(self.local_path(source), path)
            except FileExistsError:
                path.unlink()
                os.link(self.local_path(source), path)

    def files(self, folder: str) -> list[str]:
        """All files below `folder`, relative to it, sorted."""
        start = self.full(folder)
        try:
            found = self.fs.find(start)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name[len(start) + 1 :] for name in found if name.startswith(start + "/"))

    def folders(self, folder: str) -> list[str]:
        """Names of the folders directly inside `folder`, sorted."""
        try:
            entries = self.fs.ls(self.full(folder), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(
            e["name"].rstrip("/").rsplit("/", 1)[-1] for e in entries if e["type"] == "directory"
        )

    def remove(self, path: str) -> None:
        """Remove a file or a folder with all it holds; nothing there is fine."""
        with suppress(FileNotFoundError), _explained(self.full(path)):
            self.fs.rm(self.full(path), recursive=True)

    def _conditional_put(self, path: str, data: bytes) -> bool:
        try:
            self.fs.pipe_file(self.full(path), data, mode="create")
        except FileExistsError:
            return False
        except OSError as error:
            if "PreconditionFailed" in str(error) or "412" in str(error):
                return False
            raise
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return Backend, (self.url,)


class HashingWriter(io.RawIOBase):
    """A file that knows its size and sha256 while it is written."""

    def __init__(self, raw: IO[bytes]) -> None:
        super().__init__()
        self.raw, self.bytes, self._hash = raw, 0, hashlib.sha256()

    def writable(self) -> bool:
        """Always: this file is for writing."""
        return True

    def write(self, data: Any) -> int:
        """Write and hash; returns the number of bytes."""
        view = memoryview(data).cast("B")
        self.raw.write(view)
        self._hash.update(view)
        self.bytes += len(view)
        return len(view)

    def tell(self) -> int:
        """Bytes written so far."""
        return self.bytes

    @property
    def sha256(self) -> str:
        """sha256 of what was written so far, 64 hex digits."""
        return self._hash.hexdigest()


def fsync_folder(folder: Path) -> None:
    """Make a new name in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_temporary(target: Path, data: bytes) -> Path:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn the operating system's refusals into one line that says what to do."""
    try:
        yield
    except PermissionError as error:
        raise StoreError(
            "permission denied",
            where=path,
            hint="give this user the right to write there, or choose another --store",
        ) from error
    except OSError as error:
        advice = {
            errno.ENOSPC: (
                "no space left on the device",
                "free space and run again; finished parts are kept",
            ),
            errno.EDQUOT: (
                "disk quota exceeded",
                "free space and run again; finished parts are kept",
            ),
            errno.EROFS: ("the file system is read-only", "choose another --store"),
        }.get(error.errno or 0)
        if advice is None:
            raise
        raise StoreError(advice[0], where=path, hint=advice[1]) from error
