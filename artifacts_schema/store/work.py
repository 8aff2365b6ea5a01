"""Running work on this machine: beside the store where that is local, else in the node's cache."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from artifacts_schema.errors import StoreError
from artifacts_schema.identity import short
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend, LocalBackend
from artifacts_schema.store.cache import cache_folder
from artifacts_schema.store.lease import Lease

log = logging.getLogger(__name__)


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
        remove_local_work(backend, key)


def remove_local_work(backend: Backend, key: str) -> None:
    """Remove what a run of a remote store keeps on this machine; raises StoreError if it cannot."""
    LocalBackend(str(local_work(backend, key))).remove("")


@contextmanager
def holding(backend: Backend, key: str, *, wait: bool = True) -> Iterator[Lease]:
    """Hold the lease of `key` for a short piece of work that leaves no state.

    Waits while a run holds it; Stopped instead without `wait`. One that was suspended and succeeded
    meanwhile leaves the lease to its successor.
    """
    lease = Lease.take(backend, key, give_up=lambda: not wait)
    assert lease is not None, "nothing settles the wait"
    lease.start_beating()
    try:
        yield lease
    except BaseException:
        try:
            _end(lease)
        except (OSError, StoreError) as error:  # It must not hide why the work failed.
            log.warning("the lease of %s stays: %s", short(key), error)
        raise
    _end(lease)


def _end(lease: Lease) -> None:
    """Remove a lease, unless another run has taken the key over."""
    lease.stop_beating()
    if lease.is_mine():
        lease.backend.remove(layout.work(lease.key, "lease", f"{lease.number:08d}.json"))
        lease.backend.remove_empty(layout.work(lease.key, "lease"))
        lease.backend.remove_empty(layout.work(lease.key))
