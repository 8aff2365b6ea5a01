"""Which permanent checkpoints a run commits, and how it continues from another run's checkpoint.

With `clock: continue` the phases are those of the whole run, and training steps before the
checkpoint are not repeated. So the run reads after the checkpoint what an uninterrupted run of
these phases would have read, if that run would have read the same before it. This is checked here:
everything that decides the order of data up to the checkpoint. Everything later (more tokens, other
phases, another learning rate, a tighter clip) may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError
from stages.pretrain.plan import unchecked_plan
from stages.pretrain.plan_check import milestones
from stages.training.token_shards import TokenShards

if TYPE_CHECKING:
    from stages.engine import Input, Milestone
    from stages.pretrain.config import PretrainConfig
    from stages.pretrain.plan import Plan
    from stages.training.loop import Progress
    from stages.training.sample_clock import SampleClock
    from stages.training.schedule import Phase


KEY = "clock"
"""Of a checkpoint's `state.json`."""
_HINT = "phases before the checkpoint must be those of its run; `ingot branch` writes such a step"


def clock_position(clock: SampleClock, training_step: int) -> dict[str, Any]:
    """What decides the data of training steps 1…`training_step` of `clock`; JSON-ready."""
    phases = clock.phases[: clock.phase_of(training_step) + 1] if training_step else ()
    return {
        "seed": clock.seed,
        "sources": dict(clock.sizes),
        "phases": [_plain(phase) for phase in phases],
        "token_positions": clock.tokens_until(training_step),
    }


def continue_from(state: Mapping[str, Any], clock: SampleClock) -> tuple[int, int]:
    """Training step and tokens at which a run with this clock continues a checkpoint.

    `state` is the checkpoint's `state.json`. Raises InputError for a checkpoint without a sample
    clock, UsageError where this clock has other data before it, or nothing after it.
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
    return done, int(state["tokens"])


def _differences(recorded: Mapping[str, Any], clock: SampleClock, done: int) -> Iterator[str]:
    """Differences, in words, in what decides the order of data before `done`."""
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


def _in_phase(
    where: str, then: Mapping[str, Any], now: Mapping[str, Any], *, last: bool
) -> Iterator[str]:
    """Fields of one phase that differ; the last one may still change its end.

    Its batch sizes may change after the checkpoint; those before it are compared by positions.
    """
    ignored = {"steps", "sequences_per_batch"} if last else set()
    if not then["weights_end"] and not now["weights_end"]:
        ignored.add("span")
    for name in then:
        if name not in ignored and then[name] != now.get(name):
            yield f"{where}: {name} {then[name]} → {now.get(name)}"


def _plain(phase: Phase) -> dict[str, Any]:
    """The fields of a phase as JSON gives them back."""
    results = asdict(phase)
    sizes = results["sequences_per_batch"]
    if not isinstance(sizes, int):
        results["sequences_per_batch"] = [list(pair) for pair in sizes]
    return results


def planned_checkpoints(
    config: PretrainConfig, inputs: Mapping[str, Sequence[Input]]
) -> tuple[Milestone, ...]:
    """The permanent checkpoints of a run over these inputs, its end last.

    UsageError for a config that cannot be run on them.
    """
    shards = TokenShards(inputs["train"])
    start = next(iter(inputs.get("checkpoint", ())), None)
    results = plan_milestones(config, unchecked_plan(config, shards, start))
    if config.clock == "restart" or start is None:
        return results
    done = int(start.read_json("state.json")["training_step"])
    return tuple(one for one in results if one.at > done)


def plan_milestones(config: PretrainConfig, plan: Plan) -> tuple[Milestone, ...]:
    """The permanent checkpoints of a plan, its end last."""
    return milestones(plan.clock, plan.schedule, config.checkpoints)


def checkpoint_state(
    plan: Plan, chat_template: Mapping[str, Any] | None = None
) -> Callable[[int], Mapping[str, Any]]:
    """What the plan adds to a checkpoint's `state.json`: phase, learning rate, sample clock.

    And the chat template that the model had when the run began, if any.
    """

    def state_at(training_step: int) -> Mapping[str, Any]:
        return {
            "phase": plan.schedule.phase(training_step),
            "learning_rate": plan.schedule.rate(training_step),
            KEY: clock_position(plan.clock, training_step),
            "chat_template": chat_template,
        }

    return state_at


def starting_progress(config: PretrainConfig, plan: Plan, start: Input | None) -> Progress:
    """Where the run begins: at its first training step, or after the checkpoint's.

    Raises UsageError or InputError where the clock cannot continue there.
    """
    from stages.training.loop import Progress

    if config.clock == "restart":
        return Progress()
    if start is None:
        raise UsageError(
            "there is no input checkpoint to go on from",
            where="clock",
            hint="give one to the role checkpoint, or use restart",
        )
    return Progress(*continue_from(start.read_json("state.json"), plan.clock))
