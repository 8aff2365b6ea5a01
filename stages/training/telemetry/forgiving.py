"""A listener whose trouble with the disk costs what it tells, and not the run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stages.training.listener import Listener, StepDone

if TYPE_CHECKING:
    from stages.training.monitor import HeldOut


class Forgiving(Listener):
    """Passes everything on to `listener`, until that raises OSError: a warning, and silence."""

    def __init__(self, listener: Any, log: logging.Logger) -> None:
        self.listener, self._log = listener, log
        self._silent = False

    def started(self, training_step: int, total: int) -> None:
        self._pass(lambda: self.listener.started(training_step, total))

    def step_done(self, done: StepDone) -> None:
        self._pass(lambda: self.listener.step_done(done))

    def saved(self, training_step: int, seconds: float) -> None:
        self._pass(lambda: self.listener.saved(training_step, seconds))

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        self._pass(lambda: self.listener.measured(training_step, tokens, measured))

    def event(self, kind: str, training_step: int, **details: Any) -> None:
        self._pass(lambda: self.listener.event(kind, training_step, **details))

    def ended(self, error: BaseException | None) -> None:
        self._pass(lambda: self.listener.ended(error))

    def telemetry(self, row: Mapping[str, Any]) -> None:
        """A row of the telemetry table, for a listener that takes them."""
        self._pass(lambda: self.listener.telemetry(row))

    def _pass(self, tell: Callable[[], None]) -> None:
        if self._silent:
            return
        try:
            tell()
        except OSError as error:
            self._silent = True
            name = type(self.listener).__name__
            self._log.warning("%s writes nothing more: %s", name, error.strerror or error)
