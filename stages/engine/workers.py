"""Worker processes that take one call at a time: the crash of one costs only its own call.

They live as long as the run, and every map of it is lent them: a start costs as much CPU time as a
small map. What a worker keeps from one map to the next (imports, caches) is what a stage without
workers keeps in its own process, so it changes no byte.

`concurrent.futures` gives up a whole pool when one of its processes dies. Here the others continue,
and the caller learns how the process ended and decides whether to try its call again. A process
that is silent for too long during a call is reported, and ended after a limit. A busy worker uses
CPU time; one that waits for an outside server, or for its rate limit, reports so; one that does
neither is silent: stopped, or stuck in the kernel. A thread of every worker checks for its parent
twice a second, which takes less than 0.01 % of a core: below `LEAST_SHARE` a process only waits.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Protocol

from stages.engine.fork_server import PATIENCE_SECONDS, ForkServer, unpack_answer
from stages.engine.tasks import Task, do_task
from stages.engine.transfers import Relay

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
    host: str | None = None
    """The machine of a cluster whose worker did the item in a process of its own, which died."""
    mark: str | None = None
    """What it had marked that it was at."""

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
    process: int
    calls: Connection
    answers: Connection
    silence: Silence | None
    """While it starts up or does a call."""
    item: str | None = None
    ready: bool = False
    """Whether it waits for a call; a process that starts up does not yet."""
    common: bytes | None = None
    """The common part that it was sent last."""

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process, number)


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

    def start_task(self, item: str, task: Task) -> None:
        """Let an idle worker do a task of the pool's map; `item` names it."""

    def wait(self, seconds: float) -> tuple[list[tuple[str, Any]], list[WorkerCrash]]:
        """Wait for something to happen: values by item, and deaths. Raises what was raised."""

    def release(self) -> None:
        """Have no more to do with any call; the map that the pool was made for has ended."""


def _ignore(process: int, item: str, seconds: float) -> None:
    """Of a silent worker: nobody is to know."""


