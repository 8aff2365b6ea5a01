"""A watchdog: a run that hangs is ended with its stacks in the log, so that it can go on.

Collective operations, drivers and remote file systems can wait for ever, and nothing tells. A
thread looks at how long ago the loop gave a sign of life. It can not see a hang that holds the
interpreter's lock, for then it does not run either.
"""

from __future__ import annotations

import faulthandler
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import EXIT_RESUME
from stages.training.listener import Listener, StepDone

if TYPE_CHECKING:
    from stages.engine import Context
    from stages.training.monitor import HeldOut

FACTOR = 20.0
"""Median training steps that a run may be silent, if that is longer than the floor."""
REMEMBERED = 100
"""Training steps that the median is of."""
TICKS = 10
"""How often it looks within the floor."""


class Patience:
    """How long a run has been silent, and how long it may be; seconds.

    Time counts only in ticks: one that took far longer than it should says that this whole process
    stood still (a stopped job, a suspended machine), which is no hang.
    """

    def __init__(self, floor: float) -> None:
        self.floor = floor
        self.silent = 0.0
        self._steps: deque[float] = deque(maxlen=REMEMBERED)

    @property
    def tick(self) -> float:
        """Seconds from one look to the next."""
        return self.floor / TICKS

    @property
    def limit(self) -> float:
        """Silence that is a hang."""
        return max(self.floor, FACTOR * median(self._steps)) if self._steps else self.floor

    def alive(self, step_seconds: float | None = None) -> None:
        """There was a sign of life: a training step, if its seconds are given."""
        self.silent = 0.0
        if step_seconds is not None:
            self._steps.append(step_seconds)

    def passed(self, seconds: float) -> bool:
        """So much time has passed since the last look: whether the run hangs."""
        self.silent += min(seconds, 2 * self.tick)
        return self.silent > self.limit


class Watchdog(Listener):
    """Calls `on_hang`, in a thread of its own, when no one has told it anything for too long."""

    def __init__(
        self,
        floor: float,
        on_hang: Callable[[float], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._patience, self._on_hang, self._clock = Patience(floor), on_hang, clock
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def started(self, training_step: int, total: int) -> None:
        """Begin to watch."""
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def step_done(self, done: StepDone) -> None:
        """A sign of life."""
        self._patience.alive(done.seconds)

    def saved(self, training_step: int, seconds: float) -> None:
        """A sign of life."""
        self._patience.alive()

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """A sign of life."""
        self._patience.alive()

    def event(self, kind: str, training_step: int, **details: Any) -> None:
        """A sign of life."""
        self._patience.alive()

    def ended(self, error: BaseException | None) -> None:
        """Watch no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        before = self._clock()
        while not self._over.wait(self._patience.tick):
            now = self._clock()
            if self._patience.passed(now - before):
                self._on_hang(self._patience.silent)
                return
            before = now


def ends_a_hang(context: Context) -> Callable[[float], None]:
    """What to do with a hang: log the stacks of all threads, and end with the code for "resume me".

    At once: whatever hangs would hang in an orderly end as well. Rolling checkpoints and decisions
    are whole at any moment.
    """

    def on_hang(silent: float) -> None:
        context.log.error("no sign of life for %.0f s; the stacks of all threads:", silent)
        for line in stacks().splitlines():
            context.log.error("%s", line)
        context.alert("hang", f"ended after {silent:.0f} s without a sign of life; run it again")
        os._exit(EXIT_RESUME)

    return on_hang


def stacks() -> str:
    """Where each thread of this process is."""
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read().decode("utf-8", "replace")
