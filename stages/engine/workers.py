"""Worker processes that take one call at a time: the death of one costs only its own call.

`concurrent.futures` gives up a whole pool when one of its processes dies. Here the others go on,
and how a process ended is told, so that the caller can decide whether to try its call again. A
process that does nothing for too long while it has a call is named, and ended after a limit.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing import process as processes
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

from stages.engine.silence import LOOK_SECONDS, Silence, cpu_seconds
from stages.engine.transfers import tell_to

_SPAWN = get_context("spawn")
_PATIENCE_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True)
class Death:
    """A process that ended while it was needed: the item it worked on (None: none), and how.

    `exit_code` is the negative number of the signal that ended it, or what it exited with. Of a
    `worker` on another machine, named here, neither it nor the process is known (0).
    """

    item: str | None
    process: int
    exit_code: int
    worker: str | None = None
    silent: float | None = None
    """Seconds after which it was ended because it did nothing; None: it was not."""

    @property
    def how(self) -> str:
        """The signal's name, or the exit code; what it was ended for."""
        if self.silent is not None:
            return f"did nothing for {self.silent:.0f} s"
        if self.exit_code >= 0:
            return f"exit code {self.exit_code}"
        try:
            return signal.Signals(-self.exit_code).name
        except ValueError:
            return f"signal {-self.exit_code}"


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    calls: Connection
    answers: Connection
    item: str | None = None
    ready: bool = False
    """Whether it waits for a call; a process that starts up does not yet."""
    silence: Silence | None = None
    """While it starts up or does a call."""

    def end(self) -> None:
        """Wait for its end, which has begun; not for one that never comes."""
        self.process.join(_PATIENCE_SECONDS)
        self.process.kill()
        self.process.join(_PATIENCE_SECONDS)
        if self.process.is_alive():
            # Stuck in the kernel, which ends it when it comes back. The interpreter must not wait
            # for it at its own end.
            processes._children.discard(self.process)  # type: ignore[attr-defined]
        self.calls.close()
        self.answers.close()