@dataclass(eq=False)
class Workers:
    """Processes of this machine for all maps of a run, one map at a time; ended by `close`.

    They also end with the thread that started the server, and with its process. `modules` are
    imported before the first of them starts. One that does nothing for `silent_limit` seconds
    during a call is ended (None: never).
    """

    modules: Sequence[str] = ()
    silent_limit: float | None = None
    clock: Callable[[], float] = time.monotonic
    cpu: Callable[[int], float | None] = cpu_seconds
    tries: int = 1
    _server: ForkServer | None = field(default=None, init=False)
    _relay: Relay | None = field(default=None, init=False)
    """On it workers report fetches and waits."""
    _all: list[_Worker] = field(default_factory=list, init=False)
    _most: int = field(default=0, init=False)
    _common: bytes | None = field(default=None, init=False)
    """That of the map that borrows them."""
    _on_silent: Callable[[int, str, float], None] = field(default=_ignore, init=False)
    _looked: float = field(default=0.0, init=False)

    def start_server(self) -> None:
        """Start the process that forks workers: early, it is a fork of this one."""
        if self._server is None:
            self._server = ForkServer(self.modules)

    def lend(
        self,
        most: int,
        common: bytes | None = None,
        on_silent: Callable[[int, str, float], None] = _ignore,
    ) -> Workers:
        """The pool of one map, which uses `most` processes at most; those that lack are started.

        `common` is what its tasks share: see `tasks.pack`. `on_silent` is called with process, item
        and seconds when one has done nothing for `WARN_SECONDS`.
        """
        assert not self.busy
        self._most, self._on_silent, self._looked = most, on_silent, self.clock()
        self._common = common
        for worker in list(self._all):
            if worker.ready and worker.answers.poll(0):  # It ended while there was nothing to do.
                self._replace(worker)
        while len(self._all) < most:
            self._all.append(self._start())
        return self

    @property
    def busy(self) -> bool:
        """Whether a call is being worked on."""
        return any(worker.item is not None for worker in self._all)

    @property
    def idle(self) -> bool:
        """Whether a process waits for a call, and fewer than the map may use work."""
        working = sum(worker.item is not None for worker in self._all)
        return working < self._most and any(worker.ready for worker in self._all)

    def start_task(self, item: str, task: Task) -> None:
        """Let an idle process do a task of the map, whose common part it is sent once."""
        worker = next(worker for worker in self._all if worker.ready)
        new = None if worker.common is self._common else self._common
        worker.common = self._common
        self._start_call(worker, item, do_task, new, task)

    def start(self, item: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Let an idle process call `function`; `item` names the call, both must be picklable."""
        worker = next(worker for worker in self._all if worker.ready)
        self._start_call(worker, item, function, *arguments)

    def _start_call(
        self, worker: _Worker, item: str, function: Callable[..., Any], *arguments: Any
    ) -> None:
        call = ForkingPickler.dumps((function, arguments))
        worker.item, worker.ready = item, False
        worker.silence = Silence(worker.process, self.cpu)
        with suppress(OSError):  # It is dead, and `wait` will say so.
            worker.calls.send_bytes(call)

    def wait(self, seconds: float) -> tuple[list[tuple[str, Any]], list[WorkerCrash]]:
        """Wait for something to happen: values by item, and deaths. A dead process is replaced.

        One that died with nothing to do is replaced as well, and is no death that counts. Raises
        what a function raised, with the worker's traceback as a note.
        """
        by_connection = {worker.answers: worker for worker in self._all}
        values: list[tuple[str, Any]] = []
        deaths: list[WorkerCrash] = []
        for connection in wait(list(by_connection), seconds):
            worker = by_connection[connection]  # type: ignore[index]
            try:
                message = worker.answers.recv_bytes()
            except (EOFError, OSError):
                crash = self._replace(worker)
                deaths += [] if worker.ready else [crash]
                continue
            item, worker.item, worker.ready = worker.item, None, True
            worker.silence = None
            if item is not None:
                values.append((item, unpack_answer(message)))
        self._note_reports()
        return values, deaths + self._end_silent()

    def _note_reports(self) -> None:
        """Pass on what workers reported; each report is a sign of life."""
        assert self._relay is not None
        alive = self._relay.forward()
        for worker in self._all:
            if worker.process in alive and worker.silence is not None:
                worker.silence.reset()

    def _end_silent(self) -> list[WorkerCrash]:
        """Look at all that do a call: say which are silent, end those that are for too long."""
        passed = self.clock() - self._looked
        if passed < LOOK_SECONDS:
            return []
        self._looked += passed
        deaths = []
        for worker in list(self._all):
            if worker.silence is None:
                continue
            worker.silence.look(passed)
            if worker.silence.should_warn():
                self._on_silent(worker.process, worker.item or "(start)", worker.silence.seconds)
            if self.silent_limit is not None and worker.silence.seconds >= self.silent_limit:
                worker.signal(signal.SIGKILL)
                deaths.append(self._replace(worker, silent=worker.silence.seconds))
        return deaths

    def release(self) -> None:
        """The map has ended: so do processes that still work for it, whatever they do."""
        self._end([worker for worker in self._all if worker.item is not None])

    def close(self) -> None:
        """End all processes now, whatever they do."""
        self._end(list(self._all))
        if self._server is not None:
            self._server.end()
        if self._relay is not None:
            self._relay.close()
        self._server = self._relay = None

    def _end(self, workers: Sequence[_Worker]) -> None:
        for worker in workers:
            worker.signal(signal.SIGTERM)
        for worker in workers:
            self._reap(worker)
            self._all.remove(worker)

    def _replace(self, worker: _Worker, silent: float | None = None) -> WorkerCrash:
        code = self._reap(worker)
        self._all[self._all.index(worker)] = self._start()
        return WorkerCrash(worker.item, worker.process, code, silent=silent)

    def _reap(self, worker: _Worker) -> int:
        """Wait for the end of a process, which has begun; not for one that never comes."""
        assert self._server is not None
        worker.calls.close()
        worker.answers.close()
        code = None
        try:
            code = self._server.wait(worker.process, PATIENCE_SECONDS)
            if code is None:
                worker.signal(signal.SIGKILL)
                code = self._server.wait(worker.process, PATIENCE_SECONDS)
        except OSError:  # The server was killed, and its workers with it.
            self._server.end()
            self._server = None
        return -signal.SIGKILL if code is None else code  # None: stuck in the kernel.

    def _start(self) -> _Worker:
        self.start_server()  # First: a fork of this process would keep the pipes' ends open.
        assert self._server is not None
        self._relay = self._relay or Relay()
        # One-way pipes: three times as fast as sockets for long messages.
        their_calls, calls = Pipe(duplex=False)
        answers, their_answers = Pipe(duplex=False)
        process = self._server.fork(their_calls, their_answers, self._relay.sender)
        their_calls.close()
        their_answers.close()
        return _Worker(process, calls, answers, Silence(process, self.cpu))
