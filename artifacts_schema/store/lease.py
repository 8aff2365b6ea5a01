"""One run at a time for a key, without a server and without trusting anybody's clock.

A lease is a file whose name is its fencing number. Taking over is creating the next number, which
exactly one process can do. The owner raises a counter in its file; a waiter calls it dead when the
counter stands still on the waiter's *own* monotonic clock, or at once when the owner ran on this
machine and its process is gone. A silent owner that still lives on this machine is ended before it
is succeeded; one on another machine may wake up later. A run that finds a higher number than its
own, or its own file gone or replaced, has lost the key: it writes nothing that its successor reads.

Running work on this machine is kept in the store if that is local, else in the node's cache.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Self

from artifacts_schema.errors import LeaseLost, Stopped, StoreError
from artifacts_schema.identity import short
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend, LocalBackend
from artifacts_schema.store.cache import boot_id, cache_folder

HEARTBEAT_SECONDS = 5.0
DEAD_SECONDS = 30.0
POLL_SECONDS = 0.2
REMOTE_POLL_SECONDS = 2.0
KILL_SECONDS = 10.0
"""How long the end of a process that was killed is waited for."""
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
    silent: bool = False
    """Released by the run that succeeded it, not by itself: it may wake up."""
    spent: dict[str, float | str] = field(default_factory=dict)
    """What the holder says of its cost so far; see `stages.engine.meter`."""


class Lease:
    """The right to work on `key` until released or taken over."""

    def __init__(self, backend: Backend, key: str, number: int, record: Record) -> None:
        self.backend, self.key, self.number, self.record = backend, key, number, record
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._lost = False
        self.meter: Callable[[bool], dict[str, float | str]] = lambda final: {}
        """What a heartbeat, and the release (`final`), note as `Record.spent`."""

    @property
    def holder(self) -> str:
        """Names this holder of the key: its number, then its owner, since numbers begin again at 1
        once a work folder was removed. Holders of one work folder sort by it."""
        return f"{self.number:08d}-{self.record.owner}"

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
        on_silent: Callable[[Record, bool], None] | None = None,
        give_up: Callable[[], bool] = lambda: False,
        settled: Callable[[], bool] = lambda: False,
    ) -> Self | None:
        """Take the lease, waiting while another run holds it and lives.

        Returns None if `settled()` becomes true in the meantime (the other run has committed);
        raises Stopped if `give_up()` does. `on_wait` is called once with the holder, `on_silent`
        with one that was silent for `dead_after` seconds, and whether its process was ended.
        """
        seen: tuple[int, int] | None = None
        since = clock()
        reported = False
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
                ended = end_process(holder, key)
                if on_silent is not None:
                    on_silent(holder, ended)
                over = replace(holder, released=True, silent=not ended)
                backend.replace(_path(key, number), json.dumps(asdict(over)).encode())
                continue
            if not reported and on_wait is not None:
                on_wait(holder)
                reported = True
            if give_up():
                raise Stopped("stopped while another run holds the key", where=short(key))
            wait(POLL_SECONDS if backend.local else REMOTE_POLL_SECONDS)

    def beat(self) -> None:
        """Raise the counter, so that waiters see that this run lives."""
        spent = self.meter(False)
        self.record = replace(self.record, counter=self.record.counter + 1, spent=spent)
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
        """Whether no other run has taken the key over. Once it is lost, it stays lost."""
        if not self._lost:
            self._lost = not self._is_current()
        return not self._lost

    def check(self, *, ask: bool = True) -> None:
        """Raise LeaseLost if another run has taken the key over.

        Without `ask` it costs no request to a remote store, and may be called at every training
        step: there it repeats what the last heartbeat found. On a local store it asks as well.
        """
        if self._lost or ((ask or self.backend.local) and not self.is_mine()):
            raise LeaseLost(
                "another run took this key over",
                where=short(self.key),
                hint="nothing is lost: that run, or a new one, continues from the finished parts",
            )

    def _is_current(self) -> bool:
        """Whether the file of this lease exists, is its own, and no run has the next number."""
        if self.backend.size(_path(self.key, self.number + 1)) is not None:
            return False
        try:
            record = _parse_record(self.backend.read(_path(self.key, self.number)))
        except FileNotFoundError:
            return False  # The successor has committed and removed the work folder.
        return record is not None and record.owner == self.record.owner and not record.released

    def stop_beating(self) -> None:
        """End the background thread."""
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def release(self) -> None:
        """Let the next run have the key immediately; no-op if it has it already."""
        self.stop_beating()
        if self.is_mine():
            self.record = replace(self.record, released=True, spent=self.meter(True))
            self._write()

    def _write(self) -> None:
        self.backend.replace(_path(self.key, self.number), json.dumps(asdict(self.record)).encode())


def earlier_records(backend: Backend, lease: Lease) -> list[Record]:
    """The records of those that held the key before, oldest first, since its work folder was
    made."""
    mine = _path(lease.key, lease.number)
    paths = [p for p in _lease_files(backend, lease.key) if _LEASE.fullmatch(p) and p < mine]
    records = [_parse_record(raw) for _, raw in sorted(backend.read_many(paths).items())]
    return [record for record in records if record is not None]


def is_over(backend: Backend, key: str, holder: str) -> bool:
    """Whether a `Lease.holder` of `key` has certainly ended: it said so, or its process is gone."""
    number, _, owner = holder.partition("-")
    try:
        record = _parse_record(backend.read(_path(key, int(number))))
    except (FileNotFoundError, ValueError):
        return False
    if record is None or record.owner != owner:
        return False
    return (record.released and not record.silent) or process_is_gone(record)


def is_held(backend: Backend, key: str) -> bool:
    """Whether a run holds `key` and is not known to be dead."""
    return bool(held_keys(backend, _lease_files(backend, key)))


def heartbeat(backend: Backend, key: str) -> tuple[str, int] | None:
    """Owner and counter of the run that holds `key`; None if none does.

    A living owner raises the counter every `HEARTBEAT_SECONDS`.
    """
    files = [path for path in _lease_files(backend, key) if _LEASE.fullmatch(path)]
    if not files:
        return None
    newest = max(files)
    record = _parse_record(backend.read_many([newest]).get(newest, b""))
    return (record.owner, record.counter) if record and not record.released else None


def held_keys(backend: Backend, files: Iterable[str]) -> set[str]:
    """Keys that a run holds and is not known to be dead, by the leases among `files`."""
    newest: dict[str, str] = {}
    for path in sorted(files):
        match = _LEASE.fullmatch(path)
        if match is not None:
            newest[match[1]] = path
    keys = {path: key for key, path in newest.items()}
    contents = backend.read_many(keys)
    records = {keys[path]: _parse_record(raw) for path, raw in contents.items()}
    return {key for key, record in records.items() if _holds(record)}


def _holds(record: Record | None) -> bool:
    return record is not None and not record.released and not process_is_gone(record)


def _lease_files(backend: Backend, key: str) -> list[str]:
    folder = layout.work(key, "lease")
    return [f"{folder}/{name}" for name in backend.files(folder)]


def _path(key: str, number: int) -> str:
    return layout.work(key, "lease", f"{number:08d}.json")


def latest_record(backend: Backend, key: str) -> Record | None:
    """The last lease of a key, alive or not; None where there is none."""
    return _latest(backend, key)[1]


def _latest(backend: Backend, key: str) -> tuple[int, Record | None]:
    paths = [path for path in _lease_files(backend, key) if _LEASE.fullmatch(path)]
    if not paths:
        return 0, None
    number = int(Path(paths[-1]).stem)
    try:
        return number, _parse_record(backend.read(paths[-1]))
    except FileNotFoundError:
        return 0, None  # The holder committed and removed its work folder meanwhile.


def _parse_record(raw: bytes) -> Record | None:
    """None if it is not a lease: another run takes the next number."""
    try:
        return Record(**json.loads(raw))
    except (ValueError, TypeError):
        return None


@cache
def _machine() -> str:
    """This boot of this machine, and this process namespace: where a process id means something."""
    try:
        return f"{boot_id()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"unknown-{secrets.token_hex(8)}"


_HIDDEN = "hidden"


def _start_time(process: int) -> str | None:
    """Start time of a process in clock ticks since boot, which detects a reused process id.

    None if it has ended; `_HIDDEN` if it exists and cannot be looked at, as another user's where
    /proc is mounted with `hidepid`.
    """
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return _HIDDEN if _exists(process) else None
    return None if fields[0] in "ZX" else fields[19]


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return process > 0


def this_process() -> Record:
    """A fresh record of this process: machine, process id, and its start time."""
    process = os.getpid()
    return Record(secrets.token_hex(8), _machine(), process, _start_time(process) or "")


def end_process(record: Record, key: str) -> bool:
    """Kill the process of a lease on `key`, and wait until it is gone; True if it is.

    Only a process of this machine, of this user, that started when the record says and has the key
    among its arguments: a stage's own process, never a shell or notebook that happens to hold a
    lease, nor one that a forged record names. False if that is not certain, or if it cannot
    be killed.
    """
    if record.machine != _machine() or not hasattr(os, "pidfd_open"):
        return process_is_gone(record)
    try:
        process = os.pidfd_open(record.process)
    except OSError:
        return process_is_gone(record)
    try:
        # Looked at after the descriptor was opened: what is killed is what was looked at.
        if process_is_gone(record):
            return True
        if not _works_on(record.process, key):
            return False
        with suppress(OSError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [], KILL_SECONDS)
    finally:
        os.close(process)
    return process_is_gone(record)


def _works_on(process: int, key: str) -> bool:
    """Whether a process is this user's and was started for `key`."""
    try:
        arguments = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        owner = os.stat(f"/proc/{process}").st_uid
    except OSError:
        return False
    return owner == os.getuid() and process != os.getpid() and key.encode() in arguments


def process_is_gone(record: Record) -> bool:
    """Whether the process ran on this machine and has ended; False if that is unknown."""
    started = _start_time(record.process) if record.machine == _machine() else _HIDDEN
    return started not in (record.started, _HIDDEN)


log = logging.getLogger(__name__)


def local_work(backend: Backend, key: str, *parts: str) -> Path:
    """A run's work folder, or a path in it, on this machine. It may not exist yet.

    For a remote store it is in the cache folder, one for each store, seen by this machine only.
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
def hold_lease(backend: Backend, key: str, *, wait: bool = True) -> Iterator[Lease]:
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
