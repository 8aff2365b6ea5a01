"""Where a run commits permanent checkpoints, and what people call them: `1.6M`, `2.0B`.

Both follow from the plan alone, so that a recipe can name a checkpoint that is still to come.
Tokens are positions of the sample clock, padding included: known before the first step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from artifacts_schema.errors import UsageError
from stages.engine import Milestone

if TYPE_CHECKING:
    from stages.training.permanent_config import CheckpointsConfig
    from stages.training.phases import Timeline
    from stages.training.schedule import Schedule

MOST = 1000
"""Permanent checkpoints of one run; more are a slip of the number of tokens between them."""

_UNITS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"), (1, ""))


def milestones(
    timeline: Timeline, schedule: Schedule, settings: CheckpointsConfig
) -> tuple[Milestone, ...]:
    """The permanent checkpoints of a run in order, its end last; `at` is the training step.

    UsageError for more than `MOST`.
    """
    wanted = {*_steps(timeline, schedule, settings), timeline.steps}
    steps = sorted(step for step in wanted if 1 <= step <= timeline.steps)
    labels = token_labels([timeline.tokens_until(step) for step in steps])
    return tuple(Milestone(step, label) for step, label in zip(steps, labels, strict=True))


def _steps(timeline: Timeline, schedule: Schedule, settings: CheckpointsConfig) -> Iterator[int]:
    if settings.phase_edges:
        yield from (first - 1 for first in timeline.first_steps[1:])
    if settings.before_decay:
        yield from decay_starts(schedule)
    if settings.every is not None:
        if timeline.tokens // settings.every > MOST:
            raise UsageError(
                f"{timeline.tokens // settings.every:,} permanent checkpoints, one every "
                f"{settings.every:,} of {timeline.tokens:,} tokens",
                where="checkpoints.every",
                hint=f"at most {MOST:,}: raise it",
            )
        for tokens in range(settings.every, timeline.tokens, settings.every):
            yield timeline.step_of_token(tokens - 1)


def decay_starts(schedule: Schedule) -> Iterator[int]:
    """Training steps behind which a decay begins; 0 for one that begins the run."""
    before = 0
    for segment in schedule.segments:
        if segment.decay_steps:
            yield before + segment.steps - segment.decay_steps
        before += segment.steps


def token_labels(tokens: Sequence[int]) -> list[str]:
    """Short names of ascending numbers, of two digits or as many as tell all of them apart.

    1,597,440 is `1.6M`; beside 1,600,000 it is `1.597M`.
    """
    for digits in range(2, 20):
        found = [_label(number, digits) for number in tokens]
        if len(set(found)) == len(set(tokens)):
            return found
    raise AssertionError("whole numbers are told apart by their digits")


def _label(number: int, digits: int) -> str:
    """A number to so many significant digits (more where it is whole), with K, M, B or T."""
    for index, (unit, letter) in enumerate(_UNITS):
        if number >= unit or unit == 1:
            whole = len(str(number // unit))
            text = f"{number / unit:.{max(0, digits - whole)}f}"
            if float(text) >= 1000 and index:  # 999,960 to two digits is a million.
                return _label(_UNITS[index - 1][0], digits)
            return text + letter
    raise AssertionError
