"""What a store remembers of files outside, so that planning again is quick. Safe to remove.

One JSON file in the store: `[file_state, sha256]` by path, `[bytes, etag, asked]` by URL.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from artifacts_schema.errors import StoreError
from artifacts_schema.files import file_state
from artifacts_schema.store import Store, layout
from stages.engine.remote import Identity

FRESH_SECONDS = 600.0
"""How long an answer of a server stands for another one, where many files are asked for."""


class KnownFiles:
    """The memory, as it was when it was loaded; `save` writes what was noted since."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock, self._changed = store, clock, False
        try:
            known = json.loads(store.backend.read(layout.checksums()))
        except (FileNotFoundError, ValueError):
            known = {}  # A lost or broken memory is made anew.
        self._known: dict[str, Any] = known if isinstance(known, dict) else {}

    def sha256(self, path: str, status: os.stat_result) -> str | None:
        """The checksum of a local file that nobody touched since (see `file_state`)."""
        match self._known.get(path):
            case [list(state), str(sha256)] if state == list(file_state(status)):
                return sha256
        return None

    def note_sha256(self, path: str, status: os.stat_result, sha256: str) -> None:
        """Remember a checksum, with the file's status from before it was read."""
        self._known[path] = [list(file_state(status)), sha256]
        self._changed = True

    def identity(self, url: str) -> Identity | None:
        """What a server said of a URL within the last FRESH_SECONDS."""
        match self._known.get(url):
            case [int(size), str(etag), float(asked)]:
                if 0 <= self._clock() - asked < FRESH_SECONDS:
                    return Identity(size, etag)
        return None

    def note_identity(self, url: str, found: Identity) -> None:
        """Remember what a server said now."""
        self._known[url] = [found.bytes, found.etag, float(self._clock())]
        self._changed = True

    def forget(self, path: str) -> None:
        """Remember nothing of a path or URL."""
        self._changed |= self._known.pop(path, None) is not None

    def save(self) -> None:
        """Write the memory, if anything was noted."""
        if self._changed:
            raw = json.dumps(self._known, sort_keys=True).encode()
            self._store.backend.replace(layout.checksums(), raw)


def forget(store: Store, url: str) -> None:
    """Have the next plan ask the server again: the file behind `url` changed while it was read."""
    with suppress(StoreError, OSError):  # A stage that may not write there has lost only time.
        known = KnownFiles(store)
        known.forget(url)
        known.save()
