"""Worker processes that take one call at a time: the crash of one costs only its own call.

`concurrent.futures` gives up a whole pool when one of its processes dies. Here the others continue,
and the caller learns how the process ended and decides whether to try its call again. A process
that is silent for too long during a call is reported, and ended after a limit. A busy worker uses
CPU time; one that waits for an outside server, or for its rate limit, reports so; one that does
neither is silent: stopped, or stuck in the kernel. A thread of every worker checks for its parent
twice a second, which takes less than 0.01 % of a core: below `LEAST_SHARE` a process only waits.
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
from pathlib import Path
from typing import Any, Protocol

from stages.engine.transfers import report_to

WARN_SECONDS = 60.0
LOOK_SECONDS = 1.0
"""How often a worker is looked at."""
LEAST_SECONDS, LEAST_SHARE = 0.02, 0.0005
"""CPU time, in seconds and as a share of the time since, that shows work. The kernel counts in
hundredths of a second."""


def cpu_seconds(process: int) -> float | None:
    """CPU time of all threads of a process; None where that is not known."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Silence:
    """Of one worker, while it does one call; begins when the call does.

    A look that comes far too late counts as a short one: this process itself was paused.
    """

    process: int
    cpu: Callable[[int], float | None] = cpu_seconds
    seconds: float = 0.0
    """How long it has been silent."""
    warned: bool = False

    def __post_init__(self) -> None:
        self._used = self.cpu(self.process)

    def reset(self) -> None:
        """The worker gave a sign of life."""
        self.seconds, self.warned, self._used = 0.0, False, self.cpu(self.process)

    def look(self, passed: float) -> None:
        """So many seconds have passed since the last look."""
        self.seconds += min(passed, 2 * LOOK_SECONDS)
        used = self.cpu(self.process)
        if used is None or self._used is None:
            self.reset()  # Unknown: not silent.
        elif used - self._used >= max(LEAST_SECONDS, LEAST_SHARE * self.seconds):
            self.reset()

    def should_warn(self) -> bool:
        """Whether it has been silent for so long that people should know; True once."""
        due = self.seconds >= WARN_SECONDS and not self.warned
        self.warned |= due
        return due


_SPAWN = get_context("spawn")
_PATIENCE_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True)
class WorkerCrash:
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
    """How many workers may be lost with one item before the map fails."""

    @property
    def busy(self) -> bool:
        """Whether a call is being worked on."""

    @property
    def idle(self) -> bool:
        """Whether a worker waits for a call."""

    def start(self, item: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Let an idle worker call `function`; `item` names the call, both must be picklable."""

    def wait(self, seconds: float) -> tuple[list[tuple[str, Any]], list[WorkerCrash]]:
        """Wait for something to happen: values by item, and deaths. Raises what was raised."""

    def mark_alive(self, processes: Iterable[int]) -> None:
        """These processes of this machine gave a sign of life."""

    def end(self) -> None:
        """Have no more to do with any call."""


class Workers:
    """`number` fresh interpreters, ended by `end` or by the end of the thread that made them.

    `fetches` is the pipe on which they report fetches; see `transfers.Relay`. `on_silent` is called
    with process, item and seconds when one has done nothing for `WARN_SECONDS`, and after
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
        self._all = [self._spawn() for _ in range(number)]

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

    def wait(self, seconds: float) -> tuple[list[tuple[str, Any]], list[WorkerCrash]]:
        """Wait for something to happen: values by item, and deaths. A dead process is replaced.

        Raises what a function raised, with the worker's traceback as a note.
        """
        by_connection = {worker.answers: worker for worker in self._all}
        values: list[tuple[str, Any]] = []
        deaths: list[WorkerCrash] = []
        for connection in wait(list(by_connection), seconds):
            worker = by_connection[connection]  # type: ignore[index]
            try:
                message = worker.answers.recv_bytes()
            except (EOFError, OSError):
                deaths.append(self._replace(worker))
                continue
            item, worker.item, worker.ready = worker.item, None, True
            worker.silence = None
            if item is not None:
                values.append((item, unpack_answer(message)))
        return values, deaths + self._end_silent()

    def mark_alive(self, processes: Iterable[int]) -> None:
        """These processes gave a sign of life."""
        alive = set(processes)
        for worker in self._all:
            if worker.process.pid in alive and worker.silence is not None:
                worker.silence.reset()

    def _end_silent(self) -> list[WorkerCrash]:
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
            if worker.silence.should_warn():
                at = worker.item or "(start)"
                self._on_silent(worker.silence.process, at, worker.silence.seconds)
            if self._limit is not None and worker.silence.seconds >= self._limit:
                worker.process.kill()
                deaths.append(self._replace(worker, silent=worker.silence.seconds))
        return deaths

    def end(self) -> None:
        """End all processes now, whatever they do."""
        for worker in self._all:
            worker.process.terminate()
        for worker in self._all:
            worker.end()
        self._all.clear()

    def _replace(self, worker: _Worker, silent: float | None = None) -> WorkerCrash:
        worker.end()
        process, code = worker.process.pid, worker.process.exitcode
        assert process is not None
        if code is None:  # It cannot be ended: stuck in the kernel.
            code = -signal.SIGKILL
        self._all[self._all.index(worker)] = self._spawn()
        return WorkerCrash(worker.item, process, code, silent=silent)

    def _spawn(self) -> _Worker:
        # One-way pipes: three times as fast as sockets for long messages.
        their_calls, calls = _SPAWN.Pipe(duplex=False)
        answers, their_answers = _SPAWN.Pipe(duplex=False)
        arguments = (their_calls, their_answers, os.getpid(), self._fetches)
        process = _SPAWN.Process(target=_work, args=arguments)
        process.start()
        their_calls.close()
        their_answers.close()
        assert process.pid is not None
        return _Worker(process, calls, answers, silence=Silence(process.pid, self._cpu))


def unpack_answer(message: bytes) -> Any:
    """The value that `answered` packed; raises what it packed as raised."""
    value, error = pickle.loads(message)
    if error is not None:
        raise error
    return value


def _work(calls: Connection, answers: Connection, parent: int, fetches: Connection | None) -> None:
    """The life of a worker: say that it is there, then answer calls until the pipe ends."""
    _die_with_parent(parent)
    if fetches is not None:
        report_to(fetches)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the stage decides.
    answers.send_bytes(b"")
    while True:
        try:
            call = calls.recv_bytes()
        except (EOFError, OSError):
            return
        answers.send_bytes(execute_call(call))


def execute_call(call: bytes) -> Any:
    """In a worker: make a pickled call; its value, or what it raised, as bytes for `answer`."""
    try:
        function, arguments = pickle.loads(call)
        return ForkingPickler.dumps((function(*arguments), None))
    except BaseException as error:
        note = "in a worker process:\n" + traceback.format_exc()
        try:
            error.add_note(note)
            failed = pickle.dumps((None, error))
            pickle.loads(failed)
        except Exception:  # An exception that cannot be pickled is sent as text.
            plain = RuntimeError(f"{type(error).__name__}: {error}")
            plain.add_note(note)
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
