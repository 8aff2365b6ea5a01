"""What estimates with intervals say: against their baseline, and of two runs against each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from artifacts_schema.identity import short
from flows.report.subject import Page, Step, Subject
from stages.engine.page import Axis, Estimate, IntervalFigure

LOWER_IS_BETTER = frozenset({"answer nats", "bits per byte", "loss", "loss, nats", "perplexity"})
"""Labels of the axes on which less is better."""

VARIANT = " · "
"""Between the name of a benchmark and that of a further metric of it."""

Outcome = Literal["better", "worse", "no different", "unknown"]


@dataclass(frozen=True)
class Score:
    """An estimate of an evaluation, and what was measured: a checkpoint, in a precision."""

    step: str
    checkpoint: str
    precision: str
    estimate: Estimate
    axis: Axis

    @property
    def outcome(self) -> Outcome:
        """How it compares with its baseline: `no different` if its interval holds the baseline."""
        e = self.estimate
        if e.low is None or e.high is None or e.baseline is None:
            return "unknown"
        if e.low <= e.baseline <= e.high:
            return "no different"
        return _direction(e.value - e.baseline, self.axis)

    @property
    def name(self) -> str:
        """`docstrings of dpo`."""
        return f"{self.estimate.name} of {self.checkpoint or self.step}"

    def show(self, value: float | None) -> str:
        """A value in the format of its axis; nothing for None."""
        return "" if value is None else format(value, self.axis.format)

    @property
    def ends(self) -> tuple[float, float] | None:
        """Of its interval."""
        e = self.estimate
        return None if e.low is None or e.high is None else (e.low, e.high)

    @property
    def interval(self) -> str:
        """`0.223–0.281`; nothing without an interval."""
        e = self.estimate
        if e.low is None or e.high is None:
            return ""
        return f"{self.show(e.low)}–{self.show(e.high)}"


def _direction(difference: float, axis: Axis) -> Outcome:
    lower = axis.label in LOWER_IS_BETTER
    return "better" if (difference < 0) == lower else "worse"


def list_scores(subject: Subject, pages: Iterable[Page]) -> list[Score]:
    """The estimates of every evaluation of a run, in the order of its steps."""
    return [score for page in pages for score in _of_page(subject, page)]


def _of_page(subject: Subject, page: Page) -> Iterator[Score]:
    manifest = page.step.manifest
    if manifest is None or all(o.kind != "evaluation" for o in manifest.outputs.values()):
        return
    checkpoint, precision = measured(subject, page.step)
    for figure in page.figures:
        if isinstance(figure, IntervalFigure):
            for estimate in figure.estimates:
                if math.isfinite(estimate.value):
                    yield Score(page.step.instance, checkpoint, precision, estimate, figure.value)


def measured(subject: Subject, step: Step) -> tuple[str, str]:
    """The checkpoint that a step evaluated and its precision: `pretrain`, `float32`."""
    if step.manifest is None:
        return "", ""
    checkpoints = [
        subject.find_instance(reference) or f"{reference.stage} {short(reference.key)}"
        for reference in step.manifest.references
        if reference.kind == "checkpoint"
    ]
    return " ".join(checkpoints), str(step.manifest.layout.get("dtype") or "")


# Two runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A score of two runs: `low` and `high` bound B − A with 95 % confidence."""

    a: Score
    b: Score
    value: float
    low: float
    high: float

    @property
    def outcome(self) -> Outcome:
        """Whether B is better or worse than A beyond chance."""
        if self.low <= 0 <= self.high:
            return "no different"
        return _direction(self.value, self.b.axis)


def difference_interval(a: Estimate, b: Estimate) -> tuple[float, float] | None:
    """The 95 % interval of b − a, of two independent estimates; None if one has no interval.

    Two runs that answer the same items are usually correlated, which makes the interval too wide
    rather than too narrow.
    """
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return None
    from stages.scoring.differences import newcombe_interval  # NumPy, which a plan needs not.

    return newcombe_interval((a.value, a.low, a.high), (b.value, b.low, b.high))


def compare_scores(a: Sequence[Score], b: Sequence[Score]) -> list[Difference]:
    """Scores of one name, step and axis in both runs, the clearest difference first."""
    before = {(s.step, s.axis.label, s.estimate.name): s for s in a}
    results = []
    for score in b:
        other = before.get((score.step, score.axis.label, score.estimate.name))
        ends = difference_interval(other.estimate, score.estimate) if other else None
        if other is not None and ends is not None:
            value = score.estimate.value - other.estimate.value
            results.append(Difference(other, score, value, *ends))
    return sorted(results, key=_clearness)


def _clearness(one: Difference) -> tuple[bool, float]:
    width = one.high - one.low
    return one.outcome == "no different", -abs(one.value) / width if width else 0.0
