"""Where a checkpoint stands in its run's sample stream, and whether another run goes on there.

`clock: continue` means: the run's phases are those of the whole, from its first token on, and what
lies before the checkpoint is not done again. So it reads behind the checkpoint what an
uninterrupted run of these phases would have read, provided that run would have read the same before
it. That is what is checked here: everything that decides the order of data up to the checkpoint.
What comes later (more tokens, other phases, another learning rate, a tighter clip) is free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError

if TYPE_CHECKING:
    from stages.training.clock import SampleClock
    from stages.training.phases import Phase

KEY = "clock"
"""Of a checkpoint's `state.json`."""
_HINT = "phases before the checkpoint must be those of its run; `ingot branch` writes such a step"


@dataclass(frozen=True)
class Begin:
    """Where a run begins: behind so many training steps, with so many tokens read."""

    training_step: int = 0
    tokens: int = 0


def where_it_stands(clock: SampleClock, training_step: int) -> dict[str, Any]:
    """What of `clock` decided the data of training steps 1…`training_step`. JSON-ready."""
    phases = clock.phases[: clock.phase_of(training_step) + 1] if training_step else ()
    return {
        "seed": clock.seed,
        "sources": dict(clock.sizes),
        "phases": [_plain(phase) for phase in phases],
        "token_positions": clock.tokens_until(training_step),
    }


def begin_behind(state: Mapping[str, Any], clock: SampleClock) -> Begin:
    """Where a run with this clock begins that goes on behind the checkpoint of `state.json`.

    Raises InputError for a checkpoint of no sample clock, UsageError where the data before it is
    not what this clock has there, or nothing is left to do behind it.
    """
    recorded = state.get(KEY)
    if not isinstance(recorded, Mapping):
        raise InputError(
            "the input checkpoint does not say where its run stood",
            where="clock",
            hint="only a checkpoint of pretrain can be continued; use clock: restart",
        )
    done = int(state["training_step"])
    for what in _differences(recorded, clock, done):
        raise UsageError(
            f"data before training step {done:,} differs from that of the checkpoint's run: {what}",
            where="clock",
            hint=_HINT,
        )
    if clock.steps <= done:
        raise UsageError(
            f"the phases end with training step {clock.steps:,}, the checkpoint is of {done:,}",
            where="phases",
            hint="they are those of the whole run, from its first token on: add tokens",
        )
    return Begin(done, int(state["tokens"]))


def _differences(recorded: Mapping[str, Any], clock: SampleClock, done: int) -> Iterator[str]:
    """What decides the order of data before `done`, and is not the same."""
    if recorded["seed"] != clock.seed:
        yield f"seed {recorded['seed']} → {clock.seed}"
    before = recorded["phases"]
    if len(before) > len(clock.phases):
        yield f"{len(before)} phases before it, here are {len(clock.phases)}"
        return
    if done <= clock.steps and clock.phase_of(done) != len(before) - 1:
        last = len(before) - 1
        yield f"phases.{last}: it is read in phases.{clock.phase_of(done)} here"
    used: set[str] = set()
    for index, then in enumerate(before):
        now, last = _plain(clock.phases[index]), index == len(before) - 1
        yield from _in_phase(f"phases.{index}", then, now, last=last)
        named = then["weights"] or recorded["sources"]
        used |= {name for name, weight in named.items() if weight}
        used |= {name for name, weight in then["weights_end"].items() if weight}
        if not then["weights"] and set(recorded["sources"]) != set(clock.sizes):
            yield f"phases.{index} has no mixture, so each source by its size, and sources differ"
    for name in sorted(used):
        size, now_has = recorded["sources"].get(name, 0), clock.sizes.get(name, 0)
        if size != now_has:
            yield f"source '{name}' had {size:,} sequences, now {now_has:,}"
    if done <= clock.steps and recorded["token_positions"] != clock.tokens_until(done):
        yield (
            f"{recorded['token_positions']:,} token positions before it, here "
            f"{clock.tokens_until(done):,}"
        )


def _in_phase(where: str, then: Mapping[str, Any], now: Mapping[str, Any], *, last: bool) -> Any:
    """Fields of one phase that differ; of the last one its end is still open."""
    interpolates = bool(then["weights_end"] or now["weights_end"])
    for name in then:
        if name == "steps" and last:
            continue
        if name == "span" and not interpolates:
            continue
        if name == "sequences_per_batch" and last:
            continue  # Sizes may change behind the checkpoint; those before it decide positions.
        if then[name] != now.get(name):
            yield f"{where}: {name} {then[name]} → {now.get(name)}"


def _plain(phase: Phase) -> dict[str, Any]:
    """The fields of a phase as JSON gives them back."""
    found = asdict(phase)
    sizes = found["sequences_per_batch"]
    if not isinstance(sizes, int):
        found["sequences_per_batch"] = [list(pair) for pair in sizes]
    return found
