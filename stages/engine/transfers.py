"""Progress of a stage's fetches while their bytes arrive, and what stops them early.

A fetch may run in the stage's own process or in a worker. Both report to a watcher: the
stage's own process has a `Board`, which draws all fetches as one line of progress, and a worker a
`Relay`, which leads there. Only the stage's own process is asked to stop; workers are ended.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Protocol

from artifacts_schema.errors import Stopped
from artifacts_schema.store import cache

TICK = 0.2
"""Seconds after which a waiting fetch looks for a stop."""
TELL_SECONDS = 0.5
WAITS_SECONDS = 5.0
"""How often a worker reports that it waits."""
LABEL = 28
"""Characters of a file's name that are shown."""
_AHEAD = 8
"""Blocks that may wait to be written."""
_NAME = 255
"""Characters of a name that a worker reports."""


@dataclass(frozen=True)
class Transfer:
    """How much of a file has come, in bytes; `ended` once nothing more will."""

    name: str
    done: int
    total: int
    ended: bool = False


Tell = Callable[[Transfer], None]


class _Watch:
    """Who watches the fetches of this process."""

    tell: Tell | None = None
    stopping: Callable[[], bool] | None = None
    compiling: Callable[[int, int, float], None] | None = None
    """Called with a process, the kernels it has compiled so far, and the seconds that took."""
    waits: Callable[[], None] | None = None
    """In a worker: called regularly while it waits for an outside server, or for its rate limit."""


_watch = _Watch()


@contextmanager
def watch_fetches(tell: Tell, stopping: Callable[[], bool]) -> Iterator[None]:
    """Within the block, report fetches to `tell`, and end them with Stopped once `stopping`."""
    before = _watch.tell, _watch.stopping
    _watch.tell, _watch.stopping = tell, stopping
    try:
        yield
    finally:
        _watch.tell, _watch.stopping = before


@contextmanager
def log_compiling(log: logging.Logger) -> Iterator[None]:
    """Log when a process of this stage begins to compile kernels, and how long it took in all."""
    first: dict[int, tuple[float, int]] = {}
    compiled: dict[int, tuple[float, int]] = {}

    def note(process: int, kernels: int, seconds: float) -> None:
        if not compiled:
            log.info("compiling kernels for this machine; later runs load them")
        seconds_before, kernels_before = first.setdefault(process, (seconds, kernels))
        compiled[process] = seconds - seconds_before, kernels - kernels_before

    before, _watch.compiling = _watch.compiling, note
    try:
        yield
    finally:
        _watch.compiling = before
        if compiled:
            seconds, kernels = max(compiled.values())
            processes = f", in each of {len(compiled)} processes" if len(compiled) > 1 else ""
            log.info("compiled %d kernels in %.1f s%s", kernels, seconds, processes)


def report_compiling(kernels: int, seconds: float) -> None:
    """Report that this process compiles, and has compiled `kernels` so far, in `seconds`."""
    if _watch.compiling is not None:
        _watch.compiling(os.getpid(), kernels, seconds)


def check_stop() -> None:
    """Raise Stopped if the stage that fetches was asked to stop."""
    if _watch.waits is not None:
        _watch.waits()
    if _watch.stopping is not None and _watch.stopping():
        raise Stopped(
            "stopped while a source was fetched",
            hint="run the same command to continue: what has arrived is kept",
        )


def pause(seconds: float) -> None:
    """Sleep, but not past a stop."""
    end = time.monotonic() + seconds
    while True:
        check_stop()
        left = end - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(left, TICK))


