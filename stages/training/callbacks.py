"""Callbacks of a training run: the interface, a wrapper that tolerates disk errors, a watchdog.

The loop calls all callbacks in one order. A callback decides nothing that affects the model's
bytes. What it raises ends the run, so a dashboard that cannot be reached catches its own errors.

The watchdog ends a run that hangs, with its stacks in the log, so that it can be resumed:
collective operations, drivers and remote file systems can wait for ever without an error. A thread
checks how long ago the loop gave a sign of life. It cannot see a hang that holds the interpreter's
lock, because then it does not run either.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from artifacts_schema.errors import EXIT_RESUME
from stages.engine import Context
from stages.engine.hangs import SilenceTimer
from stages.training.monitor import HeldOut


@dataclass(frozen=True)
class StepDone:
    """A finished training step, as callbacks get it.

    `tokens` counts the run so far, `step_tokens` this step, both without padding. `loss` and
    `grad_norm` (before clipping) may be not finite; `skipped` says that nothing was updated;
    `seconds` is the time of the step itself; `values` are the task's columns of `metrics.parquet`.
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
        columns = ("training_step", "tokens", "phase", "loss", "grad_norm", "learning_rate")
        return {name: getattr(self, name) for name in (*columns, "skipped")}


class Callback:
    """Hooks of a training run; each does nothing unless a subclass overrides it."""

    def started(self, training_step: int, total: int) -> None:
        """The run starts after `training_step` (0: from scratch) and ends after `total`."""

    def step_done(self, done: StepDone) -> None:
        """A training step is over. Not called for one that the run excludes."""

    def saved(self, training_step: int, seconds: float) -> None:
        """A checkpoint was taken, rolling or permanent; training stood still for `seconds`."""

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out losses after `training_step` updates."""

    def event(self, kind: str, training_step: int, **details: Any) -> None:
        """Something that a person should know of: spike, skip, rollback, resume, checkpoint, …"""

    def telemetry(self, row: Mapping[str, Any]) -> None:
        """A row of the telemetry table."""

    def ended(self, error: BaseException | None) -> None:
        """The run is over: None at its end, else what stopped it."""


HOOKS = ("started", "step_done", "saved", "measured", "event", "telemetry", "ended")


class TolerantCallback(Callback):
    """Passes all calls on to `callback` until it raises OSError: a warning, then no more calls."""

    def __init__(self, callback: Callback, log: logging.Logger) -> None:
        self.callback, self._log = callback, log
        self._silent = False
        for hook in HOOKS:
            setattr(self, hook, partial(self._pass_on, hook))

    def _pass_on(self, hook: str, *arguments: Any, **details: Any) -> None:
        if self._silent:
            return
        try:
            getattr(self.callback, hook)(*arguments, **details)
        except OSError as error:
            self._silent = True
            name = type(self.callback).__name__
            self._log.warning("%s writes nothing more: %s", name, error.strerror or error)


class Watchdog(Callback):
    """Calls `on_hang`, in its own thread, after too long a time without a call of a hook."""

    def __init__(
        self,
        floor: float,
        on_hang: Callable[[float], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timer, self._on_hang, self._clock = SilenceTimer(floor), on_hang, clock
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def started(self, training_step: int, total: int) -> None:
        """Begin to watch."""
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def step_done(self, done: StepDone) -> None:
        """A sign of life."""
        self._timer.alive(done.seconds)

    def saved(self, training_step: int, seconds: float) -> None:
        """A sign of life."""
        self._timer.alive()

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """A sign of life."""
        self._timer.alive()

    def event(self, kind: str, training_step: int, **details: Any) -> None:
        """A sign of life."""
        self._timer.alive()

    def ended(self, error: BaseException | None) -> None:
        """Watch no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        before = self._clock()
        while not self._over.wait(self._timer.tick):
            now = self._clock()
            if self._timer.passed(now - before):
                self._on_hang(self._timer.silent)
                return
            before = now


def exit_on_hang(context: Context) -> Callable[[float], None]:
    """Return the handler of a hang: log the stacks of all threads, exit with the code to resume.

    It exits without an orderly end, which would hang as well. Rolling checkpoints and decisions are
    whole at any moment.
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
