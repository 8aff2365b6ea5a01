"""Alerts of a run that goes on but needs a look: it became slow, or stopped learning.

The detectors depend on the values that they get alone; `Alerts` feeds them from a run. Speed
differs from run to run, so alerts go to log and events alone, never into artifacts. Held-out losses
can be compared with those of an earlier run at equal tokens.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.store import Store
from stages.engine.inputs import Input
from stages.training.callbacks import Callback, StepDone
from stages.training.monitor import HeldOut

VALUES = ("bits_per_byte", "loss")
"""What is compared: the first that both runs have."""


@dataclass(frozen=True)
class BaselineRun:
    """`curves[name]` are (tokens, value) of a run's measurements, tokens rising.

    The name is that of the value (`HeldOut.column`): `bits_per_byte/web`, `language_loss/de`.
    """

    name: str
    curves: Mapping[str, Sequence[tuple[int, float]]]

    @classmethod
    def from_rows(cls, name: str, rows: Sequence[Mapping[str, Any]]) -> BaselineRun:
        """From rows of `held_out.parquet`."""
        curves: dict[str, dict[int, float]] = {}
        for row in rows:
            one = HeldOut(row["source"], row["loss"], row["bits_per_byte"], row["language"])
            for value in VALUES:
                if row[value] is not None:
                    curves.setdefault(one.column(value), {})[row["tokens"]] = row[value]
        return cls(name, {key: sorted(points.items()) for key, points in curves.items()})

    @classmethod
    def read(cls, store: Store, ref: str) -> BaselineRun:
        """A committed run; UsageError where `ref` names none that measured held-out losses."""
        manifest, _ = store.resolve(ref)
        output = manifest.outputs.get("training_run")
        if output is None:
            raise UsageError(
                f"{manifest.stage} {short(manifest.key)} is no training run",
                where="execution.compare_with",
                hint="name a pretrain, sft or dpo step",
            )
        manifest_input = Input.from_manifest(store, manifest, "training_run", full_check=False)
        return cls.from_rows(ref, manifest_input.read_table("held_out.parquet").to_pylist())

    def at(self, one: HeldOut, tokens: int) -> tuple[float, float] | None:
        """This run's value and the earlier run's at equal tokens, linearly interpolated.

        None where the earlier run has no such measurement on both sides of `tokens`.
        """
        for value in VALUES:
            now, curve = getattr(one, value), self.curves.get(one.column(value))
            if now is not None and curve:
                then = _between(curve, tokens)
                return None if then is None else (now, then)
        return None


def _between(curve: Sequence[tuple[int, float]], tokens: int) -> float | None:
    place = bisect_left(curve, tokens, key=lambda point: point[0])
    if place == len(curve) or (place == 0 and curve[0][0] != tokens):
        return None
    right_x, right = curve[place]
    if right_x == tokens:
        return right
    left_x, left = curve[place - 1]
    return left + (right - left) * (tokens - left_x) / (right_x - left_x)


@dataclass(frozen=True)
class Alert:
    """`kind` is one of throughput, plateau, regression; the same with `over` once it has passed."""

    kind: str
    text: str
    over: bool = False


@dataclass
class SlowRun:
    """A lasting drop of throughput below the run's own median.

    `take` gets the tokens a second of each step, and the time. After `warm_up` steps, the usual
    speed is the median of up to `history` steps that were not slow. A median of the last `window`
    steps below `drop` of it for `seconds` is a drop; above `recovered` of it the drop is over (two
    thresholds, so that a run between them raises one alert).
    """

    warm_up: int = 32
    window: int = 16
    history: int = 512
    drop: float = 0.8
    recovered: float = 0.9
    seconds: float = 120.0
    _steps: int = 0
    _since: float | None = None
    _active: bool = False

    def __post_init__(self) -> None:
        self._speeds: deque[float] = deque(maxlen=self.history)
        self._recent: deque[float] = deque(maxlen=self.window)

    def take(self, speed: float, now: float) -> Alert | None:
        """An alert when a drop has lasted, and when it is over."""
        self._steps += 1
        if self._steps <= self.warm_up:
            return None
        self._recent.append(speed)
        usual = median(self._speeds) if len(self._speeds) >= self.window else None
        share = None if usual is None else median(self._recent) / usual
        if share is None or share >= (self.recovered if self._active else self.drop):
            self._speeds.append(speed)
            self._since, was_active, self._active = None, self._active, False
            text = f"back at {share or 0:.0%} of this run's median"
            return Alert("throughput", text, over=True) if was_active else None
        self._since = now if self._since is None else self._since
        if self._active or now - self._since < self.seconds:
            return None
        self._active = True
        text = f"{median(self._recent):,.0f} tokens a second for {now - self._since:.0f} s, "
        return Alert("throughput", f"{text}{share:.0%} of this run's median of {usual:,.0f}")


@dataclass
class Plateau:
    """Held-out loss that no longer falls.

    `take` gets the tokens and loss of each measurement. Loss falls as a power of the tokens (Kaplan
    et al. 2020, arXiv 2001.08361, figure 1: exponent .095), by 2.7 % over the last quarter of any
    such run. It is a plateau if the best of that quarter gains less than `least` on earlier ones.
    """

    least: float = 0.001
    share: float = 0.25
    measurements: int = 12
    _losses: list[tuple[int, float]] = field(default_factory=list)
    _active: bool = False

    def take(self, tokens: int, loss: float) -> Alert | None:
        """An alert when the plateau is reached, and when the loss falls again."""
        # After a rollback, measurements come again.
        self._losses = [*(one for one in self._losses if one[0] < tokens), (tokens, loss)]
        edge = (1 - self.share) * tokens
        before = [loss for at, loss in self._losses if at <= edge]
        since = [loss for at, loss in self._losses if at > edge]
        if len(self._losses) < self.measurements or not before or len(since) < 2:
            return None
        gained = 1 - min(since) / min(before)
        flat = not gained >= self.least
        if flat == self._active:
            return None
        self._active = flat
        text = f"held-out loss {loss:.4f}: {gained:+.2%} over the last {self.share:.0%} of tokens"
        return Alert("plateau", text, over=not flat)


@dataclass
class Regression:
    """Held-out loss that is worse than an earlier run's at equal tokens, twice in a row.

    Bits per byte are compared where both have them: they do not depend on the tokenizer.
    """

    baseline: BaselineRun
    margin: float = 0.01
    times: int = 2
    _worse: dict[str, int] = field(default_factory=dict)

    def take(self, tokens: int, one: HeldOut) -> Alert | None:
        """An alert when one is worse by more than `margin`, and when it is not any more."""
        results = self.baseline.at(one, tokens)
        if results is None:
            return None
        value, then = results
        excess, before = value / then - 1, self._worse.get(one.column(""), 0)
        worse = not excess <= self.margin
        self._worse[one.column("")] = min(before + 1, self.times) if worse else 0
        text = f"held-out {one.name}: {value:.4f}, {self.baseline.name} had {then:.4f} at "
        if worse and before == self.times - 1:
            return Alert("regression", f"{text}{tokens:,} tokens ({excess:+.1%})")
        if not worse and before == self.times:
            return Alert("regression", f"{text}{tokens:,} tokens", over=True)
        return None


class Alerts(Callback):
    """Feeds the detectors, and passes their alerts with the training step to `report`."""

    def __init__(
        self,
        report: Callable[[int, Alert], None],
        baseline: BaselineRun | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._clock = report, clock
        self.slow, self.plateau = SlowRun(), Plateau()
        self.regression = None if baseline is None else Regression(baseline)
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
            alert = self.slow.take(done.step_tokens / (now - self._last), now)
            self._raise_alert(done.training_step, alert)
        self._last = now

    def saved(self, training_step: int, seconds: float) -> None:
        """The time of a checkpoint is no step's."""
        self._last = self._clock()

    def measured(self, training_step: int, tokens: int, measured: Sequence[HeldOut]) -> None:
        """Held-out losses: of `all` for the plateau, of each against the earlier run's."""
        for one in measured:
            if one.source == "all" and one.language is None and tokens:
                self._raise_alert(training_step, self.plateau.take(tokens, one.loss))
            if self.regression is not None:
                self._raise_alert(training_step, self.regression.take(tokens, one))
        self._last = self._clock()

    def _raise_alert(self, training_step: int, alert: Alert | None) -> None:
        if alert is not None:
            self._report(training_step, alert)
