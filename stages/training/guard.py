"""The stability guard: judges each training step before its update, and decides on rollbacks.

Its judgement depends on losses and gradient norms alone, and its state travels with the
checkpoints: a run that was killed decides as one that was not.

Spikes are measured by median and median absolute deviation, which a spike among them does not move
(Iglewicz & Hoaglin 1993, "How to detect and handle outliers"); mean and standard deviation, such as
those of OLMo 2's skipped steps (arXiv 2501.00656), grow with each. Divergence is a loss that climbs
for long, although no step is far above the one before. A stall is a run that learns nothing: a loss
or gradient norm that stays the same to its last bit over different data, a gradient of zero, or
weights that no update moves. Each comes from a broken program (a detached loss, a frozen model, an
optimizer with other parameters), and none of them raises anything by itself.

A rollback does not name the checkpoint that the run goes back to. Training steps before the first
skipped one give the same bits again from any of them, so how often checkpoints are saved changes no
byte. A run that was killed at any moment of a rollback ends as one that was not: either nothing was
decided, and the same training steps lead to the same decision, or the decision is in the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from artifacts_schema.errors import IngotError
from artifacts_schema.files import exists, write_whole
from stages.parallel.boxes import local
from stages.parallel.ranks import ALONE, Ranks
from stages.training.config import StabilityConfig
from stages.training.schedule import merge_ranges

MAD_TO_SIGMA = 1.4826
"""1 / Φ⁻¹(3/4): a normal distribution's standard deviation over its median absolute deviation."""


def robust_z(
    value: float, history: Sequence[float], *, least: float = 0.0, share: float = 0.0
) -> float:
    """Standard deviations of `value` above the median of `history`, negative below it.

    The standard deviation is at least `least`, and at least `share` of the median's size, so that
    a run that hardly varies raises no alarm. Returns 0 if it is still 0.
    """
    middle = median(history)
    spread = MAD_TO_SIGMA * median(abs(one - middle) for one in history)
    scale = max(spread, least, share * abs(middle))
    return (value - middle) / scale if scale else 0.0


@dataclass(frozen=True)
class Spike:
    """How far loss and gradient norm of a training step are above earlier ones.

    The norm is measured by its logarithm: norms differ by factors, and a healthy run's are skewed
    to the right.
    """

    loss_z: float
    grad_norm_z: float


@dataclass
class Spikes:
    """Losses and gradient norms of the last normal training steps."""

    losses: list[float] = field(default_factory=list)
    grad_norms: list[float] = field(default_factory=list)

    def find(self, loss: float, grad_norm: float, settings: StabilityConfig) -> Spike | None:
        """The spike that these are; None for normal ones, and where there is little history.

        Low values are no spikes.
        """
        if 2 * len(self.losses) < settings.window:
            return None
        spike = Spike(
            robust_z(loss, self.losses, share=settings.loss_floor),
            robust_z(
                _logarithm(grad_norm),
                [_logarithm(one) for one in self.grad_norms],
                least=settings.grad_norm_floor,
            ),
        )
        worst = max(spike.loss_z, spike.grad_norm_z)
        assert not math.isnan(worst), "only finite values are judged"
        return spike if worst > settings.threshold else None

    def add(self, loss: float, grad_norm: float, window: int) -> None:
        """Add a normal training step to the history."""
        for values, value in ((self.losses, loss), (self.grad_norms, grad_norm)):
            values.append(value)
            del values[:-window]


def _logarithm(norm: float) -> float:
    """Of a norm that may be 0, which counts as the least float32."""
    return math.log(max(norm, 1e-45))


LEAST_RISE = 0.2
"""Share of the lowest median that a rise is at least, however little the run had gained."""


@dataclass(frozen=True)
class Climb:
    """How far the median loss of a window is above the lowest one so far, nats."""

    lowest: float
    now: float
    allowed: float


@dataclass
class Divergence:
    """The first loss of a run, and the lowest median of a window in this phase.

    A phase may be harder than the one before, so each has its own lowest; how much a run has gained
    is counted from its first loss, or that of a phase where it is higher.
    """

    first: float | None = None
    lowest: float | None = None

    def find(self, losses: Sequence[float], window: int, share: float | None) -> Climb | None:
        """The climb of the last losses; None if it is allowed, or there are fewer than `window`.

        A median may lie above the lowest by `share` of what the run gained from its first loss to
        that one, and by a fifth of the lowest at least.
        """
        if self.lowest is None:  # Nothing of this phase was judged yet: it may begin higher.
            self.first = max(losses[0], self.first or losses[0])
        if share is None or len(losses) < window:
            return None
        assert self.first is not None
        now = median(losses)
        self.lowest = min(now, self.first if self.lowest is None else self.lowest)
        allowed = max(share * (self.first - self.lowest), LEAST_RISE * abs(self.lowest))
        climb = Climb(self.lowest, now, allowed)
        return climb if now - self.lowest > allowed else None


