"""Events and log of a run: one JSON object per line in its work folder, uploaded to remote stores.

The upload runs while the stage works, so that others can follow it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from artifacts_schema.errors import StoreError
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend

EVENTS_FILE = "events.jsonl"
TELEMETRY_FOLDER = "telemetry"
"""In a run's work folder: what the stage itself keeps for people."""
PROGRESS_SECONDS = 0.5


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

    def progress(self, done: float, total: float, unit: str, label: str) -> None:
        """Append a progress event, unless one was written a moment ago and this is not the end."""
        self._last_progress = {"done": done, "total": total, "unit": unit, "label": label}
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


class EventReader:
    """Reads what was appended since the last call; the file may come or go meanwhile."""

    def __init__(self, path: Path, *, from_end: bool = False) -> None:
        self.path, self._rest = path, ""
        self._file: TextIO | None = None
        self._from_end = from_end

    def read(self) -> list[dict[str, Any]]:
        """New events, oldest first."""
        if self._file is None:
            try:
                self._file = open(self.path, encoding="utf-8")  # noqa: SIM115
            except FileNotFoundError:
                return []
            if self._from_end:
                self._file.seek(0, 2)
        lines = (self._rest + self._file.read()).split("\n")
        self._rest = lines.pop()
        return [json.loads(line) for line in lines if line.strip()]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class StoredEvents:
    """Reads the events of a running stage from the store, wherever it runs.

    Those of a stage on another machine come to a bucket every few seconds, see `LogUploader`.
    """

    def __init__(self, backend: Backend, key: str, *, from_end: bool = False) -> None:
        self._backend, self._path = backend, layout.work(key, EVENTS_FILE)
        self._offset = (backend.size(self._path) or 0) if from_end else 0
        self._rest = b""

    def read(self) -> list[dict[str, Any]]:
        """New events, oldest first. Without the file the stage has not begun, or has committed."""
        try:
            new = self._backend.read(self._path, self._offset)
        except FileNotFoundError:
            return []
        self._offset += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        return [json.loads(line) for line in lines if line.strip()]


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