class Pool(Protocol):
    """What the shard map needs of workers."""

    tries: int
    """How many workers may be lost with one item before the map gives up."""

    @property
    def busy(self) -> bool:
        """Whether a call is being worked on."""

    @property
    def idle(self) -> bool:
        """Whether a worker waits for a call."""

    def start(self, item: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Let an idle worker call `function`; `item` names the call, both must be picklable."""

    def wait(self, seconds: float) -> tuple[list[tuple[str, Any]], list[Death]]:
        """Wait for something to happen: values by item, and deaths. Raises what was raised."""

    def mark_alive(self, processes: Iterable[int]) -> None:
        """These processes of this machine gave a sign of life."""

    def end(self) -> None:
        """Have no more to do with any call."""


class Workers:
    """`number` fresh interpreters, ended by `end` or by the end of the thread that made them.

    `fetches` is where they tell what they fetch; see `transfers.Relay`. `on_silent` is called with
    process, item and seconds when one has done nothing for `silence.WARN_SECONDS`, and after
    `silent_limit` seconds it is ended (None: never).
    """

    tries = 1

    def __init__(
        self,
        number: int,
        fetches: Connection | None = None,
        *,
        on_silent: Callable[[int, str, float], None] = lambda process, item, seconds: None,
        silent_limit: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[int], float | None] = cpu_seconds,
    ) -> None:
        self._fetches, self._on_silent, self._limit = fetches, on_silent, silent_limit
        self._clock, self._cpu, self._looked = clock, cpu, clock()
        self._all = [self._spawned() for _ in range(number)]

    @property
    def busy(self) -> bool:
        """Whether a call is being worked on."""
        return any(worker.item is not None for worker in self._all)

    @property
    def idle(self) -> bool:
        """Whether a process waits for a call."""
        return any(worker.ready for worker in self._all)

    def start(self, item: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Let an idle process call `function`; `item` names the call, both must be picklable."""
        worker = next(worker for worker in self._all if worker.ready)
        call = ForkingPickler.dumps((function, arguments))
        assert worker.process.pid is not None
        worker.item, worker.ready = item, False
        worker.silence = Silence(worker.process.pid, self._cpu)
        try:
            worker.calls.send_bytes(call)
        except OSError:
            return  # It is dead, and `wait` will say so.

    def wait(self, seconds: float) -> tuple[list[tuple[str, Any]], list[Death]]:
        """Wait for something to happen: values by item, and deaths. A dead process is replaced.

        Raises what a function raised, with the worker's traceback as a note.
        """
        by_connection = {worker.answers: worker for worker in self._all}
        values: list[tuple[str, Any]] = []
        deaths: list[Death] = []
        for connection in wait(list(by_connection), seconds):
            worker = by_connection[connection]  # type: ignore[index]
            try:
                message = worker.answers.recv_bytes()
            except (EOFError, OSError):
                deaths.append(self._replaced(worker))
                continue
            item, worker.item, worker.ready = worker.item, None, True
            worker.silence = None
            if item is not None:
                values.append((item, answer(message)))
        return values, deaths + self._ended_for_silence()

    def mark_alive(self, processes: Iterable[int]) -> None:
        """These processes gave a sign of life."""
        alive = set(processes)
        for worker in self._all:
            if worker.process.pid in alive and worker.silence is not None:
                worker.silence.reset()

    def _ended_for_silence(self) -> list[Death]:
        """Look at all that do a call: say which are silent, end those that are for too long."""
        passed = self._clock() - self._looked
        if passed < LOOK_SECONDS:
            return []
        self._looked += passed
        deaths = []
        for worker in list(self._all):
            if worker.silence is None:
                continue
            worker.silence.look(passed)
            if worker.silence.is_to_warn():
                at = worker.item or "(start)"
                self._on_silent(worker.silence.process, at, worker.silence.seconds)
            if self._limit is not None and worker.silence.seconds >= self._limit:
                worker.process.kill()
                deaths.append(self._replaced(worker, silent=worker.silence.seconds))
        return deaths

    def end(self) -> None:
        """End all processes now, whatever they do."""
        for worker in self._all:
            worker.process.terminate()
        for worker in self._all:
            worker.end()
        self._all.clear()

    def _replaced(self, worker: _Worker, silent: float | None = None) -> Death:
        worker.end()
        process, code = worker.process.pid, worker.process.exitcode
        assert process is not None
        if code is None:  # It cannot be ended: stuck in the kernel.
            code = -signal.SIGKILL
        self._all[self._all.index(worker)] = self._spawned()
        return Death(worker.item, process, code, silent=silent)

    def _spawned(self) -> _Worker:
        their_calls, calls = _SPAWN.Pipe(duplex=False)  # Thrice as fast as sockets, for big ones.
        answers, their_answers = _SPAWN.Pipe(duplex=False)
        given = (their_calls, their_answers, os.getpid(), self._fetches)
        process = _SPAWN.Process(target=_work, args=given)
        process.start()
        their_calls.close()
        their_answers.close()
        assert process.pid is not None
        return _Worker(process, calls, answers, silence=Silence(process.pid, self._cpu))


def answer(message: bytes) -> Any:
    """The value that `answered` packed; raises what it packed as raised."""
    value, error = pickle.loads(message)
    if error is not None:
        raise error
    return value


def _work(calls: Connection, answers: Connection, parent: int, fetches: Connection | None) -> None:
    """The life of a worker: say that it is there, then answer calls until the pipe ends."""
    _die_with_parent(parent)
    if fetches is not None:
        tell_to(fetches)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the stage decides.
    answers.send_bytes(b"")
    while True:
        try:
            call = calls.recv_bytes()
        except (EOFError, OSError):
            return
        answers.send_bytes(answered(call))


def answered(call: bytes) -> Any:
    """In a worker: make a pickled call; its value, or what it raised, as bytes for `answer`."""
    try:
        function, arguments = pickle.loads(call)
        return ForkingPickler.dumps((function(*arguments), None))
    except BaseException as error:
        told = "in a worker process:\n" + traceback.format_exc()
        try:
            error.add_note(told)
            failed = pickle.dumps((None, error))
            pickle.loads(failed)
        except Exception:  # An exception that cannot be carried over is told in words.
            plain = RuntimeError(f"{type(error).__name__}: {error}")
            plain.add_note(told)
            failed = pickle.dumps((None, plain))
        return failed


def _die_with_parent(parent: int) -> None:
    """A worker whose parent was killed ends within a second, even in native code on Linux."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if sys.platform == "linux":
        import ctypes

        # The thread cannot run while native code holds the interpreter's lock; the kernel can.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=watch, daemon=True, name="parent-watch").start()
