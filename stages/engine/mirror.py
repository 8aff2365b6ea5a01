"""Copies a run's log and events to a remote store while it works, so that others can follow it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from artifacts_schema.errors import StoreError
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend

EVERY_SECONDS = 10.0
BYTES_PER_SECOND = 1_000_000
"""A bucket has no appends, so files are copied whole: long ones less often, to take no more."""


class Mirror:
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
        wait = min(1.0, EVERY_SECONDS)  # The first copy comes soon: a follower waits for it.
        while not self._end.wait(wait):
            self.copy()
            wait = max(EVERY_SECONDS, sum(self._sizes.values()) / BYTES_PER_SECOND)
