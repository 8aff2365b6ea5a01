"""Files of this machine: what a pattern matches, and the checksum that pins each."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, Protocol

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.files import file_state, open_regular
from artifacts_schema.printable import is_utf8
from flows.recipe.snapshot_entry import MAGIC, SnapshotFiles
from stages.engine.known_files import KnownFiles

_BLOCK = 1 << 20


class Progress(Protocol):
    """Told how far the pinning of files is, in bytes hashed or files asked for."""

    def __call__(self, done: int, total: int, unit: str = "bytes", /) -> None:
        """`done` of `total`."""


def match_files(source: SnapshotFiles, pattern: str) -> list[tuple[str, str]]:
    """(name, absolute path) of every file that `pattern` means, hidden ones left out."""
    anchor = os.path.realpath(anchor_of(source))
    full = os.path.normpath(os.path.join(anchor, os.path.expanduser(pattern)))
    start = Path(anchor) if source.root is not None else Path(_fixed_part(full))
    hits = _matches(full) if MAGIC & set(pattern) else [full]
    files = [path for hit in hits for path in _files_at(hit)]
    for path in files:
        if not Path(path).is_relative_to(start):
            raise UsageError(f"'{path}' lies outside the root {start}", where=source.where)
        if not is_utf8(path):
            raise InputError("the file's name is not UTF-8", where=path, hint="rename it")
    return [(Path(path).relative_to(start).as_posix(), path) for path in files]


def anchor_of(source: SnapshotFiles) -> Path:
    """The folder that relative patterns begin in."""
    return source.base / os.path.expanduser(source.root) if source.root is not None else source.base


def checksums(
    known: KnownFiles, paths: Sequence[str], progress: Progress | None = None
) -> dict[str, tuple[int, str]]:
    """Size and sha256 by path; only files that were touched since they were last read are read.

    Raises InputError for what cannot be read, is no regular file, or changes meanwhile.
    """
    sums: dict[str, tuple[int, str]] = {}
    unknown: list[tuple[str, int]] = []
    for path in paths:
        try:
            status = os.stat(path)
        except OSError as error:
            raise _unreadable(path, error) from None
        sha256 = known.sha256(path, status)
        if sha256 is None:
            unknown.append((path, status.st_size))
        else:
            sums[path] = status.st_size, sha256
    total, done = sum(size for _, size in unknown), 0
    for path, _ in unknown:
        digest = hashlib.sha256()
        try:
            with open_regular(path) as raw:
                status = os.fstat(raw.fileno())
                while block := raw.read(_BLOCK):
                    digest.update(block)
                    done += len(block)
                    if progress is not None:
                        progress(done, total)
                changed = file_state(os.fstat(raw.fileno())) != file_state(status)
        except OSError as error:
            raise _unreadable(path, error) from None
        if changed:
            raise InputError("the file changed while it was read", where=path, hint="run again")
        sums[path] = status.st_size, digest.hexdigest()
        known.note_sha256(path, status, digest.hexdigest())
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


def _matches(pattern: str) -> list[str]:
    """What a pattern matches, sorted; InputError for a folder that cannot be listed.

    `glob` takes such a folder for an empty one, and the snapshot would lack files without a word.
    """
    parts = pattern.split(os.sep)
    for depth, part in enumerate(parts):
        if MAGIC & set(part):
            above = glob.glob(os.sep.join(parts[:depth]) or os.sep, recursive=True)
            for folder in filter(os.path.isdir, above):
                for _, below, _ in os.walk(folder, onerror=_refuse):
                    below[:] = [n for n in below if n[0] != "."] if part == "**" else []
    return sorted(glob.glob(pattern, recursive=True))


def _refuse(error: OSError) -> NoReturn:
    raise _unreadable(str(error.filename), error)


def _files_at(path: str) -> list[str]:
    """The file, or all files below the folder; InputError for a folder that cannot be listed."""
    if not os.path.isdir(path):
        return [path] if os.path.lexists(path) else []
    found = []
    for folder, folders, names in os.walk(path, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [os.path.join(folder, name) for name in sorted(names) if name[0] != "."]
    return found
