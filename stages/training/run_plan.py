"""What a run's config says of its data, as phases of training steps. Plans use it: no numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from artifacts_schema.errors import UsageError
from stages.training.phases import Phase, Sizes, Timeline, stream_of


class PhasePlan(Protocol):
    """What a run's config says of the data of a phase."""

    @property
    def tokens(self) -> int:
        """Token positions to read."""

    @property
    def sequence_length(self) -> int | None:
        """Tokens of its sequences; None where there is one length only."""

    @property
    def mixture(self) -> Mapping[str, float]:
        """Weights at its begin."""

    @property
    def mixture_end(self) -> Mapping[str, float]:
        """Weights at its end; empty where they stay."""

    @property
    def batch_sizes(self) -> int | Sizes:
        """Sequences of a training step, from which token of the phase on."""


class Skip(Protocol):
    """A range that a run leaves out, both ends included."""

    @property
    def first(self) -> int:
        """Training step from 1, or token position from 0."""

    @property
    def last(self) -> int:
        """The same unit."""

    @property
    def unit(self) -> str:
        """`training_steps` or `tokens`."""


class RunPlan(Protocol):
    """What a run's config says of its data."""

    @property
    def phases(self) -> Sequence[PhasePlan]:
        """One after another."""

    @property
    def skip(self) -> Sequence[Skip]:
        """What is left out."""

    @property
    def seed(self) -> int:
        """Decides the order."""


def phases_of_run(
    run: RunPlan, sources: Mapping[str, int], lengths: Mapping[str, int]
) -> list[Phase]:
    """The phases of a run; arguments and errors as `stages.training.clock.clock_of_run`'s."""
    return [
        _phase_of(one, sources, lengths, f"phases.{index}") for index, one in enumerate(run.phases)
    ]


def skipped_steps(run: RunPlan, timeline: Timeline) -> list[tuple[int, int]]:
    """First and last training step of each range that a run leaves out.

    UsageError for a range that leaves nothing out.
    """
    return [_steps_of(one, timeline, f"skip.{index}") for index, one in enumerate(run.skip)]


def _phase_of(
    plan: PhasePlan, sources: Mapping[str, int], lengths: Mapping[str, int], where: str
) -> Phase:
    """A phase over the sources of its length, which the plan calls by their plain names."""
    known = sorted(set(lengths.values())) or [1]  # No source at all is `check_phase`'s to refuse.
    if plan.sequence_length is None and len(known) > 1:
        raise UsageError(
            f"the token shards have sequences of {', '.join(map(str, known))} tokens",
            where=where,
            hint=f"set sequence_length to one of them, as {known[0]}",
        )
    length = known[0] if plan.sequence_length is None else plan.sequence_length
    if length not in known:
        raise UsageError(
            f"no token shards have sequences of {length} tokens, there are those of "
            f"{', '.join(map(str, known))}",
            where=f"{where}.sequence_length",
            hint="give the train role the output of a pack step of that length",
        )
    several = len(known) > 1
    begin, end = (
        {stream_of(name, length, several): weight for name, weight in weights.items()}
        for weights in (plan.mixture, plan.mixture_end)
    )
    if several and not begin:
        sizes = {name: size for name, size in sources.items() if lengths[name] == length}
        begin = {name: size / sum(sizes.values()) for name, size in sizes.items() if size}
    return Phase.of_tokens(plan.tokens, plan.batch_sizes, length, begin, end)


def _steps_of(skip: Skip, timeline: Timeline, where: str) -> tuple[int, int]:
    """The training steps of a range that is left out."""
    tokens = skip.unit == "tokens"
    most = timeline.tokens - 1 if tokens else timeline.steps
    if skip.first > most:
        raise UsageError(
            f"begins at {skip.first:,}, but the run's last of {skip.unit.replace('_', ' ')} is "
            f"{most:,}",
            where=where,
        )
    last = min(skip.last, most)
    if not tokens:
        return skip.first, last
    return timeline.step_of_token(skip.first), timeline.step_of_token(last)
