"""One run at a time for a key, without a server and without trusting anybody's clock.

A lease is a file whose name is its fencing number. Taking over is creating the next number, which
exactly one process can do. The owner raises a counter in its file; a waiter calls it dead when the
counter stands still on the waiter's *own* monotonic clock, or at once when the owner ran on this
machine and its process is gone. A run that finds a higher number than its own has lost the key and
must not commit.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Self

from artifacts_schema.errors import LeaseLost, Stopped, StoreError
from artifacts_schema.identity import short
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend

HEARTBEAT_SECONDS = 5.0
DEAD_SECONDS = 30.0
POLL_SECONDS = 0.2
REMOTE_POLL_SECONDS = 2.0
_LEASE = re.compile(r"work/([^/]+)/lease/\d+\.json")


@dataclass(frozen=True)
class Record:
    """What the lease file says."""

    owner: str
    machine: str
    process: int
    started: str
    counter: int = 0
    released: bool = False


class Lease:
    """The right to work on `key` until released or taken over."""

    def __init__(self, backend: Backend, key: str, number: int, record: Record) -> None:
        self.backend, self.key, self.number, self.record = backend, key, number, record
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def take(
        cls,
        backend: Backend,
        key: str,
        *,
        dead_after: float = DEAD_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
        on_wait: Callable[[Record], None] | None = None,
        give_up: Callable[[], bool] = lambda: False,
        settled: Callable[[], bool] = lambda: False,
    ) -> Self | None:
        """Take the lease, waiting while another run holds it and lives.

        Returns None if `settled()` becomes true in the meantime (the other run has committed);
        raises Stopped if `give_up()` does. `on_wait` is called once with the holder.
        """
        seen: tuple[int, int] | None = None
        since = clock()
        told = False
        while True:
            if settled():
                return None
            number, holder = _latest(backend, key)
            if holder is None or holder.released or process_is_gone(holder):
                mine = this_process()
                if backend.put_if_absent(_path(key, number + 1), json.dumps(asdict(mine)).encode()):
                    return cls(backend, key, number + 1, mine)
                continue
            if (number, holder.counter) != seen:
                seen, since = (number, holder.counter), clock()
            elif clock() - since >= dead_after:
                backend.replace(
                    _path(key, number), json.dumps(asdict(replace(holder, released=True))).encode()
                )
                continue
            if not told and on_wait is not None:
                on_wait(holder)
                told = True
            if give_up():
                raise Stopped("stopped while another run holds the key", where=short(key))
            wait(POLL_SECONDS if backend.local else REMOTE_POLL_SECONDS)

    def beat(self) -> None:
        """Raise the counter, so that waiters see that this run lives."""
        self.record = replace(self.record, counter=self.record.counter + 1)
        self._write()

    def start_beating(self, every: float = HEARTBEAT_SECONDS) -> None:
        """Beat in the background until released."""

        def loop() -> None:
            while not self._wake.wait(every):
                try:
                    if self.is_mine():
                        self.beat()
                except (OSError, StoreError):
                    continue  # A full disk must not kill the run; waiters judge by the counter.

        self._thread = threading.Thread(target=loop, daemon=True, name="lease")
        self._thread.start()

    def is_mine(self) -> bool:
        """Whether no other run has taken the key over."""
        number, record = _latest(self.backend, self.key)
        if number != self.number or record is None or record.released:
            return False
        return record.owner == self.record.owner  # A number is free again once its file is removed.

    def check(self) -> None:
        """Raise LeaseLost if another run has taken the key over."""
        if not self.is_mine():
            raise LeaseLost(
                "another run took this key over",
                where=short(self.key),
                hint="nothing is lost: that run, or a new one, continues from the finished parts",
            )

    def stop_beating(self) -> None:
        """End the background thread."""
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def release(self) -> None:
        """Let the next run have the key at once."""
        self.stop_beating()
        if self.backend.size(_path(self.key, self.number)) is not None:
            self.record = replace(self.record, released=True)
            self._write()

    def _write(self) -> None:
        self.backend.replace(_path(self.key, self.number), json.dumps(asdict(self.record)).encode())


def is_held(backend: Backend, key: str) -> bool:
    """Whether a run holds `key` and is not known to be dead."""
    return bool(held_keys(backend, _lease_files(backend, key)))


def held_keys(backend: Backend, files: Iterable[str]) -> set[str]:
    """Keys that a run holds and is not known to be dead, by the leases among `files`."""
    newest: dict[str, str] = {}
    for path in sorted(files):
        match = _LEASE.fullmatch(path)
        if match is not None:
            newest[match[1]] = path
    keys = {path: key for key, path in newest.items()}
    found = backend.read_many(keys)
    records = {keys[path]: _parsed(raw) for path, raw in found.items()}
    return {key for key, record in records.items() if _holds(record)}


def _holds(record: Record | None) -> bool:
    return record is not None and not record.released and not process_is_gone(record)


def _lease_files(backend: Backend, key: str) -> list[str]:
    folder = layout.work(key, "lease")
    return [f"{folder}/{name}" for name in backend.files(folder)]


def _path(key: str, number: int) -> str:
    return layout.work(key, "lease", f"{number:08d}.json")


def _latest(backend: Backend, key: str) -> tuple[int, Record | None]:
    paths = [path for path in _lease_files(backend, key) if _LEASE.fullmatch(path)]
    if not paths:
        return 0, None
    number = int(Path(paths[-1]).stem)
    try:
        return number, _parsed(backend.read(paths[-1]))
    except FileNotFoundError:
        return 0, None  # The holder committed and removed its work folder meanwhile.


def _parsed(raw: bytes) -> Record | None:
    """None for what is not a lease any more: whoever takes the next number goes on."""
    try:
        return Record(**json.loads(raw))
    except (ValueError, TypeError):
        return None


@cache
def _machine() -> str:
    """This boot of this machine, and this process namespace: where a process id means something."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"unknown-{secrets.token_hex(8)}"


def _started(process: int) -> str | None:
    """Start time of a process in clock ticks since boot: tells a reused process id apart."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def this_process() -> Record:
    """A fresh record of this process: machine, process id, and its start, which tells reuse."""
    process = os.getpid()
    return Record(secrets.token_hex(8), _machine(), process, _started(process) or "")


def process_is_gone(record: Record) -> bool:
    """Whether the process ran on this machine and is there no more; False where nobody can know."""
    return record.machine == _machine() and _started(record.process) != record.started
