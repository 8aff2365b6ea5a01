"""Where a pretraining run keeps checkpoints for good, and where it begins in another's stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from stages.pretrain.plan import unchecked_plan
from stages.training.continuation import KEY, begin_behind, where_it_stands
from stages.training.data import TokenShards
from stages.training.milestones import milestones

if TYPE_CHECKING:
    from stages.engine import Context, Input, Milestone
    from stages.model.decoder import Decoder
    from stages.pretrain.config import PretrainConfig
    from stages.pretrain.plan import Plan
    from stages.text.chat_template import TokenizerFiles
    from stages.training.loop import Progress
    from stages.training.permanent import PermanentCheckpoints


def planned_checkpoints(
    config: PretrainConfig, inputs: Mapping[str, Sequence[Input]]
) -> tuple[Milestone, ...]:
    """The permanent checkpoints of a run over these inputs, its end last.

    UsageError for a config that cannot be run on them.
    """
    shards = TokenShards(inputs["train"])
    start = next(iter(inputs.get("checkpoint", ())), None)
    found = milestones_of(config, unchecked_plan(config, shards, start))
    if config.clock == "restart" or start is None:
        return found
    done = int(start.read_json("state.json")["training_step"])
    return tuple(one for one in found if one.at > done)


def milestones_of(config: PretrainConfig, plan: Plan) -> tuple[Milestone, ...]:
    """The permanent checkpoints of a plan, its end last."""
    return milestones(plan.clock, plan.schedule, config.checkpoints)


def state_of(
    plan: Plan, chat_template: Mapping[str, Any] | None = None
) -> Callable[[int], Mapping[str, Any]]:
    """What `state.json` of a checkpoint says of where the run stood: phase, rate, sample clock.

    And of the chat template that the model had when the run began, if any.
    """

    def state_at(training_step: int) -> Mapping[str, Any]:
        return {
            "phase": plan.schedule.phase(training_step),
            "learning_rate": plan.schedule.rate(training_step),
            KEY: where_it_stands(plan.clock, training_step),
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
        milestones_of(config, plan),
        model=model,
        tokenizer=tokenizer,
        state_at=state_at,
        optimizer=config.checkpoints.optimizer,
        output=config.averages.output,
        guarded=config.stability.enabled,
    )


def begin(config: PretrainConfig, plan: Plan, start: Input | None) -> Progress:
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
    return Progress(**asdict(begin_behind(start.read_json("state.json"), plan.clock)))
