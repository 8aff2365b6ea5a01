"""Running work on this machine: beside the store where that is local, else in the node's cache."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.cache import cache_folder


def local_work(backend: Backend, key: str, *parts: str) -> Path:
    """A run's work folder, or a path in it, on this machine. It may not exist yet.

    On a remote store it lies in the cache folder, apart for each store: only this machine sees it.
    """
    if backend.local:
        return backend.local_path(layout.work(key, *parts))
    store = hashlib.sha256(backend.url.encode()).hexdigest()[:12]
    return cache_folder().joinpath("work", store, key, *parts)


def remove_work(backend: Backend, key: str) -> None:
    """Remove a run's work folder, in the store and on this machine."""
    backend.remove(layout.work(key))
    if not backend.local:
        shutil.rmtree(local_work(backend, key), ignore_errors=True)
