"""What a person should look at although the run goes on: it became slow, or stopped learning.

The detectors are functions of what they were told, so that a test can tell them anything; `Alerts`
tells them how a run goes. They see speed, which no two runs share, so what they say goes to log and
events alone, never into what a run makes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from stages.training.listener import Listener, StepDone
from stages.training.telemetry.earlier import EarlierRun

if TYPE_CHECKING:
    from stages.training.monitor import HeldOut


@dataclass(frozen=True)
class Alert:
    """`kind` is one of throughput, plateau, regression; the same with `over` once it has passed."""

    kind: str
    said: str
    over: bool = False


@dataclass
class SlowRun:
    """A lasting drop of throughput below the run's own median.

    Told at each step: its tokens a second and the time. After `warm_up` steps the median of up to
    `kept` steps is what the run can do; below `drop` of it for `seconds`, by the median of the last
    `window` steps, is a drop, and back above `recovered` of it is its end (two thresholds, so that
    a run between them does not ring twice). What is slow does not count as what the run can do.
    """

    warm_up: int = 32
    window: int = 16
    kept: int = 512
    drop: float = 0.8
    recovered: float = 0.9
    seconds: float = 120.0
    _speeds: deque[float] = field(default_factory=deque)
    _recent: deque[float] = field(default_factory=deque)
    _seen: int = 0
    _since: float | None = None
    _rung: bool = False

    def take(self, speed: float, now: float) -> Alert | None:
        """An alert when a drop has lasted, and when it is over."""
        self._seen += 1
        if self._seen <= self.warm_up:
            return None
        self._recent.append(speed)
        if len(self._recent) > self.window:
            self._recent.popleft()
        usual = median(self._speeds) if len(self._speeds) >= self.window else None
        share = None if usual is None else median(self._recent) / usual
        if share is None or share >= (self.recovered if self._rung else self.drop):
            self._keep(speed)
            return self._end(share)
        self._since = now if self._since is None else self._since
        if self._rung or now - self._since < self.seconds:
            return None
        self._rung = True
        said = f"{median(self._recent):,.0f} tokens a second for {now - self._since:.0f} s, "
        return Alert("throughput", f"{said}{share:.0%} of this run's median of {usual:,.0f}")

    def _keep(self, speed: float) -> None:
        self._speeds.append(speed)
        if len(self._speeds) > self.kept:
            self._speeds.popleft()

    def _end(self, share: float | None) -> Alert | None:
        self._since = None
        if not self._rung:
            return None
        self._rung = False
        return Alert("throughput", f"back at {share or 0:.0%} of this run's median", over=True)


@dataclass
class Plateau:
    """Held-out loss that has stopped to fall.

    Told at each measurement: tokens and loss. Loss falls as a power of the tokens (Kaplan et al.
    2020, arXiv 2001.08361, figure 1: exponent .095), by 2.7 % over the last quarter of any run of
    its kind; a best that is less than `least` below that of the first three quarters is none.
    """

    least: float = 0.001
    share: float = 0.25
    measurements: int = 12
    _seen: list[tuple[int, float]] = field(default_factory=list)
    _rung: bool = False

    def take(self, tokens: int, loss: float) -> Alert | None:
        """An alert when the plateau is reached, and when the loss falls again."""
        self._seen = [one for one in self._seen if one[0] < tokens]  # A rollback tells them again.
        self._seen.append((tokens, loss))
        edge = (1 - self.share) * tokens
        before = [loss for at, loss in self._seen if at <= edge]
        since = [loss for at, loss in self._seen if at > edge]
        if len(self._seen) < self.measurements or not before or len(since) < 2:
            return None
        gained = 1 - min(since) / min(before)
        flat = not gained >= self.least
        if flat == self._rung:
            return None
        self._rung = flat
        said = f"held-out loss {loss:.4f}: {gained:+.2%} over the last {self.share:.0%} of tokens"
        return Alert("plateau", said, over=not flat)


@dataclass
class Regression:
    """Held-out loss that is worse than an earlier run's at equal tokens, twice in a row.

    Bits per byte are compared where both have them: they do not depend on the tokenizer.
    """

    earlier: EarlierRun
    margin: float = 0.01
    times: int = 2
    _worse: dict[str, int] = field(default_factory=dict)

    def take(self, tokens: int, one: HeldOut) -> Alert | None:
        """An alert when one is worse by more than `margin`, and when it is not any more."""
        found = self.earlier.at(one, tokens)
        if found is None:
            return None
        value, then = found
        excess, before = value / then - 1, self._worse.get(one.column(""), 0)
        worse = not excess <= self.margin
        self._worse[one.column("")] = min(before + 1, self.times) if worse else 0
        said = f"held-out {one.name}: {value:.4f}, {self.earlier.name} had {then:.4f} at "
        if worse and before == self.times - 1:
            return Alert("regression", f"{said}{tokens:,} tokens ({excess:+.1%})")
        if not worse and before == self.times:
            return Alert("regression", f"{said}{tokens:,} tokens", over=True)
        return None


class Alerts(Listener):
    """Feeds the detectors, and hands what they say to `tell` with the training step."""

    def __init__(
        self,
        tell: Callable[[int, Alert], None],
        *,
        earlier: EarlierRun | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell, self._clock = tell, clock
        self.slow, self.plateau = SlowRun(), Plateau()
        self.regression = None if earlier is None else Regression(earlier)
        self._last: float | None = None
        self._phase = -1

    def started(self, training_step: int, total: int) -> None:
        """The first step has no step before it to be timed from."""
        self._last = None

    def step_done(self, done: StepDone) -> None:
        """Speed since the step before: data and step, without checkpoints and measurements.

        A phase has a speed of its own: its sequences may be longer.
        """
        now = self._clock()
        if done.phase != self._phase:
            self.slow, self._phase = SlowRun(), done.phase
        if self._last is not None and now > self._last and done.step_tokens:
            self._say(
                done.training_step, self.slow.take(done.step_tokens / (now - self._last), now)
            )
        self._last = now

    def saved(self, training_step: int, seconds: float) -> None:
        """The time of a checkpoint is no step's."""
        self._last = self._clock()

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out losses: of `all` for the plateau, of each against the earlier run's."""
        for one in measured:
            if one.source == "all" and one.language is None and tokens:
                self._say(training_step, self.plateau.take(tokens, one.loss))
            if self.regression is not None:
                self._say(training_step, self.regression.take(tokens, one))
        self._last = self._clock()

    def _say(self, training_step: int, alert: Alert | None) -> None:
        if alert is not None:
            self._tell(training_step, alert)
