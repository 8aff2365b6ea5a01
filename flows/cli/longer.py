"""Phases of a run that is made longer, or cut where another one leaves it. Plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from stages.pretrain.batch_sizes import written
from stages.training.config import LearningRate

if TYPE_CHECKING:
    from flows.cli.onward import Onward

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?)([KMBT]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
SHAPES = ("linear", "1-sqrt", "cosine", "none")


def decay_start(onward: Onward) -> int | None:
    """The training step behind which the run's last decay begins; None if its rate stays."""
    segments = onward.plan.schedule.segments
    last = segments[-1]
    if last.decay == "multi-step":
        raise UsageError(
            "its learning rate drops by steps over the whole phase: there is no rate to go on at",
            where=onward.ref,
            hint="ingot branch RUN --tokens N goes on at the rate that it had",
        )
    if not last.decay_steps:
        return None
    start = onward.plan.clock.steps - last.decay_steps
    if start < 1:
        raise UsageError(
            "its learning rate decays from the first training step on",
            where=onward.ref,
            hint="ingot branch RUN --tokens N goes on at the rate that it had",
        )
    return start


def lengthened(onward: Onward, tokens: int) -> list[dict[str, Any]]:
    """The run's phases with so many more tokens at the rate that it has at the checkpoint.

    What follows (the decay) stays as long as it is. A phase whose mixture goes in a line is not
    lengthened, as it would go there more slowly and so have read something else: the tokens follow
    as a phase of their own, at the weights that it ends with. UsageError where the rate decays in
    such a phase.
    """
    index, config = onward.phase, onward.config.phases[onward.phase]
    phase, segment = onward.plan.clock.phases[index], onward.plan.schedule.segments[index]
    if onward.done > segment.steps - segment.decay_steps:
        raise UsageError(
            "its learning rate decays there already",
            where=onward.ref,
            hint="ingot branch goes on at the rate that it had",
        )
    plain = config.plain()
    rest = [one.plain() for one in onward.config.phases]
    if config.mixture_end:
        if segment.decay_steps:
            raise _interpolated(onward)
        more = {
            **plain,
            "tokens": tokens,
            "mixture": config.mixture_end,
            "mixture_end": {},
            "sequences_per_batch": phase.rows(phase.steps - 1)[1],
            "learning_rate": LearningRate().plain(),  # It stays as the phase before ends.
        }
        return [*rest[: index + 1], more, *rest[index + 1 :]]
    found = {**plain, "tokens": config.tokens + tokens}
    steps = segment.steps + tokens / (phase.tokens / phase.steps)
    rate = {**plain["learning_rate"], **_warmup(segment.warmup)}
    if segment.decay_steps:
        rate["decay_share"] = segment.decay_steps / steps
    found["learning_rate"] = rate
    return [*rest[:index], found, *rest[index + 1 :]]


def without_decay(phases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same phases up to where the rate would decay."""
    kept = list(phases)
    while len(kept) > 1 and kept[-1]["learning_rate"]["decay"] != "none":
        kept.pop()
    return [*kept[:-1], {**kept[-1], "learning_rate": _steady(kept[-1]["learning_rate"])}]


def cut(onward: Onward) -> list[dict[str, Any]]:
    """The run's phases up to the checkpoint, the last of them at a constant rate."""
    index = onward.phase
    phase, segment = onward.plan.clock.phases[index], onward.plan.schedule.segments[index]
    config = onward.config.phases[index]
    before = [one.plain() for one in onward.config.phases[:index]]
    if onward.done == phase.steps:
        return [*before, config.plain()]
    if config.mixture_end:
        raise _interpolated(onward)
    tokens = phase.rows(onward.done)[0] * phase.sequence_length
    sizes = config.batch_sizes
    if not isinstance(sizes, int):
        sizes = tuple(pair for pair in sizes if pair[0] < tokens)
    rate = _steady(config.learning_rate.plain())
    rate |= _warmup(min(segment.warmup, onward.done))
    here = {"tokens": tokens, "sequences_per_batch": written(sizes), "learning_rate": rate}
    return [*before, {**config.plain(), **here}]


def annealed(
    onward: Onward, tokens: int, shape: str, mixture: dict[str, float] | None
) -> dict[str, Any]:
    """A phase behind the checkpoint, from the rate that the run has there."""
    config, phase = onward.config.phases[onward.phase], onward.plan.clock.phases[onward.phase]
    _, size = phase.rows(onward.done - 1)
    rate: dict[str, Any] = {"peak": onward.plan.schedule.rate(onward.step)}
    if shape != "none":
        rate["decay"] = shape
    plain = {**config.plain(), "mixture": config.mixture_end or config.mixture, "mixture_end": {}}
    if mixture is not None:
        plain["mixture"] = mixture
    return {**plain, "tokens": tokens, "sequences_per_batch": size, "learning_rate": rate}


def number_of_tokens(text: str, flag: str) -> int:
    """`2B`, `1.5M`, `800_000` or `2e9` as a number; UsageError for anything else."""
    match = _NUMBER.fullmatch(text.strip().replace("_", "").replace(",", ""))
    found = int(Decimal(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if found < 1:
        raise UsageError(
            f"'{text}' is no number of tokens", where=flag, hint="as 2B, 1.5M, 800_000"
        )
    return found


def _steady(rate: Mapping[str, Any]) -> dict[str, Any]:
    """A learning rate that does not decay."""
    of_decay = ("decay", "decay_share", "final", "drops")
    return {name: value for name, value in rate.items() if name not in of_decay}


def _warmup(steps: int) -> dict[str, Any]:
    """A warmup of as many training steps as the run had, however long the phase is now."""
    return {"warmup_share": 0.0, "warmup_tokens": None, "warmup_steps": steps or None}


def _interpolated(onward: Onward) -> UsageError:
    return UsageError(
        "its mixture goes in a straight line to the phase's end, which would move",
        where=f"{onward.ref}: phases.{onward.phase}.mixture_end",
        hint="ingot branch goes on from the end of that phase",
    )