_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass
class Stalls:
    """Since how many training steps nothing has changed."""

    loss: float | None = None
    grad_norm: float | None = None
    same_loss: int = 0
    same_grad_norm: int = 0
    fingerprint: int | None = None
    updates: int = 0

    def find(self, loss: float, grad_norm: float, most: int) -> str | None:
        """What has not changed over the last `most` training steps, in words; None if nothing."""
        self.same_loss = self.same_loss + 1 if loss == self.loss else 1
        self.same_grad_norm = self.same_grad_norm + 1 if grad_norm == self.grad_norm else 1
        self.loss, self.grad_norm = loss, grad_norm
        if self.same_grad_norm >= most:
            return f"the gradient norm has been exactly {grad_norm:g} for {most} training steps"
        if self.same_loss >= most:
            return f"the loss has been exactly {loss:g} for {most} training steps"
        return None

    def unmoved(self, model: nn.Module, rate: float, most: int, ranks: Ranks = ALONE) -> str | None:
        """After an update at `rate`: a message if the last `most` have moved no weight.

        Weights are compared once in `most` updates; updates at a rate of 0 do not count.
        """
        if rate <= 0:
            return None
        self.updates += 1
        if self.updates < most and self.fingerprint is not None:
            return None
        before, self.fingerprint, self.updates = self.fingerprint, fingerprint(model, ranks), 0
        if before != self.fingerprint:
            return None
        return f"no weight has moved in {most} training steps, though the learning rate is {rate:g}"


def fingerprint(model: nn.Module, ranks: Ranks = ALONE) -> int:
    """The sum of all parameters' bits, read as whole numbers; it changes with the weights.

    Over all ranks: of several copies of a model, it is that many times as large.
    """
    sums = [
        local(one).contiguous().view(_BITS[one.element_size()]).sum(dtype=torch.int64)
        for one in model.parameters()
    ]
    return int(ranks.sum_all(torch.stack(sums).sum())) if sums else 0


ADVICE = (
    "lower learning_rate.peak, warm up for longer or clip harder (optimizer.clip); "
    "ingot branch goes on from a permanent checkpoint with such a change"
)


@dataclass(frozen=True)
class Anomaly:
    """Why the update of a training step is not made: `kind` is that of its event."""

    kind: str
    what: str
    details: Mapping[str, float] = field(default_factory=dict)


@dataclass
class GuardState:
    """What the guard keeps between training steps."""

    phase: int = 0
    spikes: Spikes = field(default_factory=Spikes)
    divergence: Divergence = field(default_factory=Divergence)
    stalls: Stalls = field(default_factory=Stalls)
    skips: list[int] = field(default_factory=list)


