"""JSON lines that one process appends to: a line is on disk once `append` returns, or not there.

A line that a kill has cut is dropped when the file is opened again; what a full disk has cut is
removed at once, so that the next append begins a line of its own.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.store.backend import fsync_folder
from artifacts_schema.store.storage_errors import translate_errors


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file, none where there is no file; InputError for one that is no JSON.

    A last line without its newline is left out: it is being written, or a kill has cut it.
    """
    try:
        with translate_errors(str(path)):
            raw = path.read_bytes()
    except FileNotFoundError:
        return []
    return _parse(path, raw)


def _parse(path: Path, raw: bytes) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(raw.split(b"\n")[:-1], start=1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise InputError(
                f"line {number} is no JSON object", where=str(path), hint="restore the file"
            )
        rows.append(row)
    return rows


class DurableLines:
    """The file `path`, made where it is missing, and held by this process until it is closed.

    UsageError where another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with translate_errors(str(path)):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                self.rows = self._open()
            except BaseException:
                os.close(self._file)
                raise

    def _open(self) -> list[dict[str, Any]]:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                "another process writes to it", where=str(self.path), hint="end that one first"
            ) from None
        raw = self.path.read_bytes()
        self._end = raw.rfind(b"\n") + 1
        rows = _parse(self.path, raw)
        os.ftruncate(self._file, self._end)
        os.fsync(self._file)
        fsync_folder(self.path.parent)
        return rows

    def append(self, *rows: Mapping[str, Any]) -> None:
        """Add lines. StoreError where the disk takes them not whole: then none is there."""
        raw = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
        with translate_errors(str(self.path)):
            os.ftruncate(self._file, self._end)  # Where an earlier error left no time for it.
            try:
                written = 0
                while written < len(raw):
                    written += os.pwrite(self._file, raw[written:], self._end + written)
                os.fsync(self._file)
            except OSError:
                os.ftruncate(self._file, self._end)
                raise
        self._end += len(raw)
        self.rows += [dict(row) for row in rows]

    def close(self) -> None:
        """Let other processes write."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
