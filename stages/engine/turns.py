"""Politeness: how many files come from one web server to this machine at a time.

A node has many workers, and a public archive serves everybody: Common Crawl answers 503 to all
while a few ask too much (https://status.commoncrawl.org).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from artifacts_schema.identity import sha256_of
from stages.engine.transfers import TICK, pause
from stages.engine.urls import WEB

AT_ONCE = 4
"""Files that come from one host at a time, whatever the number of workers."""


@contextmanager
def turn(folder: Path, url: str) -> Iterator[None]:
    """Wait until fewer than AT_ONCE other processes fetch from the host of `url`.

    Buckets serve as many as ask. Turns are locks on files below `folder`, so a killed process
    gives its own back.
    """
    parts = urlsplit(url)
    if parts.scheme not in WEB:
        yield
        return
    lock = _taken(folder / "turns" / sha256_of(parts.netloc)[:16])
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _taken(place: Path) -> int | None:
    """The descriptor of a lock, or None on a file system without locks."""
    place.mkdir(parents=True, exist_ok=True)
    while True:
        for number in range(AT_ONCE):
            lock = os.open(place / f"{number}.lock", os.O_RDONLY | os.O_CREAT, 0o644)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            except OSError:
                os.close(lock)
                return None
            return lock
        pause(TICK)
