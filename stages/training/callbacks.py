"""Callbacks of a training run: the interface, a wrapper that tolerates disk errors, a watchdog.

The loop calls every callback with the same things in the same order. A callback decides nothing
that bears on the model's bytes; what it raises ends the run, so one whose errors must not (a
dashboard that cannot be reached) catches them itself.

The watchdog ends a run that hangs, with its stacks in the log, so that it can be resumed.
Collective operations, drivers and remote file systems can wait for ever without an error. A thread
looks at how long ago the loop gave a sign of life. It cannot see a hang that holds the
interpreter's lock, for then it does not run either.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import EXIT_RESUME

if TYPE_CHECKING:
    from stages.engine import Context
    from stages.training.monitor import HeldOut


@dataclass(frozen=True)
class StepDone:
    """A finished training step, as callbacks get it.

    `tokens` are those of the run so far, `step_tokens` this step's, padding not counted; `loss` and
    `grad_norm` (before clipping) may be not finite; `skipped` says that nothing was updated;
    `seconds` are those of the step itself, on the monotonic clock; `values` are the columns that
    the task adds to `metrics.parquet`.
    """

    training_step: int
    tokens: int
    step_tokens: int
    loss: float
    grad_norm: float
    learning_rate: float
    phase: int
    skipped: bool
    seconds: float
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def metrics(self) -> dict[str, Any]:
        """The columns of `metrics.parquet` that every kind of training has."""
        names = (
            "training_step",
            "tokens",
            "phase",
            "loss",
            "grad_norm",
            "learning_rate",
            "skipped",
        )
        return {**{name: getattr(self, name) for name in names}, "skipped": self.skipped}


class Callback:
    """Hooks of a training run; each does nothing unless a subclass overrides it."""

    def started(self, training_step: int, total: int) -> None:
        """The run starts after `training_step` (0: from scratch) and goes on to `total`."""

    def step_done(self, done: StepDone) -> None:
        """A training step is over. Not called for one that the run excludes."""

    def saved(self, training_step: int, seconds: float) -> None:
        """A checkpoint was taken, rolling or permanent; training stood still for `seconds`."""

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out losses after `training_step` updates."""

    def event(self, kind: str, training_step: int, **details: Any) -> None:
        """Something that a person should know of: spike, skip, rollback, resume, checkpoint, …"""

    def ended(self, error: BaseException | None) -> None:
        """The run is over: None at its end, else what stopped it."""


class CallbackList(Callback):
    """Several callbacks as one, called in their order."""

    def __init__(self, callbacks: Iterable[Callback] = ()) -> None:
        self.callbacks = tuple(callbacks)

    def started(self, training_step: int, total: int) -> None:
        self._call(lambda one: one.started(training_step, total))

    def step_done(self, done: StepDone) -> None:
        self._call(lambda one: one.step_done(done))

    def saved(self, training_step: int, seconds: float) -> None:
        self._call(lambda one: one.saved(training_step, seconds))

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        self._call(lambda one: one.measured(training_step, tokens, measured))

    def event(self, kind: str, training_step: int, **details: Any) -> None:
        self._call(lambda one: one.event(kind, training_step, **details))

    def ended(self, error: BaseException | None) -> None:
        """Called for every callback, even if one before it raises."""
        raised: BaseException | None = None
        for one in self.callbacks:
            try:
                one.ended(error)
            except Exception as problem:
                raised = raised or problem
        if raised is not None:
            raise raised

    def _call(self, call: Callable[[Callback], None]) -> None:
        for one in self.callbacks:
            call(one)


class TolerantCallback(Callback):
    """Passes all calls on to `callback` until it raises OSError: a warning, then no more calls."""

    def __init__(self, callback: Any, log: logging.Logger) -> None:
        self.callback, self._log = callback, log
        self._silent = False

    def started(self, training_step: int, total: int) -> None:
        self._pass(lambda: self.callback.started(training_step, total))

    def step_done(self, done: StepDone) -> None:
        self._pass(lambda: self.callback.step_done(done))

    def saved(self, training_step: int, seconds: float) -> None:
        self._pass(lambda: self.callback.saved(training_step, seconds))

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        self._pass(lambda: self.callback.measured(training_step, tokens, measured))

    def event(self, kind: str, training_step: int, **details: Any) -> None:
        self._pass(lambda: self.callback.event(kind, training_step, **details))

    def ended(self, error: BaseException | None) -> None:
        self._pass(lambda: self.callback.ended(error))

    def telemetry(self, row: Mapping[str, Any]) -> None:
        """A row of the telemetry table, for a callback that takes them."""
        self._pass(lambda: self.callback.telemetry(row))

    def _pass(self, tell: Callable[[], None]) -> None:
        if self._silent:
            return
        try:
            tell()
        except OSError as error:
            self._silent = True
            name = type(self.callback).__name__
            self._log.warning("%s writes nothing more: %s", name, error.strerror or error)


FACTOR = 20.0
"""Median training steps that a run may be silent, if that is longer than the floor."""
REMEMBERED = 100
"""Training steps that the median is of."""
TICKS = 10
"""How often it looks within the floor."""


class SilenceTimer:
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


class Watchdog(Callback):
    """Calls `on_hang`, in a thread of its own, when no one has told it anything for too long."""

    def __init__(
        self,
        floor: float,
        on_hang: Callable[[float], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._patience, self._on_hang, self._clock = SilenceTimer(floor), on_hang, clock
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


def exit_on_hang(context: Context) -> Callable[[float], None]:
    """What to do with a hang: log the stacks of all threads, and end with the code for "resume me".

    At once: whatever hangs would hang in an orderly end as well. Rolling checkpoints and decisions
    are whole at any moment.
    """

    def on_hang(silent: float) -> None:
        context.log.error("no sign of life for %.0f s; the stacks of all threads:", silent)
        for line in thread_stacks().splitlines():
            context.log.error("%s", line)
        context.alert("hang", f"ended after {silent:.0f} s without a sign of life; run it again")
        os._exit(EXIT_RESUME)

    return on_hang


def thread_stacks() -> str:
    """Where each thread of this process is."""
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read().decode("utf-8", "replace")
