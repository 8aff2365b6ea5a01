"""A running Dask cluster, as far as Ingot uses one: calls to named workers, and who is there.

A task is `pickle.loads` of bytes whose unpickling makes the call. A worker that cannot unpickle a
task loses its connection and dies, and a scheduler refuses it; so told, a worker without Ingot
gives an error like any other, and the scheduler needs no Ingot.

What is pickled travels between the processes of the cluster, as everything does there: who can
reach its scheduler can run code on its workers. It is its owner's to protect (loopback, a closed
network, `tls://`). Ingot starts no cluster, opens no port, and writes no pickle to a store.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from artifacts_schema.errors import IngotError, UsageError

CONNECT_SECONDS = 10.0
"""How long a scheduler may take to be reached."""
SILENT_SECONDS = 60.0
"""How long one that was reached may take to answer."""
FETCH_SECONDS = 10.0
"""How long an answer may take from its worker to here, once it is ready."""
LEAVE_SECONDS = 2.0
_AT_WORK = ("executing", "long-running", "cancelled", "resumed")
_log = logging.getLogger(__name__)
START = "dask worker {} --nthreads 1 --nworkers N"


@dataclass(frozen=True)
class Seen:
    """A worker as the scheduler sees it."""

    address: str
    name: str
    threads: int
    running: bool
    """Whether it starts what it is given; Dask pauses one that is short of memory."""
    executing: bool
    """Whether it was at some work, its own or nobody's any more, at its last heartbeat."""


@dataclass(frozen=True)
class Outcome:
    """How a call ended: with a value, with an error of Dask or of Python, or it was lost."""

    number: int
    value: Any = None
    error: BaseException | None = None
    lost: bool = False


class Cluster:
    """A connection to the scheduler at `address`, tcp:// or tls://.

    Every method raises IngotError once the scheduler is gone. UsageError where the extra `dask` is
    not installed.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._client: Any = None
        self._quiet = _quiet()
        self._quiet.__enter__()
        try:
            self._client = _client(address)
        except BaseException:
            self.close()
            raise
        self._name = f"ingot-{secrets.token_hex(8)}"
        self._tasks: dict[int, Any] = {}
        self._sent = 0
        self._ended: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self._reading: Future[Any] | None = None
        self._read_at = 0.0

    def call(self, worker: str, function: Callable[..., Any], *arguments: Any) -> int:
        """Have one worker call `function`; a number for its outcome."""
        self._check()
        self._sent += 1
        number = self._sent
        self._tasks[number] = task = self._client.submit(
            pickle.loads,
            pickle.dumps(_Calling(function, *arguments)),
            key=f"{self._name}-{number}",
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        task.add_done_callback(lambda ended: self._ended.put(_outcome(number, ended)))
        return number

    def drop(self, number: int) -> None:
        """Have no more to do with a call; a worker that is at it goes on, for nothing."""
        if (task := self._tasks.pop(number, None)) is not None:
            task.release()

    def outcomes(self, seconds: float) -> list[Outcome]:
        """What ended since the last call; waits up to `seconds` for something to happen."""
        found: list[Outcome] = []
        with suppress(queue.Empty):
            first = self._ended.get(timeout=seconds) if seconds else self._ended.get_nowait()
            found += [first] if first else []
            while True:
                found += [more] if (more := self._ended.get_nowait()) else []
        self._check()
        wanted = [outcome for outcome in found if outcome.number in self._tasks]
        for outcome in wanted:
            self.drop(outcome.number)
        return wanted

    def workers(self, every: float) -> dict[str, Seen] | None:
        """All workers by address, asked for `every` so many seconds; None between answers."""
        self._check()
        now = time.monotonic()
        if self._reading is None:
            if now - self._read_at >= every:
                asked = self._client.scheduler.identity(n_workers=-1)
                loop = self._client.loop.asyncio_loop
                self._reading, self._read_at = asyncio.run_coroutine_threadsafe(asked, loop), now
                self._reading.add_done_callback(lambda _: self._ended.put(None))
            return None
        if not self._reading.done():
            if now - self._read_at > SILENT_SECONDS:
                raise self._gone(f"it has not answered for {SILENT_SECONDS:.0f} s")
            return None
        reading, self._reading, self._read_at = self._reading, None, now
        try:
            listed = reading.result()["workers"]
        except Exception as error:
            raise self._gone(str(error)) from error
        return {address: _seen(address, said) for address, said in listed.items()}

    def close(self) -> None:
        """Leave it. Calls that workers are at go on there, for nothing."""
        if self._client is not None:
            with suppress(Exception):
                self._client.close(timeout=LEAVE_SECONDS)  # Dask drops the calls of who leaves.
        self._quiet.__exit__(None, None, None)

    def _check(self) -> None:
        if self._client.status != "running":
            raise self._gone("the connection was lost")

    def _gone(self, why: str) -> IngotError:
        return IngotError(
            f"the Dask scheduler is gone: {why}",
            where=self.address,
            hint="finished shards are kept: start it again, with its workers, and run the same "
            "command to continue; or run it with engine processes",
        )


class _Calling:
    """Unpickling it calls the function, and gives what that returns."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._parts = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._parts


def _outcome(number: int, task: Any) -> Outcome:
    """Of a task that has ended; fetched in a thread of Dask's, so that nothing here waits."""
    try:
        if task.status == "finished":
            return Outcome(number, value=task.result(timeout=FETCH_SECONDS))
        if task.status == "error":
            error = task.exception(timeout=FETCH_SECONDS)
            if type(error).__name__ != "KilledWorker":
                return Outcome(number, error=error)
    except Exception as gone:  # Its worker went before it was fetched, or the scheduler.
        _log.debug("task %d: %s", number, gone)
    return Outcome(number, lost=True)


def _seen(address: str, said: dict[str, Any]) -> Seen:
    counts = (said.get("metrics") or {}).get("task_counts") or {}
    return Seen(
        address=address,
        name=str(said["name"]),
        threads=int(said["nthreads"]),
        running=said["status"] == "running",
        executing=any(counts.get(state) for state in _AT_WORK),
    )


def _client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            "engine dask needs a library that is not installed",
            where=address,
            hint="pip install 'ingot[dask]'",
        ) from None
    try:
        kind = _in_a_thread(_kind_of(address))
        if kind == "Scheduler":
            return Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="ingot")
        said = f"a {kind} of Dask answers there, not a scheduler"
    except Exception as error:
        said = str(error) or f"no answer within {CONNECT_SECONDS:.0f} s"
    raise IngotError(
        f"no Dask scheduler can be reached: {said}",
        where=address,
        hint=f"`dask scheduler` starts one and prints its address; then `{START.format(address)}`",
    )


async def _kind_of(address: str) -> str:
    """What answers at an address, in Dask's words. A Client that finds no Dask there hangs."""
    from distributed.core import rpc
    from distributed.security import Security

    there = rpc(address, connection_args=Security().get_connection_args("client"))
    try:
        said = await asyncio.wait_for(there.identity(), CONNECT_SECONDS)
        return str(said.get("type"))
    finally:
        await there.close_rpc()


def _in_a_thread(work: Any) -> Any:
    """Run a coroutine to its end, whether or not this thread has an event loop of its own."""
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(asyncio.run(work))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True, name="dask-connect").start()
    return result.result()


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask logs at length what errors say here; a stage's last line is its error."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado.application")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
