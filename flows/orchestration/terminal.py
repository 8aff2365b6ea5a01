"""What the terminal of a run shows of Prefect: one line when the server goes away, one when it is
back. Prefect's own messages, whole events among them, go to `~/.ingot/client.log`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler

from flows.orchestration.background import log_of
from flows.orchestration.server import Server, Tell, answers

NAME = "client"
LOG_BYTES = 5_000_000
LOOK_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""A server on a busy machine is slow; that is not away."""
_LOGGERS = ("prefect", "prefect._internal")
"""The second has a handler of its own for the terminal."""


def keep_out_of_terminal() -> None:
    """Send warnings and errors of Prefect's client to a file, for the rest of this process.

    Its threads still speak when the run is over, so there is no way back.
    """
    handler = RotatingFileHandler(log_of(NAME), maxBytes=LOG_BYTES, backupCount=1, delay=True)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for old in list(logger.handlers):
            logger.removeHandler(old)
            old.close()
        logger.addHandler(handler)
        logger.propagate = False
    # Prefect writes of logs that it cannot send to stderr by itself, unless this says not to.
    logging.raiseExceptions = False


@contextmanager
def watch_server(
    server: Server,
    tell: Tell,
    *,
    answers: Callable[[Server, float], bool] = answers,
    every: float = LOOK_SECONDS,
) -> Iterator[None]:
    """While this lasts, say in one line that the server is away, and in one that it is back."""
    over = threading.Event()

    def look() -> None:
        misses = 0
        while not over.wait(every):
            if answers(server, ANSWER_SECONDS):
                if misses > 1:
                    tell(f"the Prefect server at {server.ui} answers again")
                misses = 0
                continue
            misses += 1
            if misses == 2 and not over.is_set():
                tell(
                    f"the Prefect server at {server.ui} does not answer: the run goes on and is "
                    f"not shown there (Prefect's messages: {log_of(NAME)})"
                )

    looking = threading.Thread(target=look, name="prefect-watch", daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
