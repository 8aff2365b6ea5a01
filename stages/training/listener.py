"""Who looks on while a model is trained: telemetry, TensorBoard, alerts, a watchdog.

The loop tells every listener the same things in the same order. A listener decides nothing that
bears on the model's bytes; what it raises ends the run, so one whose trouble must not (a dashboard
that is away) catches it itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stages.training.monitor import HeldOut


@dataclass(frozen=True)
class StepDone:
    """What is told of a training step once it is over.

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


class Listener:
    """Looks on; each method does nothing unless a listener says otherwise."""

    def started(self, training_step: int, total: int) -> None:
        """The run begins behind `training_step` (0: anew) and goes on to `total`."""

    def step_done(self, done: StepDone) -> None:
        """A training step is over. One that the run leaves out is not told."""

    def saved(self, training_step: int, seconds: float) -> None:
        """A checkpoint was taken, rolling or permanent; training stood still for `seconds`."""

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out losses after `training_step` updates."""

    def event(self, kind: str, training_step: int, **details: Any) -> None:
        """Something that a person should know of: spike, skip, rollback, resume, checkpoint, …"""

    def ended(self, error: BaseException | None) -> None:
        """The run is over: None at its end, else what stopped it."""


class Listeners(Listener):
    """Many as one, told in their order."""

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self.listeners = tuple(listeners)

    def started(self, training_step: int, total: int) -> None:
        self._tell(lambda one: one.started(training_step, total))

    def step_done(self, done: StepDone) -> None:
        self._tell(lambda one: one.step_done(done))

    def saved(self, training_step: int, seconds: float) -> None:
        self._tell(lambda one: one.saved(training_step, seconds))

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        self._tell(lambda one: one.measured(training_step, tokens, measured))

    def event(self, kind: str, training_step: int, **details: Any) -> None:
        self._tell(lambda one: one.event(kind, training_step, **details))

    def ended(self, error: BaseException | None) -> None:
        """Every listener is told, even where one before it raises."""
        raised: BaseException | None = None
        for one in self.listeners:
            try:
                one.ended(error)
            except Exception as problem:
                raised = raised or problem
        if raised is not None:
            raise raised

    def _tell(self, tell: Callable[[Listener], None]) -> None:
        for one in self.listeners:
            tell(one)