@contextmanager
def report_fetch(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Report one fetch: call the yielded function with the bytes so far, as often as they come.

    A fetch that ends immediately is not reported.
    """
    tell, last, begun = _watch.tell, time.monotonic(), False

    def report(done: int) -> None:
        nonlocal last, begun
        now = time.monotonic()
        if tell is not None and now - last >= TELL_SECONDS:
            last, begun = now, True
            tell(Transfer(name, done, total))

    try:
        yield report
    finally:
        if tell is not None and begun:
            tell(Transfer(name, total, total, ended=True))


def stoppable(read: Callable[[], Iterator[bytes]]) -> Iterator[bytes]:
    """The blocks of `read()`, read by a thread, so that a stop is seen while the line is silent.

    Raises what `read` raises, or Stopped.
    """
    box: queue.Queue[bytes | BaseException | None] = queue.Queue(_AHEAD)
    left = threading.Event()

    def put(item: bytes | BaseException | None) -> bool:
        while not left.is_set():
            try:
                box.put(item, timeout=TICK)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for block in read():
                if not put(block):
                    return
            put(None)
        except BaseException as error:
            put(error)

    threading.Thread(target=work, daemon=True, name="fetch").start()
    try:
        while True:
            check_stop()
            try:
                item = box.get(timeout=TICK)
            except queue.Empty:
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        left.set()


class Progress(Protocol):
    """Where a stage's progress is reported; see `events.EventWriter`."""

    def waiting(self, done: float, total: float, unit: str, label: str) -> None:
        """How far something is that the work waits for."""

    def waited(self) -> None:
        """The work continues."""


class Board:
    """The fetches of all processes of a stage, as one line of its progress."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._going: dict[str, Transfer] = {}

    def note(self, transfer: Transfer) -> None:
        """Show the progress of one fetch, with all others in progress."""
        if transfer.ended:
            if self._going.pop(transfer.name, None) is not None and not self._going:
                self._progress.waited()
            return
        self._going[transfer.name] = transfer
        going = self._going.values()
        only = f"fetching {_shortened(transfer.name)}"
        self._progress.waiting(
            sum(each.done for each in going),
            sum(each.total for each in going),
            "bytes",
            only if len(going) == 1 else f"fetching {len(going)} files",
        )


class Relay:
    """Passes reports of worker processes to the watcher of the process that started them.

    One pipe for all of them, without a lock that a killed worker could keep: a line so short comes
    whole or not at all (`PIPE_BUF` of POSIX), and is dropped if nobody reads.
    """

    def __init__(self) -> None:
        self._reader, self.sender = get_context("spawn").Pipe(duplex=False)
        """For the workers, which hand it to `tell_to`."""

    def forward(self) -> set[int]:
        """Pass on what workers reported since the last call; returns their process ids."""
        heard = set()
        while self._reader.poll(0):
            process, *transfer = json.loads(self._reader.recv_bytes())
            heard.add(process)
            if transfer and not isinstance(transfer[0], str):
                if _watch.compiling is not None:
                    _watch.compiling(process, *transfer)
            elif transfer and _watch.tell is not None:
                _watch.tell(Transfer(*transfer))
        return heard

    def close(self) -> None:
        """Close the pipe."""
        self._reader.close()
        self.sender.close()


def report_to(sender: Connection) -> None:
    """Have this worker report fetches and waits to the process that started it."""
    os.set_blocking(sender.fileno(), False)
    process, last = os.getpid(), time.monotonic()

    def send(*values: Any) -> None:
        with suppress(OSError):  # A full pipe, or nobody there any more.
            sender.send_bytes(json.dumps([process, *values]).encode())

    def tell(transfer: Transfer) -> None:
        send(transfer.name.rpartition("/")[2][-_NAME:], *astuple(transfer)[1:])

    def waits() -> None:
        nonlocal last
        if time.monotonic() - last >= WAITS_SECONDS:
            last = time.monotonic()
            send()

    _watch.tell, _watch.waits = tell, waits
    _watch.compiling = lambda process, kernels, seconds: send(kernels, seconds)
    cache.on_wait = waits


def _shortened(name: str) -> str:
    base = name.rpartition("/")[2]
    return base if len(base) <= LABEL else "…" + base[1 - LABEL :]
