"""The one thread that writes with a model, and the answers that wait for a place in its batch.

Answers are written together, at most as many as the batch has places; a bounded number waits, and
the first of them takes the place of an answer that ends or is cancelled. A text that might be the
beginning of a stop text is held back until it is known not to be.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from stages.scoring.continuous import ContinuousBatch, OpenText
    from stages.scoring.generation import Sampling


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


@dataclass(eq=False)
class _Answer:
    """A job with its text in the batch, and how many characters of that were sent."""

    job: Job
    text: OpenText
    sent: int = 0

    def send_new(self) -> None:
        """Send what is new of the text, and its end."""
        text, ending = self.text.text, self.text.ending
        if self.text.failure is not None:
            self.job.send(self.text.failure)
            return
        longest = max(map(len, self.job.stops), default=1)
        ready = len(text) if ending else len(text) - (longest - 1)
        if ready > self.sent:
            self.job.send(text[self.sent : ready])
            self.sent = ready
        if ending:
            self.job.send(End("length" if ending == "length" else "stop", self.text.tokens))


class Writer:
    """Writes the answers of `submit` in a batch of `make_batch`; at most `waiting` more wait.

    An unexpected error ends all answers of the batch; those that wait get a new one.
    """

    def __init__(self, make_batch: Callable[[], ContinuousBatch], *, waiting: int) -> None:
        self._make_batch, self._most = make_batch, waiting
        self._batch = make_batch()
        self._jobs: deque[Job] = deque()
        self._answers: list[_Answer] = []
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
        if len(self._jobs) >= self._most + self._batch.places - len(self._answers):
            raise Full

    def _work(self) -> None:
        while True:
            with self._change:
                while not self._jobs and not self._answers:
                    self._change.wait()
                self._drop_cancelled()
                self._fill_places()
            try:
                self._batch.step()
                for answer in self._answers:
                    answer.send_new()
            except Exception as error:  # Whatever it is, the next answers are to be written.
                with self._change:
                    failed, self._answers = self._answers, []
                    self._batch = self._make_batch()
                for answer in failed:
                    answer.job.send(error)
            with self._change:
                self._answers = [one for one in self._answers if one.text.is_open]

    def _drop_cancelled(self) -> None:
        for answer in self._answers:
            if answer.job.cancelled.is_set():
                self._batch.remove(answer.text)
        self._answers = [one for one in self._answers if not one.job.cancelled.is_set()]

    def _fill_places(self) -> None:
        while self._jobs and len(self._answers) < self._batch.places:
            job = self._jobs.popleft()
            if job.cancelled.is_set():
                continue
            try:
                text = self._batch.add(
                    job.ids, job.sampling, max_new_tokens=job.most, stop_texts=job.stops
                )
            except ValueError as error:
                job.send(error)
                continue
            self._answers.append(_Answer(job, text))
