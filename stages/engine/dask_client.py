"""How a Dask scheduler is reached, without what Dask logs about it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from artifacts_schema.errors import IngotError, UsageError
from stages.engine.dask_cluster import Scheduler

CONNECT_SECONDS = 10.0
"""How long a scheduler may take to be reached."""
START = "dask worker {} --nthreads 1 --nworkers N"


def connect(scheduler: Scheduler, seconds: float | None = None) -> Any:
    """A client of Dask's at a scheduler, which may take so long, by default CONNECT_SECONDS.

    IngotError where none answers, UsageError if the extra `dask` is not installed.
    """
    address, limit = scheduler.address, seconds or CONNECT_SECONDS
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            "engine dask needs a library that is not installed",
            where=address,
            hint="pip install 'ingot[dask]'",
        ) from None
    try:
        security = scheduler.security()
        kind = _run_in_thread(_server_kind(address, security, limit))
        if kind == "Scheduler":
            return Client(
                address,
                security=security,
                timeout=limit,
                set_as_default=False,
                name="ingot",
            )
        problem = f"a {kind} of Dask answers there, not a scheduler"
    except Exception as error:
        problem = str(error) or f"no answer within {limit:.0f} s"
    raise IngotError(
        f"no Dask scheduler can be reached: {problem}",
        where=address,
        hint=f"`dask scheduler` starts one and prints its address; then `{START.format(address)}`",
    )


async def _server_kind(address: str, security: Any, limit: float) -> str:
    """What answers at an address, in Dask's words. A Client that finds no Dask there hangs."""
    from distributed.core import rpc

    server = rpc(address, connection_args=security.get_connection_args("client"))
    try:
        identity = await asyncio.wait_for(server.identity(), limit)
        return str(identity.get("type"))
    finally:
        await server.close_rpc()


def _run_in_thread(work: Any) -> Any:
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
def silence_dask() -> Iterator[None]:
    """Dask logs at length what the errors here say; a stage's last line is its error."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado.application")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
