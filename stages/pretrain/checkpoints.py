"""Which permanent checkpoints a run commits, and how it continues from another run's checkpoint.

`clock: continue` means: the run's phases are those of the whole, from its first token on, and what
comes before the checkpoint is not repeated. So the run reads after the checkpoint what an
uninterrupted run of these phases would have read, provided that run would have read the same before
it. That is what is checked here: everything that decides the order of data up to the checkpoint.
What comes later (more tokens, other phases, another learning rate, a tighter clip) is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError
from stages.pretrain.plan import unchecked_plan
from stages.pretrain.plan_check import milestones
from stages.training.token_shards import TokenShards

if TYPE_CHECKING:
    from stages.engine import Context, Input, Milestone
    from stages.model.decoder import Decoder
    from stages.pretrain.config import PretrainConfig
    from stages.pretrain.plan import Plan
    from stages.tokens.chat_template import TokenizerFiles
    from stages.training.loop import Progress
    from stages.training.permanent import PermanentCheckpoints
    from stages.training.sample_clock import SampleClock
    from stages.training.schedule import Phase


KEY = "clock"
"""Of a checkpoint's `state.json`."""
_HINT = "phases before the checkpoint must be those of its run; `ingot branch` writes such a step"


@dataclass(frozen=True)
class StartPosition:
    """Where a run begins: behind so many training steps, with so many tokens read."""

    training_step: int = 0
    tokens: int = 0


def clock_position(clock: SampleClock, training_step: int) -> dict[str, Any]:
    """What of `clock` decided the data of training steps 1…`training_step`. JSON-ready."""
    phases = clock.phases[: clock.phase_of(training_step) + 1] if training_step else ()
    return {
        "seed": clock.seed,
        "sources": dict(clock.sizes),
        "phases": [_plain(phase) for phase in phases],
        "token_positions": clock.tokens_until(training_step),
    }


def continue_from(state: Mapping[str, Any], clock: SampleClock) -> StartPosition:
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
    return StartPosition(done, int(state["tokens"]))


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
    """What `state.json` of a checkpoint says of where the run stood: phase, rate, sample clock.

    And of the chat template that the model had when the run began, if any.
    """

    def state_at(training_step: int) -> Mapping[str, Any]:
        return {
            "phase": plan.schedule.phase(training_step),
            "learning_rate": plan.schedule.rate(training_step),
            KEY: clock_position(plan.clock, training_step),
            "chat_template": chat_template,
        }

    return state_at


def permanent_checkpoints(
    context: Context,
    plan: Plan,
    model: Decoder,
    tokenizer: TokenizerFiles,
    state_at: Callable[[int], Mapping[str, Any]],
) -> PermanentCheckpoints:
    """Commits the run's permanent checkpoints as the loop comes by them."""
    from stages.training.permanent import PermanentCheckpoints

    config: PretrainConfig = context.config
    return PermanentCheckpoints(
        context,
        plan_milestones(config, plan),
        model=model,
        tokenizer=tokenizer,
        state_at=state_at,
        optimizer=config.checkpoints.optimizer,
        output=config.averages.output,
        guarded=config.stability.enabled,
    )


def starting_progress(config: PretrainConfig, plan: Plan, start: Input | None) -> Progress:
    """Where the run begins: at its first training step, or behind the checkpoint's.

    Raises UsageError or InputError where the clock cannot go on there.
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
    return Progress(**asdict(continue_from(start.read_json("state.json"), plan.clock)))
