"""Events and log of a run: one JSON object per line in its work folder, uploaded to remote stores.

The upload runs while the stage works, so that others can follow it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from artifacts_schema.errors import StoreError
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend

EVENTS_FILE = "events.jsonl"
TELEMETRY_FOLDER = "telemetry"
"""In a run's work folder: what the stage itself keeps for people."""
PROGRESS_SECONDS = 0.5
NO_ROWS: Mapping[str, int] = MappingProxyType({})


class EventWriter:
    """Appends events; progress is thinned to two a second, the last of each series always kept.

    Their times are seconds since 1970 by the wall clock of the first moment, and continue by the
    monotonic one: speeds computed from them do not depend on jumps of the wall clock.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self._lock = threading.Lock()
        self._last = 0.0
        self._epoch = time.time() - time.monotonic()
        self._last_progress: dict[str, Any] | None = None

    def write(self, type: str, **values: Any) -> None:
        """Append one event now."""
        now = round(self._epoch + time.monotonic(), 3)
        line = json.dumps({"type": type, "time": now, **values}, default=str)
        with self._lock:
            self._file.write(line + "\n")

    @property
    def position(self) -> str:
        """The last progress, such as `12 of 40 training steps`; empty before the first."""
        last = self._last_progress
        return f"{last['done']} of {last['total']} {last['unit']}".strip() if last else ""

    def progress(
        self, done: float, total: float, unit: str, label: str, rows: Mapping[str, int] = NO_ROWS
    ) -> None:
        """Append a progress event, unless one was written a moment ago and this is not the end.

        `rows` are those that this start has written to each output under the same label.
        """
        self._last_progress = {"done": done, "total": total, "unit": unit, "label": label}
        if rows:
            self._last_progress["rows"] = dict(rows)
        self._progress(done < total, **self._last_progress)

    def waiting(self, done: float, total: float, unit: str, label: str) -> None:
        """Append how far something is that the work waits for, such as a fetch; thinned as well."""
        self._progress(True, done=done, total=total, unit=unit, label=label)

    def waited(self) -> None:
        """The work continues: append its last progress again."""
        if self._last_progress is not None:
            self._progress(False, **self._last_progress)

    def _progress(self, thinned: bool, **values: Any) -> None:
        now = time.monotonic()
        if thinned and now - self._last < PROGRESS_SECONDS:
            return
        self._last = now
        self.write("progress", **values)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


ANCHOR_BYTES = 64
"""Bytes before the place reached that are read again: another file has others there. The first line
of a file alone holds the time of its start to the millisecond."""


class EventTail:
    """Reads the lines of a file of JSON objects that were appended since the last call.

    A step's events lie in its work folder while it runs, and beside its payload once it has
    committed; those of a step on another machine come to a bucket every few seconds, see
    `LogUploader`. Between two reads the file may have grown, be gone, be the copy elsewhere, or be
    another one: on a new node, or after its work folder was removed, a step starts a file of its
    own. Events are read once each, whichever of these happens.
    """

    def __init__(self, read: Callable[[str, int], bytes]) -> None:
        """`read` returns a file's bytes from a place on, as `Backend.read` and `HeldFile.read`."""
        self._read, self._offset, self._anchor = read, 0, b""
        self.broken_lines = 0
        """Lines that a kill cut short."""

    def skip(self, path: str) -> None:
        """Begin after what the file at `path` holds now."""
        self._take(path)

    def read(self, path: str) -> list[dict[str, Any]]:
        """New events of the file at `path`, oldest first; none while there is no file.

        A line without its end is left for the next call. Where the file is not the one of the last
        call, or a copy of it, all its events are new.
        """
        return list(self._parse(self._take(path).split(b"\n")))

    def _take(self, path: str) -> bytes:
        """The whole lines that are new."""
        try:
            data = self._read(path, self._offset - len(self._anchor))
            if not data.startswith(self._anchor):
                self._offset, self._anchor = 0, b""
                data = self._read(path, 0)
        except FileNotFoundError:
            return b""
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) <= len(self._anchor):
            return b""
        new = whole[len(self._anchor) :]
        self._offset += len(new)
        self._anchor = whole[-ANCHOR_BYTES:]
        return new

    def _parse(self, lines: list[bytes]) -> Iterator[dict[str, Any]]:
        for line in lines:
            if not line.strip():
                continue
            event = _load(line)
            if event is None:
                # What a kill cut short has no end of line: the next start's first event follows it.
                self.broken_lines += 1
                event = _load(line[max(0, line.rfind(b'{"type"')) :])
            if isinstance(event, dict):
                yield event


class HeldFile:
    """A file of this machine that is kept open, and so is read to its end after its removal."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None

    def read(self, path: str, start: int = 0) -> bytes:
        """The bytes from `start` on; FileNotFoundError until there is one. A new one is taken."""
        if self._file is None or _is_another(path, self._file):
            self._file = open(path, "rb")  # noqa: SIM115
        self._file.seek(start)
        return self._file.read()


def _is_another(path: str, file: BinaryIO) -> bool:
    try:
        return not os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _load(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


UPLOAD_SECONDS = 10.0
UPLOAD_BYTES_PER_SECOND = 1_000_000
"""A bucket has no appends, so files are copied whole: long ones less often, to take no more."""


class LogUploader:
    """Copies the files `names` of `folder` into the work folder of `key`; idle on a local store.

    Only while `is_mine`: once another run has the key, the log there is that run's.
    """

    def __init__(
        self,
        backend: Backend,
        key: str,
        folder: Path,
        names: tuple[str, ...],
        is_mine: Callable[[], bool],
    ) -> None:
        self.backend, self.key, self.folder, self.names = backend, key, folder, names
        self._is_mine = is_mine
        self._sizes: dict[str, int] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True, name="mirror")

    def start(self) -> None:
        """Copy in the background until stopped."""
        if not self.backend.local:
            self._thread.start()

    def stop(self, *, last: bool) -> None:
        """End the background thread; then copy once more if asked for."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        if last and not self.backend.local:
            self.copy()

    def copy(self) -> None:
        """Copy what has grown since; a store that is away for a while costs only the picture."""
        for name in self.names:
            try:
                data = (self.folder / name).read_bytes()
                if self._sizes.get(name) != len(data) and self._is_mine():
                    self.backend.replace(layout.work(self.key, name), data)
                    self._sizes[name] = len(data)
            except (OSError, StoreError):
                continue

    def _loop(self) -> None:
        wait = min(1.0, UPLOAD_SECONDS)  # The first copy comes soon: a follower waits for it.
        while not self._end.wait(wait):
            self.copy()
            wait = max(UPLOAD_SECONDS, sum(self._sizes.values()) / UPLOAD_BYTES_PER_SECOND)
