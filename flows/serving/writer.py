"""The one thread that writes with the model, and the answers that wait for it.

Answers are written one after another, in the order of their requests; a bounded number waits. A
text that might be the beginning of a stop text is held back until it is known not to be.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from stages.scoring.generation import Sampling


class TokenWriter(Protocol):
    """The model: see `LanguageModel.write_tokens`."""

    def write_tokens(
        self, ids: Sequence[int], sampling: Sampling, max_new_tokens: int
    ) -> Iterator[str]:
        """A piece of text for each token."""


@dataclass(frozen=True)
class End:
    """Of an answer: why it ended, and how many tokens were written."""

    reason: Literal["stop", "length"]
    tokens: int


@dataclass
class Job:
    """An answer to be written. `send` is called in the writing thread with each piece, then with an
    `End` or an error; after `cancelled` is set, with nothing more."""

    ids: Sequence[int]
    sampling: Sampling
    most: int
    stops: Sequence[str]
    send: Callable[[str | End | Exception], None]
    cancelled: threading.Event = field(default_factory=threading.Event)


class Full(Exception):
    """So many answers wait already that one more is refused."""


class Writer:
    """Writes the answers of `submit`; `waiting` is how many may wait while one is written."""

    def __init__(self, model: TokenWriter, *, waiting: int) -> None:
        self._model, self._most = model, waiting
        self._jobs: deque[Job] = deque()
        self._busy = False
        self._change = threading.Condition()
        # A daemon: the process may end in the middle of an answer.
        threading.Thread(target=self._work, name="writer", daemon=True).start()

    def submit(self, job: Job) -> None:
        """Put an answer behind those that wait; Full if there are too many."""
        with self._change:
            self._check_room()
            self._jobs.append(job)
            self._change.notify()

    def check_room(self) -> None:
        """Full if one more answer would be refused now."""
        with self._change:
            self._check_room()

    def _check_room(self) -> None:
        self._jobs = deque(one for one in self._jobs if not one.cancelled.is_set())
        if len(self._jobs) >= self._most + (not self._busy):
            raise Full

    def _work(self) -> None:
        while True:
            with self._change:
                self._busy = False
                while not self._jobs:
                    self._change.wait()
                job = self._jobs.popleft()
                self._busy = True
            if job.cancelled.is_set():
                continue
            try:
                self._write(job)
            except Exception as error:  # Whatever it is, the next answer is to be written.
                job.send(error)

    def _write(self, job: Job) -> None:
        held, tokens = "", 0
        longest = max(map(len, job.stops), default=1)
        for piece in self._model.write_tokens(job.ids, job.sampling, job.most):
            if job.cancelled.is_set():
                return
            tokens += 1
            held += piece
            places = [place for stop in job.stops if (place := held.find(stop)) >= 0]
            if places:
                job.send(held[: min(places)])
                job.send(End("stop", tokens))
                return
            ready = len(held) - (longest - 1)
            if ready > 0:
                job.send(held[:ready])
                held = held[ready:]
        if held:
            job.send(held)
        job.send(End("length" if tokens == job.most else "stop", tokens))
