"""What a run tells while it works: one JSON object a line, beside its work."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, TextIO

EVENTS_FILE = "events.jsonl"
TELEMETRY_FOLDER = "telemetry"
"""In a run's work folder: what the stage itself keeps for people."""
PROGRESS_SECONDS = 0.5


class EventWriter:
    """Appends events; progress is thinned to two a second, the last of each series always kept.

    Their times are seconds since 1970 by the wall clock of the first moment, and go on by the
    monotonic one: speeds that are computed of them know no jump of the wall clock.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self._lock = threading.Lock()
        self._last = 0.0
        self._epoch = time.time() - time.monotonic()
        self._standing: dict[str, Any] | None = None

    def write(self, type: str, **values: Any) -> None:
        """Append one event now."""
        now = round(self._epoch + time.monotonic(), 3)
        line = json.dumps({"type": type, "time": now, **values}, default=str)
        with self._lock:
            self._file.write(line + "\n")

    def progress(self, done: float, total: float, unit: str, label: str) -> None:
        """Append a progress event, unless one was written a moment ago and this is not the end."""
        self._standing = {"done": done, "total": total, "unit": unit, "label": label}
        self._progress(done < total, **self._standing)

    def waiting(self, done: float, total: float, unit: str, label: str) -> None:
        """Append how far something is that the work waits for, such as a fetch; thinned as well."""
        self._progress(True, done=done, total=total, unit=unit, label=label)

    def waited(self) -> None:
        """The work goes on: append once more how far it was."""
        if self._standing is not None:
            self._progress(False, **self._standing)

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