class Guard:
    """Judges the training steps of one run."""

    def __init__(self, settings: StabilityConfig) -> None:
        self.settings = settings
        self.memory = GuardState()

    def judge(self, step: int, phase: int, loss: float, grad_norm: float) -> Anomaly | None:
        """The anomaly of a training step, whose update is then skipped; None for a normal step.

        Raises IngotError where skipping does not help: the loss diverges, or nothing changes.
        """
        memory, settings = self.memory, self.settings
        memory.skips = [one for one in memory.skips if one > step - settings.window]
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            memory.skips.append(step)
            return Anomaly("not_finite", f"loss {loss:g}, gradient norm {grad_norm:g}")
        if not settings.enabled:
            return None
        if phase != memory.phase:  # Another mixture, length or batch: another level of both.
            memory.phase, memory.spikes = phase, Spikes()
            memory.divergence.lowest = None
        spike = memory.spikes.find(loss, grad_norm, settings)
        if spike is not None:
            memory.skips.append(step)
            return Anomaly("spike", _describe_spike(spike, loss, grad_norm), asdict(spike))
        memory.spikes.add(loss, grad_norm, settings.window)
        self._check_course(step, loss, grad_norm)
        return None

    def check_moved(self, step: int, rate: float, model: nn.Module, ranks: Ranks = ALONE) -> None:
        """After the update of a training step: IngotError if updates no longer move any weight."""
        if self.settings.enabled:
            stalled = self.memory.stalls.unmoved(model, rate, self.settings.stall, ranks)
            if stalled is not None:
                raise _stall_error(step, stalled)

    @property
    def skips(self) -> tuple[int, ...]:
        """The training steps with an anomaly within the last `window`, oldest first."""
        return tuple(self.memory.skips)

    def gives_up(self) -> bool:
        """Whether there were too many anomalies: a rollback is due."""
        return self.settings.enabled and len(self.memory.skips) >= self.settings.strikes

    def state(self) -> dict[str, Any]:
        """Its memory, JSON-ready."""
        state = asdict(self.memory)
        state["strikes"] = state.pop("skips")  # As artifacts name them.
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the memory that `state` gave."""
        self.memory = GuardState(
            phase=state["phase"],
            spikes=Spikes(**state["spikes"]),
            divergence=Divergence(**state["divergence"]),
            stalls=Stalls(**state["stalls"]),
            skips=list(state["strikes"]),
        )

    def _check_course(self, step: int, loss: float, grad_norm: float) -> None:
        memory, settings = self.memory, self.settings
        stalled = memory.stalls.find(loss, grad_norm, settings.stall)
        if stalled is not None:
            raise _stall_error(step, stalled)
        climb = memory.divergence.find(memory.spikes.losses, settings.window, settings.divergence)
        if climb is not None:
            raise IngotError(
                f"training diverges: the median loss of {settings.window} training steps was "
                f"{climb.lowest:.4g} and is {climb.now:.4g}, of {climb.lowest + climb.allowed:.4g} "
                "allowed",
                where=f"training step {step}",
                hint=f"{ADVICE}; stability.divergence allows more",
            )


def _stall_error(step: int, what: str) -> IngotError:
    return IngotError(
        f"nothing is learnt: {what}",
        where=f"training step {step}",
        hint="look for a loss that does not depend on the weights, frozen parameters, or a "
        "learning rate below what the precision resolves",
    )


def _describe_spike(spike: Spike, loss: float, grad_norm: float) -> str:
    parts = (("loss", loss, spike.loss_z), ("gradient norm", grad_norm, spike.grad_norm_z))
    return ", ".join(f"{name} {value:.4g} ({z:+.1f} sigma)" for name, value, z in parts)


@dataclass(frozen=True)
class Rollback:
    """Training steps `first` to `last` are excluded from now on.

    `skips` are those of them with an anomaly; `events` the rows of the run's table of events from
    `first` on, which the run's log loses when it goes back.
    """

    first: int
    last: int
    skips: tuple[int, ...]
    events: tuple[Mapping[str, Any], ...] = ()


class Rollbacks:
    """The rollbacks of a run, kept in a file.

    `check` raises LeaseLost once another run has taken the key over: then none is added. Of several
    ranks only the first `writes`; the others make the same decisions.
    """

    def __init__(
        self, path: Path, check: Callable[[], None] = lambda: None, *, writes: bool = True
    ) -> None:
        self.path, self._check, self._writes = path, check, writes
        self.made = _read(path)

    @property
    def excluded(self) -> tuple[tuple[int, int], ...]:
        """Ranges [first, last] of training steps, in order."""
        return merge_ranges([(one.first, one.last) for one in self.made])

    def excludes(self, step: int) -> bool:
        """Whether a training step is excluded."""
        return any(one.first <= step <= one.last for one in self.made)

    def before(self, step: int, trained: int) -> int:
        """The training step `trained` steps before `step`, without excluded ones; at least 1."""
        while trained > 0 and step > 1:
            step -= 1
            trained -= not self.excludes(step)
        return step

    def usable(self, training_step: int, known: int) -> bool:
        """Whether a checkpoint has seen no excluded training step.

        `known` is the number of rollbacks before it was made.
        """
        return all(training_step < one.first for one in self.made[known:])

    def add(self, one: Rollback) -> None:
        """Record a rollback; it counts once this returns. StoreError if it cannot be written."""
        self._check()
        self.made = (*self.made, one)
        if not self._writes:
            return
        text = json.dumps([asdict(rollback) for rollback in self.made])
        write_whole(self.path, lambda path: path.write_bytes(text.encode()))

    @property
    def events(self) -> list[dict[str, Any]]:
        """Rows of the table of events that only rollbacks still hold, oldest first."""
        return [dict(row) for one in self.made for row in one.events]


def _read(path: Path) -> tuple[Rollback, ...]:
    if not exists(path):
        return ()
    made: Sequence[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return tuple(
        Rollback(one["first"], one["last"], tuple(one["skips"]), tuple(one["events"]))
        for one in made
    )
