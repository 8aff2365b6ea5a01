"""Files of this machine: what a pattern matches, and the checksum that pins each."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from artifacts_schema.errors import InputError, UsageError
from flows.recipe.snapshot_entry import MAGIC, SnapshotFiles
from stages.engine.known_files import KnownFiles

_BLOCK = 1 << 20


class Progress(Protocol):
    """Told how far the pinning of files is, in bytes hashed or files asked for."""

    def __call__(self, done: int, total: int, unit: str = "bytes", /) -> None:
        """`done` of `total`."""


def match_files(source: SnapshotFiles, pattern: str) -> list[tuple[str, str]]:
    """(name, absolute path) of every file that `pattern` means, hidden ones left out."""
    anchor = anchor_of(source).resolve()
    full = os.path.normpath(anchor / os.path.expanduser(pattern))
    start = anchor if source.root is not None else Path(_fixed_part(full))
    hits = sorted(glob.glob(full, recursive=True)) if MAGIC & set(pattern) else [full]
    files = [path for hit in hits for path in _files_at(hit)]
    for path in files:
        if not Path(path).is_relative_to(start):
            raise UsageError(f"'{path}' lies outside the root {start}", where=source.where)
    return [(Path(path).relative_to(start).as_posix(), path) for path in files]


def anchor_of(source: SnapshotFiles) -> Path:
    """The folder that relative patterns begin in."""
    return source.base / Path(source.root).expanduser() if source.root is not None else source.base


def checksums(
    known: KnownFiles, paths: Sequence[str], progress: Progress | None = None
) -> dict[str, tuple[int, str]]:
    """Size and sha256 by path; only files that are not known in this size and time are read.

    Raises InputError for a file that cannot be read.
    """
    sums: dict[str, tuple[int, str]] = {}
    unknown: list[tuple[str, int, int]] = []
    for path in paths:
        try:
            status = os.stat(path)
        except OSError as error:
            raise _unreadable(path, error) from None
        sha256 = known.sha256(path, status.st_size, status.st_mtime_ns)
        if sha256 is None:
            unknown.append((path, status.st_size, status.st_mtime_ns))
        else:
            sums[path] = status.st_size, sha256
    total, done = sum(size for _, size, _ in unknown), 0
    for path, size, mtime_ns in unknown:
        digest = hashlib.sha256()
        try:
            with open(path, "rb") as raw:
                while block := raw.read(_BLOCK):
                    digest.update(block)
                    done += len(block)
                    if progress is not None:
                        progress(done, total)
        except OSError as error:
            raise _unreadable(path, error) from None
        sums[path] = size, digest.hexdigest()
        known.note_sha256(path, size, mtime_ns, digest.hexdigest())
    return sums


def _unreadable(path: str, error: OSError) -> InputError:
    hint = "check the path" if isinstance(error, FileNotFoundError) else "make it readable"
    return InputError(f"cannot be read: {error.strerror}", where=path, hint=hint)


def _fixed_part(pattern: str) -> str:
    """The folder below which names begin: a folder itself, or the fixed folder of a pattern."""
    if os.path.isdir(pattern):
        return pattern
    parts = pattern.split(os.sep)
    first = next((i for i, part in enumerate(parts) if MAGIC & set(part)), len(parts) - 1)
    return os.sep.join(parts[:first]) or os.sep


def _files_at(path: str) -> list[str]:
    if os.path.isfile(path):
        return [path]
    found = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [os.path.join(folder, name) for name in sorted(names) if name[0] != "."]
    return found
